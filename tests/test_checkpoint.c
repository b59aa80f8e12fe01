/* Tests that readers refuse, and writers never write, wrong or incomplete checkpoints. */
#include "step_fixture.h"

#include <vknerf/renderer.h>

#include "config/config.h"
#include "step/step.h"

/* Tensors of a checkpoint, in the order of the file. */
enum { PARAMS, AVERAGE, OCCUPANCY, MOMENT1, MOMENT2, COUNTS, STATE, TENSORS };
static const char *const tensor_names[TENSORS] = {"params",  "average", "occupancy", "moment1",
                                                  "moment2", "counts",  "state"};

/* A valid checkpoint of 20 steps, whose tensors and metadata a test may change. */
struct sample {
    const struct step_tests *tests;
    struct tiny tiny;
    struct safetensors_file *file;
    struct safetensors_tensor tensors[TENSORS];
    void *data[TENSORS];
    struct safetensors_metadata metadata[5]; /* without a checksum, as older versions wrote */
    char *good, *bad;
};

static void sample_create(const struct step_tests *tests, struct sample *sample)
{
    static const char *const keys[] = {CHECKPOINT_FORMAT, CHECKPOINT_CONFIG, CHECKPOINT_SCENE,
                                       CHECKPOINT_STEP, CHECKPOINT_SECONDS};
    struct vkn_config config = tiny_config(false);
    config.precision = VKN_PRECISION_FP32;
    *sample = (struct sample){.tests = tests,
                              .tiny = tiny_create(tests->context, tests->folder, &config),
                              .good = base_path_join(tests->folder->path, "good"),
                              .bad = base_path_join(tests->folder->path, "bad")};
    tiny_run(&sample->tiny, 20);
    ok(vkn_trainer_save(sample->tiny.trainer, sample->good));
    ok(safetensors_open(sample->good, &sample->file));
    assert_non_null(safetensors_metadata_value(sample->file, SAFETENSORS_CHECKSUM));
    assert_null(safetensors_metadata_value(sample->file, CHECKPOINT_SCENE_BYTES));
    for (size_t i = 0; i < TENSORS; i++) {
        sample->tensors[i] = *safetensors_at(sample->file, i);
        sample->data[i] = base_alloc(sample->tensors[i].size, 1);
        memcpy(sample->data[i], sample->tensors[i].data, sample->tensors[i].size);
        sample->tensors[i].data = sample->data[i];
        assert_string_equal(sample->tensors[i].name, tensor_names[i]);
    }
    for (size_t i = 0; i < BASE_COUNT(keys); i++)
        sample->metadata[i] = (struct safetensors_metadata){
            keys[i], safetensors_metadata_value(sample->file, keys[i])};
}

static void sample_destroy(struct sample *sample)
{
    for (size_t i = 0; i < TENSORS; i++)
        free(sample->data[i]);
    safetensors_close(&sample->file);
    tiny_destroy(&sample->tiny);
    free(sample->good);
    free(sample->bad);
}

/* All tests share one sample and restore what they change. */
static int setup(void **state)
{
    static struct sample sample;
    if (step_tests_setup(state) != 0)
        return -1;
    sample_create(*state, &sample);
    *state = &sample;
    return 0;
}

static int teardown(void **state)
{
    struct sample *sample = *state;
    *state = (void *)sample->tests;
    sample_destroy(sample);
    return step_tests_teardown(state);
}

static void write_bad(const struct sample *sample)
{
    ok(safetensors_write(sample->bad, sample->tensors, TENSORS, sample->metadata,
                         BASE_COUNT(sample->metadata)));
}

/* Writes the changed sample and expects that opening it fails with `part` in the message. */
static void assert_refused(const struct sample *sample, const char *part)
{
    struct safetensors_file *file = NULL;
    write_bad(sample);
    if (checkpoint_open(sample->bad, &file) != VKN_BAD_INPUT)
        fail_msg("not refused: %s", part);
    assert_error(sample->bad);
    assert_error(part);
}

