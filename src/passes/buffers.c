/* Sizes, allocates, binds and lists the buffers of shared/buffers.h. */
#include <stddef.h>
#include <string.h>

#include "passes/passes.h"

_Static_assert(SET_SIZE == GPU_SET_BINDINGS, "host and shaders number descriptor sets alike");
_Static_assert(BIND_ADDRESSES == GPU_ADDRESSES,
               "shaders read addresses where the module gpu writes them");

#define USERS 5

/* Names of the users in messages, by enum buffer_user. */
static const char *const user_names[USERS] = {"the training step", "pictures and meshes",
                                              "samples of the field", "a trial of the field",
                                              "the coarse field"};

struct row {
    uint32_t number;
    const char *names[USERS]; /* by enum buffer_user */
    enum gpu_memory_kind kind;
    uint64_t (*bytes)(const struct buffer_counts *n);
    bool is_f32;               /* else u32 or structs */
    const char *tensor;        /* name in checkpoints; NULL: it is not stored */
    const char *coarse_tensor; /* name of the coarse field's buffer in checkpoints */
    bool is_inherited;         /* copied by --init */
};

/* The size of each buffer as a function. */
#define SIZE(number, NAME, name, element, count, memory, kept)     \
    static uint64_t bytes_of_##NAME(const struct buffer_counts *n) \
    {                                                              \
        (void)n;                                                   \
        return sizeof(element) * (uint64_t)(count);                \
    }
STEP_BUFFERS(SIZE)
VIEW_BUFFERS(SIZE)

/* Values of the column `kept`: the members tensor, coarse_tensor and is_inherited. */
#define UNSAVED       NULL, NULL, false
#define SAVED(name)   name, "coarse." name, false
#define WEIGHTS(name) name, "coarse." name, true
#define ROW(number, NAME, name, element, count, memory, kept)                 \
    {                                                                         \
        BIND_##NAME,                                                          \
        {name, "view " name, "probe " name, "trial " name, "coarse " name},   \
        memory,                                                               \
        bytes_of_##NAME,                                                      \
        _Generic((__typeof__(element) *)NULL, float *: true, default: false), \
        kept},
static const struct row step_rows[] = {STEP_BUFFERS(ROW)};
static const struct row view_rows[] = {VIEW_BUFFERS(ROW)};

