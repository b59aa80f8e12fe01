/* The choice of a path: the fastest that is right, or the one asked for unless it is wrong. */
#ifndef FIELD_CHOOSE_H
#define FIELD_CHOOSE_H

#include "field/candidates.h"
#include "field/policy.h"

struct field_choice {
    struct field_candidate candidates[FIELD_MAX_CANDIDATES];
    uint32_t count, chosen;
    char why[320];
    char why_sums[128]; /* of the grid's gradients */
};

/* Turns precision AUTO into the fastest path that passes the self-test on this device, from one
 * measurement that is remembered; without a measurement into fp32 on CPU devices, where that is
 * known to be fastest, and for deterministic runs, which a measurement must not decide about.
 * Another precision is tested once and, when wrong, replaced with a warning: other matrices, then
 * fp16, then fp32. Expects an effective model; sets precision and matrix settings. VKN_BAD_INPUT as
 * field_path_create for what the device does not offer; VKN_NO_DEVICE when it is lost. */
vkn_status field_choose(struct gpu_device *device, struct vkn_config *config,
                        struct field_choice *choice);
/* Why the chosen path does an operation the way it does. */
const char *field_choice_why(const struct field_choice *choice, enum field_operation operation);

#endif
