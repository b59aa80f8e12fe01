/* Declares the state of synchronous data parallelism, and the copies between device and host. */
#ifndef STEP_RANKS_H
#define STEP_RANKS_H

#include "step/internal.h"

#define MAX_SEGMENTS (MAX_GRADIENT_BUCKETS + 1)

/* Formats of a field's gradients: f32, pairs of f16; the number of formats. */
enum { FLOATS, PACKED_F16, GRADIENT_FORMATS };

/* The state of synchronous data parallelism. */
struct step_ranks {
    uint32_t turns, fields; /* virtual ranks; fields of the step */
    uint32_t first_ray;     /* of the first turn */
    bool direct;            /* the host all-reduces the gradients in the step's mapped buffers */
    struct gpu_arena *arena;
    struct gpu_buffer saved_state; /* the state before the step, with which every turn begins */
    /* Host memory: gradients; step statistics [field]; occupancy cells, if each device updates a
     * share; the error map, if there are several devices. */
    struct gpu_buffer gradients[STEP_MAX_VIRTUAL_RANKS][STEP_FIELDS][GRADIENT_FORMATS];
    struct gpu_buffer statistics[STEP_MAX_VIRTUAL_RANKS];
    struct gpu_buffer cells, errors;
    struct segment segments[MAX_SEGMENTS]; /* of the first half; each completes one bucket */
    uint32_t buckets;
    /* All are recorded on first use; NULL before, and after forget_recordings. */
    struct gpu_recording *begin, *grid; /* start of an update interval: up to the cells; the rest */
    /* The first half by bucket; uploads of all-reduced buckets; the second half. */
    struct gpu_recording *first_half[STEP_MAX_VIRTUAL_RANKS][MAX_SEGMENTS], *imports[MAX_SEGMENTS],
        *second_half;
    double planned_seconds; /* time of an update interval when its submissions were chosen */
    bool begins_interval;   /* this step begins an update interval */
    uint64_t next;          /* number of the step that follows the last one begun */
    bool measuring;         /* this step is measured pass by pass */
    bool state_saved;       /* `saved_state` is the state before this step */
};

/* Allocates host memory for gradients, statistics, cells and error map, and saved_state. */
vkn_status ranks_allocate(const struct step *step, struct step_ranks *ranks);
/* Return the occupancy cells and the error map in host memory; values NULL unless each device
 * updates a share of the cells, or unless several devices draw rays by error. */
struct step_span ranks_cells(const struct step *step);
struct step_span ranks_errors(const struct step *step);
/* Records the copies of occupancy cells and error map to the host, or with `back` to the device. */
void ranks_record_interval(const struct step *step, struct gpu_recording *recording, bool back);
/* A copy between a buffer of the step and one of struct step_ranks. */
struct copy {
    const struct gpu_buffer *in_step, *in_ranks;
    uint64_t step_offset, ranks_offset, size; /* bytes */
};
/* Records the copy from `in_step` to `in_ranks`, or with `back` in the other direction. */
void ranks_record_copy(struct gpu_recording *recording, struct copy copy, bool back);
/* Record the copies of a gradient bucket, or of a turn's statistics, to the host or back. */
void ranks_record_bucket(const struct step *step, struct gpu_recording *recording, uint32_t turn,
                         uint32_t bucket, bool back);
void ranks_record_stats(const struct step *step, struct gpu_recording *recording, uint32_t turn,
                        bool back);

#endif
