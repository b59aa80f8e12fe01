/* What the passes of a training step have to do, as formulas of the configuration and of how many
 * rays and samples a step has. docs/cost_model.md is the same for people; tests/test_cost.c counts
 * by hand. */
#ifndef PIPELINE_COST_H
#define PIPELINE_COST_H

#include "field/field.h"
#include "field/path.h"

/* Of one pass in one step; of passes that run once a period, their share. */
struct cost {
    double flops;  /* a multiply-add is two, any other f32 or f16 operation one; integers none */
    double bytes;  /* loads, stores and atomics as written, whether a cache serves them or not; what
                      all invocations share (constants, weights) once */
    double memory; /* bytes that cross the memory's bus when caches are perfect: each touched byte
                      read once and written once */
    double atomics; /* on memory, one for each word */
};

/* What of a run the formulas know. */
struct cost_model {
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t layer_count, density_count; /* of all; of the density MLP */
    double levels, features;
    double table[MAX_LEVELS];                /* entries of each level */
    double params, mlp_params, used_weights; /* as stored, padding included; without padding */
    double activations;                      /* values of a row */
    double sh;                               /* operations of the direction's encoding */
    double parameter_bytes, feature_bytes;   /* as the field reads them */
    bool deterministic, half;
    bool scratch; /* rows go through memory for weight gradients */
    bool owned;   /* a level of the grid belongs to one subgroup, which adds without atomics */
    enum vkn_gradient_sums sums;
    double backward_groups, local_size, subgroup_size;
    double cells, resolution_cells, cameras, param_groups;
};

/* Of one step, means. */
struct cost_counts {
    double rays, marched, live;
    double touched;   /* grid entries that a gradient reached */
    double evaluated; /* cells at which an occupancy update evaluates the field */
};

void cost_model_create(const struct vkn_config *config, const struct field_model *model,
                       const struct field_path *path, const struct Config *constants,
                       uint32_t subgroup_size, struct cost_model *cost);
/* False for a name that is no pass. */
bool cost_of_pass(const struct cost_model *model, const struct cost_counts *counts,
                  const char *pass, struct cost *cost);

/* What a device reaches, per second; 0: not known. */
struct cost_peaks {
    double flops, bytes, atomics;
};

/* No device with these peaks does the pass in fewer seconds; 0 when no peak is known. *bound: what
 * it is bound by, "flops", "bytes" or "atomics". */
double cost_floor(const struct cost *cost, const struct cost_peaks *peaks, const char **bound);

#endif