static void test_good(void **state)
{
    struct sample *sample = *state;
    struct safetensors_file *file = NULL;
    write_bad(sample);
    ok(checkpoint_open(sample->bad, &file)); /* accepted without a checksum */
    safetensors_close(&file);
}

/* Checkpoints older than a setting leave that setting at its default. */
static void test_older(void **state)
{
    struct sample *sample = *state;
    const char *good = sample->metadata[1].value;
    struct vkn_config older = *vkn_trainer_config(sample->tiny.trainer);
    older.mlp.density_activation = VKN_DENSITY_DEFAULT;
    older.optimizer.kind = VKN_OPTIMIZER_DEFAULT;
    char *text = vkn_config_write_json(&older);
    sample->metadata[1].value = text;
    test_good(state);
    ok(vkn_trainer_resume(sample->tiny.trainer, sample->bad)); /* with Adam's moments */
    free(text);
    sample->metadata[1].value = good;
}

/* Members of the state that an older checkpoint lacks become zero. */
static void test_older_state(void **state)
{
    struct sample *sample = *state;
    struct tiny *tiny = &sample->tiny;
    const struct gpu_buffer *buffer = &tiny->trainer->step.buffers.at[BIND_STATE];
    struct safetensors_tensor *tensor = &sample->tensors[STATE], before = *tensor;
    struct State *now = tiny_read(tiny, buffer), *resumed;
    assert_int_equal(buffer->size, sizeof *now);
    now->tolerated = 7;
    now->keep_gain = now->mean_loss = 0.5f;
    tiny_put(tiny, buffer, now);
    tensor->size = offsetof(struct State, tolerated);
    tensor->shape[0] = tensor->size / 4;
    write_bad(sample);
    ok(vkn_trainer_resume(tiny->trainer, sample->bad));
    resumed = tiny_read(tiny, buffer);
    assert_memory_equal(resumed, sample->data[STATE], tensor->size);
    assert_int_equal(resumed->tolerated, 0);
    assert_true(resumed->keep_gain == 0 && resumed->mean_loss == 0);
    vkn_renderer *renderer = NULL;
    ok(vkn_renderer_open(sample->tests->context, sample->bad, VKN_PRECISION_FP32, &renderer));
    vkn_renderer_destroy(&renderer);
    struct safetensors_file *file = NULL;
    uint32_t skipped = UINT32_MAX;
    ok(checkpoint_open(sample->bad, &file));
    assert_true(checkpoint_skipped(file, &skipped));
    assert_int_equal(skipped, resumed->skipped_steps);
    safetensors_close(&file);
    *tensor = before;
    free(resumed);
    free(now);
}

/* ---- state --------------------------------------------------------------------------------- */

static void assert_word_refused(const struct sample *sample, size_t offset, uint32_t value,
                                const char *name)
{
    uint32_t *word = (uint32_t *)sample->data[STATE] + offset / 4, before = *word;
    *word = value;
    assert_refused(sample, name);
    *word = before;
}

#define NAN_WORD 0x7fc00000u

static void test_state(void **state)
{
    struct sample *sample = *state;
    const struct {
        const char *name;
        size_t offset;
        uint32_t least_bad;
    } words[] = {
#define FIELD(name, value) {"state: " #name ": ", offsetof(struct State, name), value}
        FIELD(running, 2),
        FIELD(ray_count, 0),
        FIELD(live_rays, 2000000000),
        FIELD(learning_rate, NAN_WORD),
        FIELD(loss_scale, 0),
        FIELD(good_steps, 21),
        FIELD(skipped_steps, 21),
        FIELD(updates, 21),
        FIELD(nonfinite, 2),
        FIELD(gradient_factor, NAN_WORD),
        FIELD(grad_norm, 0x7f800000u),
        FIELD(average_step, 21),
        FIELD(average_weight, 0x40000000u),
        FIELD(threshold, NAN_WORD),
        FIELD(settled, 2),
        FIELD(backoffs, 21),
        FIELD(rate_cuts, MAX_RATE_CUTS + 1),
        FIELD(tolerated, 21),
        FIELD(kept_rays, 1000000000),
        FIELD(keep_gain, 0x44800001u),
        FIELD(mean_loss, NAN_WORD),
#undef FIELD
        {"state: dispatches[0]: ", offsetof(struct State, dispatches), 5000000},
        {"state: dispatches[12]: ", offsetof(struct State, dispatches) + 12 * 16 + 8, 2},
    };
    for (size_t i = 0; i < BASE_COUNT(words); i++) {
        assert_word_refused(sample, words[i].offset, words[i].least_bad, words[i].name);
        if (words[i].least_bad)
            assert_word_refused(sample, words[i].offset, UINT32_MAX, words[i].name);
    }
    assert_word_refused(sample, offsetof(struct State, step), 19, "vknerf.step: not the state's");
}

