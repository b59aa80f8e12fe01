/* Creates pipelines, shares them between requests, and keeps unused ones for a while. */
#include "gpu/internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/shaders.h"
#include "gpu/spirv.h"

/* ---- sources --------------------------------------------------------------------------------- */

/* Shaders from gpu_add_shaders. */
static struct {
    const struct gpu_shader *sources;
    size_t count;
} added;

void gpu_add_shaders(const struct gpu_shader *sources, size_t count)
{
    added.sources = sources;
    added.count = count;
}

static const struct gpu_shader *find_in(const struct gpu_shader *sources, size_t count,
                                        const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(sources[i].name, name) == 0)
            return &sources[i];
    return NULL;
}

static const struct gpu_shader *find_source(const char *name)
{
    const struct gpu_shader *source = find_in(gpu_shaders, gpu_shader_count, name);
    if (!source)
        source = find_in(added.sources, added.count, name);
    return source ? source : gpu_snippet_find(name);
}

/* Prefers the shader that reads buffers by address, if it exists, on CPU devices: their drivers
 * check every access through a binding against the buffer's end. */
static const struct gpu_shader *source_for(const struct gpu_device *device, const char *name)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    const struct gpu_shader *source = NULL;
    char by_address[128];
    snprintf(by_address, sizeof by_address, "%s_addresses", name);
    if (capabilities->type == GPU_CPU && capabilities->buffer_addresses &&
        !gpu_disabled("buffer_addresses"))
        source = find_source(by_address);
    return source ? source : find_source(name);
}

bool gpu_shader_exists(const char *name)
{
    return find_source(name) != NULL;
}

uint64_t gpu_shader_hash(const struct gpu_device *device, const char *name)
{
    const struct gpu_shader *source = source_for(device, name);
    if (!source || device->shader_dir || source->snippet)
        return 0;
    return gpu_hash(source->packed, (size_t)(source->end - source->packed));
}

/* ---- compilation ----------------------------------------------------------------------------- */

static uint32_t subgroup_size_of(const struct gpu_device *device,
                                 const struct gpu_pipeline_options *options)
{
    return options->subgroup_size ? options->subgroup_size
                                  : device->support.capabilities.subgroup_size;
}

static vkn_status check_options(const struct gpu_device *device,
                                const struct gpu_pipeline_options *options)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    uint32_t size = subgroup_size_of(device, options);
    if (size != capabilities->subgroup_size &&
        (size & (size - 1) || size < capabilities->subgroup_min ||
         size > capabilities->subgroup_max))
        return base_fail(VKN_ERROR, "%s: subgroups of %u on \"%s\", which has %u to %u",
                         options->name, size, capabilities->name, capabilities->subgroup_min,
                         capabilities->subgroup_max);
    uint32_t most = gpu_largest_workgroup(capabilities, size);
    if (!options->local_size || options->local_size % size || options->local_size > most)
        return base_fail(VKN_ERROR,
                         "%s: workgroups of %u on \"%s\", which takes multiples of %u up to %u",
                         options->name, options->local_size, capabilities->name, size, most);
    if (options->constants && options->constants->count > GPU_MAX_CONSTANTS)
        return base_fail(VKN_ERROR, "%s: %u constants, at most %u are possible", options->name,
                         options->constants->count, GPU_MAX_CONSTANTS);
    return VKN_OK;
}

struct code {
    const uint32_t *words;
    size_t word_count;
    uint32_t *compiled; /* fresh memory that `words` points to; NULL: embedded */
};

/* Returns the embedded words, or compiles the shader's file; the caller frees code->compiled. */
static vkn_status get_code(struct gpu_device *device, const struct gpu_shader *source,
                           const char *name, struct code *code)
{
    *code = (struct code){.words = source->words, .word_count = gpu_shader_word_count(source)};
    if (!device->shader_dir || source->snippet)
        return VKN_OK;
    char message[1024];
    if (!gpu_runtime_compile(device->shader_dir, source, &code->compiled, &code->word_count,
                             message, sizeof message)) {
        message[strcspn(message, "\n")] = 0;
        return base_fail(VKN_BAD_INPUT, "shader %s: %s", name, message);
    }
    code->words = code->compiled;
    return VKN_OK;
}

