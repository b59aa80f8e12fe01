/* What several ranks need to take a step together: ranks.c has its two halves, gradient_buckets.c
 * what passes between them. */
#ifndef STEP_RANKS_H
#define STEP_RANKS_H

#include "step/internal.h"

#define MAX_SEGMENTS (MAX_GRADIENT_BUCKETS + 1)

/* What is exchanged of a field's gradients. */
enum { FLOATS, PACKED_F16, GRADIENT_FORMATS };

struct step_ranks {
    uint32_t turns, fields;
    uint32_t first_ray; /* of the first turn */
    bool direct;        /* the host works on the gradients where they are */
    struct gpu_arena *arena;
    struct gpu_buffer before; /* the state that all turns begin with */
    struct gpu_buffer gradients[STEP_MAX_VIRTUAL_RANKS][STEP_FIELDS][GRADIENT_FORMATS]; /* host
                                                                                           memory,
                                                                                           by turn
                                                                                         */
    struct gpu_buffer found[STEP_MAX_VIRTUAL_RANKS];
    struct gpu_buffer cells;               /* host memory, where several devices raise them */
    struct segment segments[MAX_SEGMENTS]; /* of the first half; with each a piece is complete */
    uint32_t buckets;
    /* Recorded when they are first used; NULL: not yet, or anew for other parts. */
    struct gpu_recording *begin, *grid; /* of a period, up to the cells and from there */
    struct gpu_recording *first[STEP_MAX_VIRTUAL_RANKS][MAX_SEGMENTS], *back[MAX_SEGMENTS], *second;
    double planned; /* seconds of a period when the parts were chosen */
    bool began;     /* a period, with this step */
    bool unknown;   /* this step is measured, pass by pass */
    bool kept;      /* `before` is this step's */
};

/* Host memory for what is exchanged. */
vkn_status ranks_allocate(const struct step *step, struct step_ranks *ranks);
/* The occupancy grid's cells; values NULL: the device is the only one. */
struct step_span ranks_cells(const struct step *step);
/* Records their copy, from the device or back to it. */
void ranks_record_cells(const struct step *step, struct gpu_recording *recording, bool back);
/* Records a copy from a buffer of the step's to where it is kept, or back. */
struct copy {
    const struct gpu_buffer *own, *kept;
    uint64_t own_at, kept_at, size; /* bytes */
};
void ranks_record_copy(struct gpu_recording *recording, struct copy copy, bool back);
/* Records copies of a piece of the gradients, or of what else a turn has found, from the device or
 * back to it. */
void ranks_record_bucket(const struct step *step, struct gpu_recording *recording, uint32_t turn,
                         uint32_t piece, bool back);
void ranks_record_stats(const struct step *step, struct gpu_recording *recording, uint32_t turn,
                        bool back);

#endif