/* ---- tensors ------------------------------------------------------------------------------- */

static void test_tensors(void **state)
{
    struct sample *sample = *state;
    for (size_t i = 0; i < TENSORS; i++) {
        struct safetensors_tensor *tensor = &sample->tensors[i], before = *tensor;
        char part[64];
        snprintf(part, sizeof(part), "tensor %s", before.name);
        tensor->type = SAFETENSORS_I32;
        assert_refused(sample, part);
        tensor->type = before.type;
        tensor->rank = 2;
        tensor->shape[1] = 1;
        assert_refused(sample, part);
        *tensor = before;
        uint64_t added = sizeof(struct State) - offsetof(struct State, tolerated);
        uint64_t lacking = i == STATE ? added / 4 + 1 : 1; /* older versions wrote fewer words */
        tensor->shape[0] -= lacking;
        tensor->size -= 4 * lacking;
        assert_refused(sample, part);
        *tensor = before;
        tensor->name = "another";
        assert_refused(sample, part);
        *tensor = before;
        if (tensor->type != SAFETENSORS_F32)
            continue;
        uint32_t *last = (uint32_t *)sample->data[i] + tensor->shape[0] - 1, word = *last;
        *last = 0xff800000u; /* -infinity */
        assert_refused(sample, part);
        *last = word;
    }
    ((uint32_t *)sample->data[COUNTS])[1] = 21;
    assert_refused(sample, "tensor counts: element 1 is 21, more than the 20 updates");
}

static void test_configuration(void **state)
{
    struct sample *sample = *state;
    const char *good = sample->metadata[1].value;
    sample->metadata[1].value = "{\"grid\": {\"levels\": 4}}";
    assert_refused(sample, "vknerf.config: settings of the model are missing");
    struct vkn_config other = *vkn_trainer_config(sample->tiny.trainer);
    other.grid.log2_entries++;
    char *text = vkn_config_write_json(&other);
    sample->metadata[1].value = text;
    assert_refused(sample, "tensor params has");
    free(text);
    const struct vkn_config *whole = vkn_trainer_config(sample->tiny.trainer);
    const char *keys[FIELD_MAX_KEYS];
    size_t count = field_shape_keys(whole, keys);
    assert_int_equal(count, 11);
    for (size_t i = 0; i < count; i++) {
        const struct config_setting *setting = config_find(keys[i]);
        struct vkn_config open = *whole;
        memset((char *)&open + setting->offset, 0, config_setting_size(setting));
        text = vkn_config_write_json(&open);
        sample->metadata[1].value = text;
        assert_refused(sample, "vknerf.config: settings of the model are missing");
        free(text);
    }
    for (int i = 0; i < 4; i++) {
        struct vkn_config other = *whole;
        other.march.sampling = i > 0 ? VKN_SAMPLING_HIERARCHICAL : VKN_SAMPLING_UNIFORM;
        other.march.ray_samples = 0;
        other.march.coarse_samples = i != 1;
        other.march.fine_samples = i != 2;
        text = vkn_config_write_json(&other);
        sample->metadata[1].value = text;
        assert_refused(sample, i < 3 ? "vknerf.config: settings of the model are missing"
                                     : "tensor coarse.params");
        free(text);
    }
    sample->metadata[1].value = good;
}