/* ---- sharing ---------------------------------------------------------------------------------
 * Compilation dominates the start: drivers cache at most machine code and repeat all other work. So
 * a device keeps up to GPU_IDLE_PIPELINES unused pipelines. */

struct gpu_pipeline {
    struct gpu_device *device;
    const char *name;
    struct gpu_executable executable;
    uint32_t local_size, subgroup_size;
    const struct gpu_shader *source; /* NULL: compiled at run time, never shared */
    struct gpu_constants constants;  /* 0 for constants that the shader does not have */
    uint32_t holders;                /* users */
    uint64_t released;      /* value of gpu_pipeline_list.releases when the last user released it */
    double compile_seconds; /* processor time */
    struct gpu_pipeline *next;
};

/* Returns the constants that the shader reads; other constants do not change the pipeline. */
static struct gpu_constants used_constants(const struct gpu_shader *source,
                                           const struct gpu_constants *given)
{
    struct gpu_constants used = {.count = 0};
    const size_t count = gpu_shader_word_count(source);
    for (size_t i = SPIRV_HEADER; given && i < count;) {
        const uint32_t *word = &source->words[i];
        uint32_t length = word[0] >> 16, id = length == 4 ? word[3] : 0;
        if ((word[0] & 0xffffu) == OP_DECORATE && length == 4 && word[2] == SPIRV_SPEC_ID &&
            id >= GPU_FIRST_CONSTANT && id < given->count)
            used.values[id] = given->values[id];
        i += length ? length : 1;
    }
    used.count = given ? given->count : 0;
    return used;
}

static bool is_same(const struct gpu_pipeline *a, const struct gpu_pipeline *b)
{
    return a->source && a->source == b->source && a->name == b->name &&
           a->local_size == b->local_size && a->subgroup_size == b->subgroup_size &&
           a->constants.count == b->constants.count &&
           memcmp(a->constants.values, b->constants.values, sizeof a->constants.values) == 0;
}

/* Adds a user to the kept pipeline that equals `wanted`; NULL: there is none. The lock is held. */
static struct gpu_pipeline *hold(struct gpu_device *device, const struct gpu_pipeline *wanted)
{
    struct gpu_pipeline *pipeline = device->pipelines.first;
    while (pipeline && !is_same(pipeline, wanted))
        pipeline = pipeline->next;
    if (pipeline && pipeline->holders++ == 0)
        device->pipelines.idle--;
    return pipeline;
}

static void destroy(struct gpu_pipeline *pipeline)
{
    gpu_executable_destroy(pipeline->device, &pipeline->executable);
    free(pipeline);
}

/* Removes and returns the unused pipeline that was released first; NULL: there is none. The lock is
 * held. */
static struct gpu_pipeline *drop_oldest(struct gpu_device *device)
{
    struct gpu_pipeline **oldest = NULL;
    for (struct gpu_pipeline **at = &device->pipelines.first; *at; at = &(*at)->next)
        if ((*at)->holders == 0 && (!oldest || (*at)->released < (*oldest)->released))
            oldest = at;
    if (!oldest)
        return NULL;
    struct gpu_pipeline *pipeline = *oldest;
    *oldest = pipeline->next;
    device->pipelines.idle--;
    return pipeline;
}

static struct gpu_pipeline *find_kept(struct gpu_device *device, const struct gpu_pipeline *wanted)
{
    pthread_mutex_lock(&device->pipelines.lock);
    struct gpu_pipeline *pipeline = hold(device, wanted);
    pthread_mutex_unlock(&device->pipelines.lock);
    return pipeline;
}

/* Adds a new pipeline to the list, unless another thread has added the same one meanwhile. */
static struct gpu_pipeline *keep(struct gpu_device *device, struct gpu_pipeline *pipeline)
{
    pthread_mutex_lock(&device->pipelines.lock);
    struct gpu_pipeline *existing = hold(device, pipeline);
    if (!existing) {
        pipeline->holders = 1;
        pipeline->next = device->pipelines.first;
        device->pipelines.first = pipeline;
    }
    pthread_mutex_unlock(&device->pipelines.lock);
    if (existing)
        destroy(pipeline);
    return existing ? existing : pipeline;
}

