/* What the files of the workload share. */
#ifndef FIELD_WORKLOAD_PARTS_H
#define FIELD_WORKLOAD_PARTS_H

#include "field/workload.h"

#define WORKLOAD_RAYS       64u
#define WORKLOAD_LOCAL_SIZE 64u /* but of field_backward */

/* What a path computes. */
struct workload_results {
    float (*values)[4]; /* rgb and raw density of a sample */
    float *weights;     /* gradients of the MLPs' weights, summed */
    float *features;    /* gradients of the grid's: [level][sample][feature] */
};

struct field_workload {
    struct gpu_device *device;
    struct vkn_config config;
    struct field_model model;
    uint32_t sample_count, forward_groups, backward_groups;
    uint32_t runs;  /* of a program, to time it */
    double seconds; /* at least */
    struct Ray *rays;
    struct Sample *samples;
    uint32_t *live;
    float (*gradients)[4]; /* of raw rgb and raw density */
    float *params;
    struct workload_results expected; /* fp32's */
    double milliseconds;              /* fp32's */
};

/* Rays, samples, parameters and the gradients that field_backward begins with. */
vkn_status workload_fill(struct field_workload *work);
/* Gradients of the grid's features. */
uint64_t workload_features(const struct field_workload *work);
/* *compiled: a failure is not that of the path's programs. */
vkn_status workload_run(struct field_workload *work, const struct field_path *path,
                        struct workload_results *results, double *milliseconds, bool *compiled);

#endif