/* A run initialised from another run's weights inherits model settings that are not given. */
static void test_inheritance(void **state)
{
    struct sample *sample = *state;
    const struct vkn_config *from = vkn_trainer_config(sample->tiny.trainer);
    struct vkn_config open = {.steps = 7}, asked = {.grid.levels = from->grid.levels + 1};
    setup_inherit_model(&open, from);
    assert_int_equal(open.grid.finest, from->grid.finest);
    /* Settings that this model does not use are not inherited. */
    open.mlp.position_octaves = from->mlp.position_octaves;
    open.mlp.direction_octaves = from->mlp.direction_octaves;
    open.mlp.skip_layer = from->mlp.skip_layer;
    assert_memory_equal(&open.mlp, &from->mlp, sizeof open.mlp);
    assert_int_equal(open.model, VKN_MODEL_NGP);
    assert_int_equal(open.march.resolution, from->march.resolution);
    assert_int_equal(open.steps, 7);
    assert_int_equal(open.batch.samples, 0);
    setup_inherit_model(&asked, from);
    assert_int_equal(asked.grid.levels, from->grid.levels + 1);
    assert_int_equal(asked.grid.features, from->grid.features);
}

/* ---- readers and writers ------------------------------------------------------------------- */

/* Readers refuse NaN parameters, and a writer does not replace a good file with NaN parameters. */
static void test_not_finite(void **state)
{
    struct sample *sample = *state;
    vkn_renderer *renderer = NULL;
    const size_t size = sample->tensors[AVERAGE].size;
    float *good = sample->data[AVERAGE], *bad = base_alloc(size, 1);
    for (size_t i = 0; i < size / 4; i++)
        bad[i] = NAN;
    sample->tensors[AVERAGE].data = bad;
    assert_refused(sample, "tensor average: element 0 is not finite");
    assert_int_equal(vkn_trainer_resume(sample->tiny.trainer, sample->bad), VKN_BAD_INPUT);
    assert_int_equal(vkn_trainer_init(sample->tiny.trainer, sample->bad), VKN_BAD_INPUT);
    assert_int_equal(
        vkn_renderer_open(sample->tests->context, sample->bad, VKN_PRECISION_AUTO, &renderer),
        VKN_BAD_INPUT);
    const struct gpu_buffer *buffer = &sample->tiny.trainer->step.buffers.at[BIND_AVERAGE];
    tiny_put(&sample->tiny, buffer, bad);
    assert_int_equal(vkn_trainer_save(sample->tiny.trainer, sample->good), VKN_ERROR);
    assert_error("tensor average: element 0 is not finite: the training has diverged; not saved");
    struct safetensors_file *file = NULL;
    ok(checkpoint_open(sample->good, &file));
    safetensors_close(&file);
    tiny_put(&sample->tiny, buffer, good);
    sample->tensors[AVERAGE].data = good;
    free(bad);
}

/* A path that is not UTF-8 is found again; the file's own JSON is. */
static void test_scene_bytes(void **state)
{
    struct sample *sample = *state;
    struct vkn_scene *scene = sample->tiny.trainer->scene;
    char *path = scene->path, *odd = base_format("%s/caf\xe9", "scenes"), *header = NULL;
    size_t size = 0;
    scene->path = odd;
    ok(vkn_trainer_save(sample->tiny.trainer, sample->good));
    scene->path = path;
    struct safetensors_file *file = NULL;
    ok(checkpoint_open(sample->good, &file));
    assert_string_equal(safetensors_metadata_value(file, CHECKPOINT_SCENE),
                        "scenes/caf\xef\xbf\xbd");
    char *found = checkpoint_scene(file);
    assert_string_equal(found, odd);
    safetensors_close(&file);
    ok(base_file_read(sample->good, SIZE_MAX, &header, &size));
    uint64_t length = 0;
    memcpy(&length, header, 8);
    header[8 + length] = 0;
    assert_true(base_is_utf8(header + 8));
    free(header);
    free(found);
    free(odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),        cmocka_unit_test(test_older),
        cmocka_unit_test(test_older_state), cmocka_unit_test(test_state),
        cmocka_unit_test(test_tensors),     cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_inheritance), cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_scene_bytes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