static vkn_status compile(struct gpu_device *device, const struct gpu_pipeline_options *options,
                          struct gpu_executable *executable)
{
    const struct gpu_shader *source = gpu_traced(source_for(device, options->name));
    struct code code;
    BASE_TRY(get_code(device, source, options->name, &code));
    vkn_status status =
        gpu_executable_create(device, options, subgroup_size_of(device, options),
                              source->snippet != NULL, code.words, code.word_count, executable);
    free(code.compiled);
    return status;
}

/* Limits waits, because a user's snippet may loop for ever. */
static void limit_waits(struct gpu_device *device)
{
    pthread_mutex_lock(&device->pipelines.lock);
    if (device->wait_limit <= 0)
        device->wait_limit = gpu_snippet_seconds();
    pthread_mutex_unlock(&device->pipelines.lock);
}

vkn_status gpu_pipeline_create(struct gpu_device *device,
                               const struct gpu_pipeline_options *options,
                               struct gpu_pipeline **created)
{
    *created = NULL;
    BASE_TRY(gpu_check_hung(device, options->name));
    BASE_TRY(check_options(device, options));
    const struct gpu_shader *source = source_for(device, options->name);
    if (!source)
        return base_fail(VKN_ERROR, "shader %s is not part of this build (see shaders/shaders.txt)",
                         options->name);
    if (source->snippet) {
        BASE_TRY(gpu_snippet_compile(source));
        limit_waits(device);
    }
    BASE_TRY(gpu_shader_unpack(source));
    struct gpu_pipeline *pipeline = base_alloc(1, sizeof *pipeline);
    if (!pipeline)
        return VKN_ERROR;
    *pipeline = (struct gpu_pipeline){
        .device = device,
        .name = find_source(options->name)->name,
        .local_size = options->local_size,
        .subgroup_size = subgroup_size_of(device, options),
        .source = device->shader_dir ? NULL : source,
        .constants = used_constants(source, options->constants),
    };
    *created = find_kept(device, pipeline);
    if (*created) {
        free(pipeline);
        return VKN_OK;
    }
    /* The cache on disk must not depend on constants that the shader does not read. */
    struct gpu_pipeline_options reduced = *options;
    if (pipeline->source)
        reduced.constants = &pipeline->constants;
    double began = gpu_processor_seconds();
    vkn_status status = compile(device, &reduced, &pipeline->executable);
    pipeline->compile_seconds = gpu_processor_seconds() - began;
    if (status == VKN_OK)
        *created = keep(device, pipeline);
    else
        free(pipeline);
    return status;
}

void gpu_pipeline_destroy(struct gpu_pipeline **destroyed)
{
    struct gpu_pipeline *pipeline = *destroyed, *dropped = NULL;
    if (!pipeline)
        return;
    *destroyed = NULL;
    struct gpu_pipeline_list *pipelines = &pipeline->device->pipelines;
    pthread_mutex_lock(&pipelines->lock);
    if (--pipeline->holders == 0) {
        /* A shader compiled at run time may differ next time, so its pipeline is removed first. */
        pipeline->released = pipeline->source ? ++pipelines->releases : 0;
        pipelines->idle++;
        if (!pipeline->source || pipelines->idle > GPU_IDLE_PIPELINES)
            dropped = drop_oldest(pipeline->device);
    }
    pthread_mutex_unlock(&pipelines->lock);
    if (dropped)
        destroy(dropped);
}

/* ---- creating several ------------------------------------------------------------------------ */

struct creation {
    struct gpu_device *device;
    const struct gpu_pipeline_request *requests;
    size_t *order;                 /* indices of requests, largest shader first */
    atomic_bool *begun, *finished; /* [request] */
    size_t count;
    double start, reported; /* base_seconds() */
};

static size_t code_size(const struct creation *creation, size_t request)
{
    const struct gpu_shader *source =
        source_for(creation->device, creation->requests[request].options.name);
    return source ? gpu_shader_word_count(source) : 0;
}

/* Sorts by size, largest first, so that a long compilation does not start last. */
static void sort_by_code(struct creation *creation)
{
    for (size_t i = 0; i < creation->count; i++) {
        size_t at = i;
        for (; at > 0 && code_size(creation, creation->order[at - 1]) < code_size(creation, i);
             at--)
            creation->order[at] = creation->order[at - 1];
        creation->order[at] = i;
    }
}

