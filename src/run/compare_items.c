/* Compares program, command line, effective configuration and devices between ranks. */
#include "run/compare.h"

#include <stdlib.h>
#include <string.h>

#include <vknerf/field.h>
#include <vknerf/vknerf.h>

#include "config/config.h"
#include "parallel/parallel.h"
#include "run/internal.h"
#include "train/train.h"

/* ---- the program ----------------------------------------------------------------------------- */

/* First message between ranks. Its layout must never change: other messages differ by version. */
struct greeting {
    char magic[16], version[112];
};

static const char magic[16] = "vknerf rank\n";

vkn_status compare_programs(struct parallel *comm)
{
    struct greeting mine = {0}, all[PARALLEL_MOST_RANKS];
    memcpy(mine.magic, magic, sizeof magic);
    snprintf(mine.version, sizeof mine.version, "vknerf %s (%s)", vkn_version(), base_commit());
    vkn_status status = parallel_gather(comm, &mine, sizeof mine, all);
    /* Versions before 0.1 sent a longer first message. */
    if (status != VKN_OK && strstr(vkn_last_error(), "TRUNCATE"))
        return base_fail(VKN_BAD_INPUT, "rank %u: another rank is of an earlier version than %s",
                         parallel_rank(comm), mine.version);
    BASE_TRY(status);
    for (uint32_t rank = 0; rank < parallel_size(comm); rank++) {
        all[rank].version[sizeof all[rank].version - 1] = '\0';
        bool known = memcmp(all[rank].magic, magic, sizeof magic) == 0;
        if (known && strcmp(all[rank].version, all[0].version) == 0)
            continue;
        parallel_mark_over(comm); /* every rank finds the same difference */
        return base_fail(
            VKN_BAD_INPUT, "rank %u: the program differs from rank 0's: %s instead of %s", rank,
            known ? all[rank].version : "an earlier version of vknerf", all[0].version);
    }
    return VKN_OK;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* Adds a checkpoint's step and the hash of its bytes. */
static vkn_status add_checkpoint(struct base_text *list, const char *option, const char *run)
{
    struct run_reached reached = {0};
    struct vkn_config config;
    char *file = NULL, *scene = NULL, text[32];
    uint64_t hash = 0;
    if (!run)
        return VKN_OK;
    vkn_status status = run_find_checkpoint(run, &file);
    if (status == VKN_OK)
        status = run_read_checkpoint(file, &config, &scene, &reached);
    if (status == VKN_OK)
        status = compare_hash_file(file, &hash);
    snprintf(text, sizeof text, "step %llu", (unsigned long long)reached.step);
    compare_add_value(list, option, text);
    snprintf(text, sizeof text, "content of %s", option);
    compare_add_hash(list, text, hash);
    free(file);
    free(scene);
    return status;
}

static vkn_status add_setting(struct base_text *list, const struct config_setting *setting,
                              const struct vkn_config *config)
{
    char *value = NULL;
    if (config_is_unset(config, setting->key))
        return VKN_OK;
    if (setting->type == CONFIG_POINTS) {
        compare_add_hash(
            list, setting->key,
            parallel_hash(0, (const char *)config + setting->offset, config_setting_size(setting)));
        return VKN_OK;
    }
    BASE_TRY(vkn_config_get(config, setting->key, &value));
    compare_add_value(list, setting->key, value);
    free(value);
    return VKN_OK;
}

static vkn_status add_config(struct base_text *list, const struct vkn_config *config)
{
    const char *field = vkn_field_source(config);
    if (field)
        compare_add_hash(list, "the field's GLSL", parallel_hash(0, field, strlen(field)));
    for (size_t i = 0; i < config_setting_count; i++)
        BASE_TRY(add_setting(list, &config_settings[i], config));
    return VKN_OK;
}

vkn_status compare_requests(struct parallel *comm, const struct vkn_train_params *params)
{
    struct base_text list = {0};
    vkn_status status = add_checkpoint(&list, "--resume", params->resume);
    if (status == VKN_OK)
        status = add_checkpoint(&list, "--init", params->init);
    if (status == VKN_OK)
        status = add_config(&list, params->config);
    status = compare_lists(comm, "the requested training differs", status, &list);
    free(list.data);
    return status;
}

vkn_status compare_configs(struct parallel *comm, const struct vkn_config *config)
{
    struct base_text list = {0};
    vkn_status status = add_config(&list, config);
    status = compare_lists(comm, "the effective configuration differs", status, &list);
    free(list.data);
    return status;
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool same_device(const struct compare_device *a, const struct compare_device *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->driver, b->driver) == 0;
}

vkn_status compare_devices(struct parallel *comm, const struct compare_device *mine,
                           const struct vkn_config *config, struct compare_device *devices)
{
    BASE_TRY(parallel_gather(comm, mine, sizeof *mine, devices));
    uint32_t rank = 1;
    while (rank < parallel_size(comm) && same_device(&devices[rank], &devices[0]))
        rank++;
    if (rank == parallel_size(comm) || config->parallel.mode == VKN_PARALLEL_AVERAGE)
        return VKN_OK;
    if (config->deterministic) {
        parallel_mark_over(comm); /* every rank finds the same difference */
        return base_fail(VKN_BAD_INPUT,
                         "rank %u: its device or driver differs from rank 0's, and --deterministic "
                         "needs bit-identical results on all ranks: %s (%s) instead of %s (%s)",
                         rank, devices[rank].name, devices[rank].driver, devices[0].name,
                         devices[0].driver);
    }
    if (parallel_rank(comm) == 0)
        base_log(BASE_LOG_WARNING,
                 "rank %u: its device or driver differs from rank 0's and may round differently; "
                 "then training ends at the next checkpoint, see parallel.mode=average: %s (%s) "
                 "instead of %s (%s)",
                 rank, devices[rank].name, devices[rank].driver, devices[0].name,
                 devices[0].driver);
    return VKN_OK;
}
