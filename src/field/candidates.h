/* The paths that come into question for a configuration on a device. */
#ifndef FIELD_CANDIDATES_H
#define FIELD_CANDIDATES_H

#include "field/path.h"

enum field_verdict {
    FIELD_NOT_TRIED,
    FIELD_NOT_OFFERED, /* by the device, or switched off */
    FIELD_WRONG,       /* its results are not fp32's */
    FIELD_RIGHT,
};

struct field_candidate {
    enum vkn_precision precision;
    enum vkn_matrix_shape shape; /* COOPMAT */
    bool conversions;            /* COOPMAT */
    enum field_verdict verdict;
    double milliseconds;           /* when RIGHT; 0: not measured */
    char name[FIELD_PROGRAM_NAME]; /* see field_path_describe */
    char why[256];                 /* it is not tried, not offered or wrong */
    struct field_path path;        /* unless NOT_OFFERED */
};

#define FIELD_MAX_CANDIDATES 10u

/* With precision AUTO: fp32, fp16, cooperative matrices without and with conversions. With another:
 * it, then what to fall back to: other matrices, fp16, fp32. Returns their number. */
uint32_t field_list_candidates(const struct vkn_config *config,
                               struct field_candidate candidates[FIELD_MAX_CANDIDATES]);
/* Creates the candidate's path, tuned for the device and its matrices tested, or makes it
 * NOT_OFFERED; then vkn_last_error() says it in the words of field_path_create. *took_out is set
 * when the test took out matrices. */
vkn_status field_offer(struct gpu_device *device, const struct vkn_config *config,
                       const struct field_model *model, struct field_candidate *candidate,
                       bool *took_out);
/* Forgets how the path was tuned, and makes it what it was before. */
vkn_status field_untune(struct gpu_device *device, const struct vkn_config *config,
                        const struct field_model *model, struct field_candidate *candidate);
/* The right one with the shortest time, an earlier one unless it is at least 5% longer; the first
 * must be right. */
uint32_t field_fastest(const struct field_candidate *candidates, uint32_t count);

#endif