static vkn_status create_one(void *context, size_t index)
{
    struct creation *creation = context;
    size_t request = creation->order[index];
    atomic_store(&creation->begun[request], true);
    vkn_status status = gpu_pipeline_create(creation->device, &creation->requests[request].options,
                                            creation->requests[request].pipeline);
    atomic_store(&creation->finished[request], true);
    return status;
}

/* Prints the names of the pipelines that are being compiled, as many as fit. */
static void print_compiled(const struct creation *creation, char *text, size_t size)
{
    text[0] = 0;
    for (size_t i = 0, used = 0; i < creation->count && used < size; i++)
        if (atomic_load(&creation->begun[i]) && !atomic_load(&creation->finished[i]))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     creation->requests[i].options.name);
}

/* Reports the count of pipelines, and which ones are being compiled; logs both after one second,
 * then every ten seconds. */
static void report_progress(void *context, size_t finished)
{
    struct creation *creation = context;
    double now = base_seconds();
    char names[512], what[576];
    print_compiled(creation, names, sizeof names);
    snprintf(what, sizeof what, "compiling pipelines%s%s", names[0] ? ": " : "", names);
    base_progress_report(&creation->device->progress, what, finished, creation->count);
    if (finished == creation->count || now - creation->start < 1 || now - creation->reported < 10)
        return;
    creation->reported = now;
    base_log(BASE_LOG_INFO, "%s: compiling %s (%zu of %zu pipelines are ready)",
             creation->device->support.capabilities.name, names, finished, creation->count);
}

vkn_status gpu_pipelines_create(struct gpu_device *device,
                                const struct gpu_pipeline_request *requests, size_t count)
{
    struct creation creation = {
        .device = device,
        .requests = requests,
        .order = base_alloc(count, sizeof(size_t)),
        .begun = base_alloc(count, sizeof(atomic_bool)),
        .finished = base_alloc(count, sizeof(atomic_bool)),
        .count = count,
        .start = base_seconds(),
    };
    creation.reported = creation.start - 10;
    for (size_t i = 0; i < count; i++)
        *requests[i].pipeline = NULL;
    vkn_status status = VKN_ERROR;
    if (creation.order && creation.begun && creation.finished) {
        sort_by_code(&creation);
        status = base_parallel(count, create_one, &creation, report_progress);
    }
    free(creation.order);
    free(creation.begun);
    free(creation.finished);
    return status;
}

/* ---- list of the device ---------------------------------------------------------------------- */

uint32_t gpu_pipelines_kept(struct gpu_device *device)
{
    uint32_t count = 0;
    pthread_mutex_lock(&device->pipelines.lock);
    for (const struct gpu_pipeline *pipeline = device->pipelines.first; pipeline;
         pipeline = pipeline->next)
        count++;
    pthread_mutex_unlock(&device->pipelines.lock);
    return count;
}

void gpu_pipelines_open(struct gpu_device *device)
{
    pthread_mutex_init(&device->pipelines.lock, NULL);
}

void gpu_pipelines_close(struct gpu_device *device)
{
    struct gpu_pipeline *pipeline = device->pipelines.first, *next;
    for (; pipeline; pipeline = next) {
        next = pipeline->next;
        destroy(pipeline);
    }
    pthread_mutex_destroy(&device->pipelines.lock);
}

uint32_t gpu_pipeline_local_size(const struct gpu_pipeline *pipeline)
{
    return pipeline->local_size;
}

uint32_t gpu_pipeline_subgroup_size(const struct gpu_pipeline *pipeline)
{
    return pipeline->subgroup_size;
}

struct gpu_executable gpu_pipeline_executable(const struct gpu_pipeline *pipeline)
{
    return pipeline->executable;
}

const char *gpu_pipeline_name(const struct gpu_pipeline *pipeline)
{
    return pipeline->name;
}

struct cJSON *gpu_pipeline_statistics(const struct gpu_pipeline *pipeline)
{
    if (!pipeline->device->statistics)
        return NULL;
    return gpu_read_statistics(pipeline->device, pipeline->executable.pipeline,
                               pipeline->compile_seconds);
}