/* Returns NULL when the user has no buffer of that number. */
static const struct row *find_row(enum buffer_user user, uint32_t number)
{
    bool is_view = (user == BUFFERS_OF_VIEW || user == BUFFERS_OF_QUERY) && number >= SET_SIZE;
    const struct row *rows = is_view ? view_rows : step_rows;
    size_t count = is_view ? BASE_COUNT(view_rows) : BASE_COUNT(step_rows);
    for (size_t i = 0; i < count; i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

uint64_t buffers_bytes(enum buffer_user user, uint32_t number, const struct buffer_counts *counts)
{
    const struct row *row = find_row(user, number);
    return row ? row->bytes(counts) : 0;
}

uint64_t buffers_total(enum buffer_user user, uint32_t mask, const struct buffer_counts *counts)
{
    uint64_t bytes = 0;
    for (uint32_t number = 0; number < GPU_BINDINGS; number++)
        if (mask >> number & 1)
            bytes += buffers_bytes(user, number, counts);
    return bytes;
}

/* The settings that determine each count, as messages name them. */
static const struct {
    size_t count; /* offset in struct buffer_counts */
    const char *settings;
} causes[] = {
    {offsetof(struct buffer_counts, pixels), "scene.image_budget (--image-memory, --downscale)"},
    {offsetof(struct buffer_counts, cameras), "the number of training views"},
    {offsetof(struct buffer_counts, samples),
     "batch.samples (march.ray_samples, march.fine_samples)"},
    {offsetof(struct buffer_counts, input_gradients),
     "batch.samples (march.ray_samples, march.fine_samples)"},
    {offsetof(struct buffer_counts, rays), "batch.max_rays"},
    {offsetof(struct buffer_counts, kept_bytes), "mlp.activation_checkpointing=off"},
    {offsetof(struct buffer_counts, layer_bytes), "batch.chunk"},
    {offsetof(struct buffer_counts, params),
     "grid.log2_entries (grid.levels, proposal.log2_entries)"},
    {offsetof(struct buffer_counts, f16_params),
     "grid.log2_entries (grid.levels, proposal.log2_entries)"},
    {offsetof(struct buffer_counts, moments[0]),
     "grid.log2_entries (grid.levels, proposal.log2_entries)"},
    {offsetof(struct buffer_counts, moments[1]),
     "grid.log2_entries (grid.levels, proposal.log2_entries)"},
    {offsetof(struct buffer_counts, entries),
     "grid.log2_entries (grid.levels, proposal.log2_entries)"},
    {offsetof(struct buffer_counts, panels), "mlp.density_width"},
    {offsetof(struct buffer_counts, groups),
     "mlp.density_width (mlp.color_width, mlp.density_layers)"},
    {offsetof(struct buffer_counts, cells), "march.resolution (dynamic.time_bins)"},
    {offsetof(struct buffer_counts, bit_words), "march.resolution (dynamic.time_bins)"},
    {offsetof(struct buffer_counts, sky_cells), "scene.sky"},
    {offsetof(struct buffer_counts, error_cells), "batch.by_error (loss.robust)"},
    {offsetof(struct buffer_counts, error_sums), "batch.by_error"},
    {offsetof(struct buffer_counts, refined_views), "scene.refine"},
    {offsetof(struct buffer_counts, appearances), "scene.appearance"},
    {offsetof(struct buffer_counts, depths), "loss.depth"},
    {offsetof(struct buffer_counts, layer), "--resolution"},
    {offsetof(struct buffer_counts, texels), "--texture"},
    {offsetof(struct buffer_counts, splats), "--count"},
};

/* Returns the settings to change when a buffer is too large: the settings of the count that
 * contributes most to its size. NULL when its size is constant. */
static const char *settings_of(const struct row *row, const struct buffer_counts *counts)
{
    uint64_t smallest = row->bytes(counts);
    const char *settings = NULL;
    for (size_t i = 0; i < BASE_COUNT(causes); i++) {
        struct buffer_counts less = *counts;
        memset((char *)&less + causes[i].count, 0, sizeof(uint64_t));
        if (row->bytes(&less) < smallest) {
            smallest = row->bytes(&less);
            settings = causes[i].settings;
        }
    }
    return settings;
}

size_t buffers_list(enum buffer_user user, uint32_t mask, const struct buffer_counts *counts,
                    struct gpu_need *needs)
{
    size_t count = 0;
    for (uint32_t number = 0; number < GPU_BINDINGS; number++) {
        const struct row *row = mask >> number & 1 ? find_row(user, number) : NULL;
        if (row)
            needs[count++] =
                (struct gpu_need){row->names[user], row->bytes(counts), settings_of(row, counts)};
    }
    return count;
}

/* Numbers of all buffers, in the order of the bytes that a training step reads and writes per byte
 * of the buffer: the last ones are placed in host memory if device memory is full. */
/* clang-format off */
static const uint8_t by_traffic[] = {
    /* small */
    BIND_CONFIG, BIND_STATE, BIND_CONTROL, BIND_DISPATCHES, BIND_ADDRESSES, BIND_STATS,
    BIND_CAMERAS, BIND_REDUCE, BIND_OCCUPANCY_BITS,
    /* random reads and atomics, or several times per step */
    BIND_F16_PARAMS, BIND_PARAMS, BIND_ACCUMULATORS, BIND_GRADIENTS, BIND_SCRATCH, BIND_FEATURES,
    BIND_PARTIALS, BIND_FIELD, BIND_FIELD_GRADIENTS, BIND_SAMPLES, BIND_LIVE, BIND_RAYS,
    BIND_RESULTS, BIND_INPUT_GRADIENTS,
    /* read and written once per step */
    BIND_MOMENT1, BIND_MOMENT2, BIND_STEP_COUNTS,
    /* seldom, or a few pixels per ray */
    BIND_AVERAGE, BIND_F16_AVERAGE, BIND_OCCUPANCY, BIND_PIXELS,
};
/* clang-format on */
_Static_assert(sizeof by_traffic == GPU_BINDINGS, "each buffer has a place");

vkn_status buffers_create(struct gpu_device *device, enum buffer_user user, uint32_t mask,
                          const struct buffer_counts *counts, struct buffers *buffers)
{
    struct gpu_buffer_request requests[GPU_BINDINGS];
    struct gpu_need needs[GPU_BINDINGS];
    size_t count = 0, needed = buffers_list(user, mask, counts, needs);
    *buffers = (struct buffers){0};
    for (size_t i = 0; i < needed; i++)
        BASE_TRY(gpu_check_range(device, &needs[i]));
    BASE_TRY(gpu_memory_check(device, needs, needed, user_names[user]));
    for (size_t i = 0; i < GPU_BINDINGS; i++) {
        uint32_t number = by_traffic[i];
        const struct row *row = mask >> number & 1 ? find_row(user, number) : NULL;
        if (row)
            requests[count++] = (struct gpu_buffer_request){&buffers->at[number], row->names[user],
                                                            row->bytes(counts), row->kind};
    }
    return gpu_arena_create(device, requests, count, &buffers->arena);
}

void buffers_destroy(struct buffers *buffers)
{
    gpu_arena_destroy(&buffers->arena);
}

void buffers_bind(const struct buffers *buffers, uint32_t mask,
                  const struct gpu_buffer *bound[GPU_BINDINGS])
{
    for (uint32_t number = 0; number < GPU_BINDINGS; number++)
        if (mask >> number & 1 && buffers->at[number].handle)
            bound[number] = &buffers->at[number];
}

/* ---- checkpoints --------------------------------------------------------------------------- */

static size_t add_saved(bool coarse, uint32_t mask, size_t count,
                        struct saved_buffer saved[MAX_SAVED_BUFFERS])
{
    for (size_t i = 0; i < BASE_COUNT(step_rows); i++)
        if (step_rows[i].tensor && mask >> step_rows[i].number & 1)
            saved[count++] = (struct saved_buffer){
                .number = step_rows[i].number,
                .tensor = coarse ? step_rows[i].coarse_tensor : step_rows[i].tensor,
                .is_f32 = step_rows[i].is_f32,
                .is_inherited = step_rows[i].is_inherited,
                .coarse = coarse,
                .fine = step_rows[i].tensor,
            };
    return count;
}

size_t buffers_list_saved(uint32_t mask, bool coarse, struct saved_buffer saved[MAX_SAVED_BUFFERS])
{
    size_t count = add_saved(false, mask, 0, saved);
    return coarse ? add_saved(true, mask & BUFFERS_OF_PARAMETERS, count, saved) : count;
}
