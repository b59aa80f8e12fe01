/* What was found out, by measuring, about the tunables of paths: the values to try, and those
 * remembered for a device, driver, model and the programs' code in the user's cache folder. */
#ifndef FIELD_TUNING_H
#define FIELD_TUNING_H

#include "field/path.h"

/* "rounds", "hold_sums", ... */
const char *field_tunable_name(enum field_tunable tunable);

#define FIELD_MAX_OPTIONS 12u
/* The values worth trying of one tunable that are legal for the path, all others being as they are,
 * in increasing order. Returns their number: 0 where the path has no such thing. */
uint32_t field_tuning_options(enum field_tunable tunable, const struct vkn_config *config,
                              const struct field_model *model,
                              const struct gpu_capabilities *device, const struct field_path *path,
                              uint32_t values[FIELD_MAX_OPTIONS]);

/* Tunes an untuned path as it is remembered. False, and nothing is changed, when nothing is, the
 * file is damaged or values are illegal; for deterministic runs, whose result no measurement
 * decides; with VKNERF_DISABLE=tuning, VKNERF_MEASURE=1 or while a test breaks something (but
 * VKNERF_SELF_TEST_BREAK=tuning, which breaks what is tuned). */
bool field_tune(const struct gpu_device *device, const struct vkn_config *config,
                const struct field_model *model, struct field_path *path);
/* What vknerf bench --tune saw: times as fast as untuned. */
struct field_speedups {
    double forward, backward;
};
/* Remembers the path's tunables, of an untuned one that there is nothing to remember. VKN_ERROR
 * when that is not possible: no folder, no space, programs compiled at run time. */
vkn_status field_tuning_keep(const struct gpu_device *device, const struct vkn_config *config,
                             const struct field_model *model, const struct field_path *path,
                             const struct field_speedups *speedups);

#define FIELD_TUNING_TEXT 192u
/* "tuned: rounds 8, backward_rows 64, ..." or "defaults: ...". */
const char *field_tuning_describe(const struct field_path *path, char text[FIELD_TUNING_TEXT]);

#endif
