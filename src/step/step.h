/* pipeline: assembles the recipes of field, rays, volume and optim to a training step, and reads
 * checkpoints. What trains and what renders stand on it. */
#ifndef STEP_STEP_H
#define STEP_STEP_H

#include <stdatomic.h>

#include <vknerf/run.h>

#include "field/field.h"
#include "passes/passes.h"
#include "scene/scene.h"

struct vkn_context {
    struct gpu_device *device;
    _Atomic uint32_t holders; /* beside the one who created it: the last to destroy it closes it */
};
vkn_context *context_hold(vkn_context *context); /* another one */
/* What `params`, which may be NULL, ask for. */
vkn_status context_options(const struct vkn_context_params *params, struct gpu_options *options);
vkn_status context_of_job(const struct vkn_job *job, vkn_context **context);

/* ---- configuration --------------------------------------------------------------------------- */
/* Makes a configuration effective: what is open becomes what suits scene and device. VKN_BAD_INPUT
 * names the key of what cannot be. */
vkn_status setup_resolve_config(struct vkn_config *config, const struct vkn_scene *scene,
                                const struct gpu_capabilities *device);
/* What is open of the model's kind and shape becomes as in `from`, whose weights it takes over. */
void setup_inherit_model(struct vkn_config *config, const struct vkn_config *from);
/* Where rays begin by default, training units in front of the camera. */
float setup_near_distance(const struct vkn_scene *scene);
/* Chooses precision and matrix settings of a configuration that is not effective yet, see
 * field_choose: setup_resolve_config goes on from there. */
struct field_choice;
vkn_status setup_choose_precision(struct gpu_device *device, const struct vkn_scene *scene,
                                  struct vkn_config *config, struct field_choice *choice);

/* An effective configuration as the device computes it. */
struct setup {
    struct vkn_config config;
    struct field_model model;
    struct field_backend backend;
    struct Config constants;
    struct gpu_constants specialization;
    uint32_t buckets; /* of a field's gradients */
    bool overlaps;    /* ranks exchange some of them while others are still computed */
    bool averaged;    /* ranks take periods alone, and are averaged then */
    float rate;       /* that learning rates are multiplied by for that */
    struct field_model proposal_model; /* march.sampling; kind NULL: there is none */
    struct field_backend proposal_backend;
};
/* The same as coarse samples see it: with a proposal its field and its samples. */
struct setup setup_of_coarse(const struct setup *setup);
/* VKN_BAD_INPUT names the key of what the device cannot do. */
vkn_status setup_create(const struct vkn_config *config, const struct gpu_capabilities *device,
                        struct setup *setup);
/* The same, with the backend as it was tuned for the device, see field_apply_tuning. */
vkn_status setup_create_tuned(const struct vkn_config *config, const struct gpu_device *device,
                              struct setup *setup);
/* Makes it that of device `number` of `devices` that train together (parallel.mode), each as many
 * ranks as it plays (parallel.ranks_per_device). */
void setup_set_rank(struct setup *setup, uint32_t devices, uint32_t number);
/* Sizes by the setup's constants, which may have been changed; no cameras and pixels. */
struct buffer_counts setup_counts(const struct setup *setup);
struct repeats setup_repeats(const struct setup *setup); /* what its passes repeat over */
/* Records the model's forward recipe: its programs in order, each in that many workgroups and with
 * a barrier behind it. `last`, unless NULL, finds densities alone in the place of the last. */
void setup_record_forward(const struct setup *setup, struct gpu_recording *recording,
                          struct gpu_pipeline *const pipelines[], const struct gpu_pipeline *last,
                          const struct gpu_bindings *bindings, uint32_t groups);
/* Mean over rays through training pixels: steps of the march; 0: none meets the cube. */
double setup_ray_steps(const struct setup *setup, const struct vkn_scene *scene);
struct Camera setup_camera(const struct scene_camera *camera); /* as the device has it */

/* ---- the training step ----------------------------------------------------------------------- */
#define STEP_RECORDINGS        2u
#define STEP_MAX_SETS          4u
#define STEP_MAX_VIRTUAL_RANKS 16u
#define STEP_FIELDS            2u /* the step's; the one of coarse samples */
#define STEP_MAX_PASSES        72u
#define STEP_MAX_PIPELINES     (STEP_MAX_PASSES + 2u)
#define STEP_MAX_TIMED         320u /* passes of a step and of what runs once a period, for each chunk */
#define STEP_MAX_TIMINGS       (UPDATE_INTERVAL * 256u + STEP_MAX_TIMED)

/* The training images on the device. */
struct step_images {
    uint32_t views;    /* training views, whose cameras come first in BIND_CAMERAS */
    uint32_t slots;    /* cameras behind those, of pieces of views that come and go; 0: all stay */
    uint32_t resident; /* views or pieces whose pixels are on the device */
    uint64_t pixels;   /* of BIND_PIXELS */
    float moments[2];  /* the training views' first and last */
    struct scene_share share; /* of views that stay, a turn has one in share.of; 0: all of them */
};

enum step_phase {
    STEP_INTERVAL_BEGIN,
    STEP_INTERVAL_GRID,
    STEP_EVERY,
    STEP_INTERVAL_END,
    STEP_AVERAGE
};

/* Samples of the step's rays, with what passes find out about them: coarse and fine ones, those of
 * a proposal. The first set is that of the step's own buffers. */
struct sample_set {
    struct buffers own;  /* of a further set: what differs from the first one's */
    bool coarse, learns; /* with the coarse field's parameters; from the first set's densities */
    const struct sample_set *coarse_set; /* the set of the coarse samples that this one's come from
                                          */
    struct gpu_bindings *training, *inference; /* BIND_PARAMS: the masters; their average */
};

/* A pass in its place. */
struct step_pass {
    const struct pass *pass;
    enum step_phase phase;
    uint32_t set;          /* of samples that it runs on */
    bool begins_set;       /* the first of the step that does: what the set counts begins anew */
    bool proposal, learns; /* its program is a proposal's; it runs when that learns */
    bool first;            /* of what runs in its place */
    struct gpu_pipeline *pipeline;
};

struct step {
    struct gpu_device *device;
    struct setup setup, coarse_setup; /* see setup_of_coarse */
    uint32_t local_size;
    struct buffers buffers;
    struct buffers coarse; /* of the coarse field or proposal, where there is one */
    struct sample_set sets[STEP_MAX_SETS];
    uint32_t set_count;
    struct step_pass passes[STEP_MAX_PASSES];
    size_t pass_count;
    struct gpu_pipeline *mark_unseen_cells, *round_parameters[STEP_FIELDS]; /* last a proposal's */
    struct gpu_recording *period[STEP_RECORDINGS];
    struct step_ranks *ranks; /* where several take a step together, in the place of periods */
    struct step_average *averaging; /* where they are averaged behind periods */
    bool profile;                   /* see step_profile */
    /* Parts of a period, see step_measure; all zero: one part. */
    bool measured;
    double pass_seconds[STEP_MAX_PASSES]; /* of each pass; negative: not known */
    double planned[STEP_RECORDINGS];      /* of the period when its parts were chosen */
    double submission_seconds;            /* of the part that is being recorded */
};

/* Allocates everything for a setup, fills in initial parameters and state, and creates the
 * programs. The caller fills BIND_CAMERAS, then calls step_begin. */
vkn_status step_create(struct gpu_device *device, const struct setup *setup,
                       const struct step_images *images, struct step *step);
void step_destroy(struct step *step);
/* The programs that step_create makes, and where in the step they go: those of its passes, which it
 * lists, and of what runs once; then, for coarse_setup, a proposal's. All but FIELD_FORWARD and the
 * like have PASS_LOCAL_SIZE invocations. Returns their number. */
size_t step_list_pipelines(struct step *step, bool proposal, struct field_pass_request *pipelines);
/* Records a step's passes in place `slot` of its period, from that name (NULL: the first) to before
 * the other's. */
void step_record_part(struct step *step, struct gpu_recording *recording, uint32_t slot,
                      const char *from, const char *until);
/* Finds the cells that no camera sees, and records the period, unless constants.ranks, which the
 * caller sets before step_create, are more than one. */
vkn_status step_begin(struct step *step);
/* Bytes that step_create would allocate, but for alignment; gpu_memory_check of them and
 * `exchange`, `ranks` times. */
uint64_t step_memory(const struct setup *setup, const struct step_images *images);
vkn_status step_check_memory(const struct gpu_device *device, const struct setup *setup,
                             const struct step_images *images, uint64_t exchange, uint64_t ranks);
/* Lists the buffers of the step that a checkpoint keeps, in their order. Returns their number. */
size_t step_list_saved(const struct step *step, struct saved_buffer kept[MAX_SAVED_BUFFERS]);
/* Returns the step's buffer of one of them. */
const struct gpu_buffer *step_saved(const struct step *step, const struct saved_buffer *kept);
vkn_status step_pack_occupancy(struct step *step); /* bits from the occupancy values and the state's
                                                      threshold */
vkn_status step_round_parameters(struct step *step); /* refreshes the 16-bit copies of what was
                                                        uploaded */
/* Bytes of a text that names what is not finite, the first that is computed: of weights, moments
 * and the average; with occupancy; of what one more step computes, which changes nothing.
 */
#define STEP_NONFINITE_TEXT 384u
bool step_nonfinite_weights(struct step *step, char text[STEP_NONFINITE_TEXT]);
bool step_nonfinite_saved(struct step *step, char text[STEP_NONFINITE_TEXT]);
bool step_nonfinite_values(struct step *step, char text[STEP_NONFINITE_TEXT]);
struct step_timing { /* one run of a pass */
    const char *name;
    uint32_t slot;     /* place of its step in the period; UPDATE_INTERVAL: once a period */
    double begin, end; /* seconds on the device's clock */
    bool again;        /* a further chunk, or turn, of a pass that the slot has had */
};
/* Whether what is handed to the device at once is to adapt to the time that it takes: a GPU may
 * have a watchdog, and a screen. CPU devices have neither. */
bool step_splits_submissions(const struct step *step);
/* Runs the step in place `slot` of its period, pass by pass, and takes the time; the step must not
 * be beyond Control.step_limit. */
vkn_status step_measure(struct step *step, uint32_t slot);
/* What a finished period tells: its timings or, without any, the seconds it took; 0: unknown. */
void step_update_times(struct step *step, const struct step_timing *timings, uint32_t count,
                       double seconds);
double step_seconds(const struct step *step); /* of one step, as measured */
/* From the next period on: live samples wanted in a step, no more than it was created for. */
vkn_status step_set_samples(struct step *step, uint32_t samples);
/* Cuts the period into parts of 50 ms at most, as far as single passes allow, where it is not; the
 * recording must not be in flight. */
vkn_status step_choose_submissions(struct step *step, uint32_t recording);
vkn_status step_submit(struct step *step, uint32_t recording);
vkn_status step_wait(struct step *step, uint32_t recording);
bool step_wait_a_while(const struct step *step, uint32_t recording, double seconds); /* as gpu_ */
/* Records the period anew, none being in flight: from here on every pass is timed, from begin to
 * end. Else only the last step's are, each up to the next, which is all that their times take. */
vkn_status step_profile(struct step *step);
/* The timed passes of a recording in order, after step_wait; none on devices without timestamps. */
uint32_t step_timings(struct step *step, uint32_t recording,
                      struct step_timing timings[STEP_MAX_TIMINGS]);
/* What a pass of the setup's step costs in one step, by its name in step_timings, on a device of
 * that subgroup size; passes that run once a period count with their share. False for a name that
 * is no pass. */
bool setup_cost(const struct setup *setup, uint32_t subgroup_size, const struct cost_counts *counts,
                const char *pass, struct cost *cost);
struct cost_peaks {
    double flops, bytes, atomics;
}; /* what a device reaches, per second; 0: not known */
/* No device with these peaks does the pass in fewer seconds; 0 when no peak is known. *bound: what
 * it is bound by, "flops", "bytes" or "atomics". */
double cost_floor(const struct cost *cost, const struct cost_peaks *peaks, const char **bound);

/* ---- steps that several ranks take together -------------------------------------------------- */
/* Each from rays to gradients; all from their sums, which the caller forms, to the same weights.
 * The device plays step_virtual_ranks ranks one after the other (parallel.ranks_per_device), whose
 * rays are numbered from constants.first_ray + turn * constants.ray_capacity on. */
uint32_t step_virtual_ranks(const struct step *step);
/* Gradients come in pieces, one after the other: those of coarse samples, then levels of a grid
 * from coarse to fine. Each in host memory of the step's, and there when it has been waited for. */
struct step_span {
    float *values;
    size_t count; /* words */
    bool halves;  /* of two f16 each */
};
struct step_bucket {
    struct step_span spans[2 * STEP_FIELDS];
    uint32_t count;
};
uint32_t step_buckets(const struct step *step);
struct step_bucket step_bucket(const struct step *step, uint32_t turn, uint32_t piece);
uint64_t step_bucket_bytes(const struct step *step); /* bytes of all */
/* What else a turn has found, with the last piece: for each of step_fields, the coarse one last. */
struct RankStats *step_statistics(const struct step *step, uint32_t turn);
uint32_t step_fields(const struct step *step);
/* Makes numbers of this rank the mean of all ranks', or the largest; every rank gets the same. */
typedef vkn_status step_all_reduce(void *context, float *values, size_t count, bool largest);
/* Before the first turn of the step behind `number` finished ones: what begins a period, if it
 * does. Devices raise cells of the occupancy grid each for all, and combine them. */
vkn_status step_begin_interval(struct step *step, uint64_t number, step_all_reduce *combine,
                               void *context);
vkn_status step_submit_gradients(struct step *step, uint32_t turn);
vkn_status step_wait_bucket(struct step *step, uint32_t turn, uint32_t piece);
bool step_wait_bucket_a_while(const struct step *step, uint32_t turn, uint32_t piece,
                              double seconds);
/* The first turn's step_bucket holds means: to the device with them. */
vkn_status step_submit_bucket(struct step *step, uint32_t piece);
/* When all pieces are submitted: with the sums that the first turn's step_statistics holds. */
vkn_status step_submit_weights(struct step *step);
vkn_status step_wait_weights(struct step *step);
/* Instead of step_submit_weights: the step is not taken. */
vkn_status step_abandon(struct step *step);
/* After step_wait_weights: of a period's begin, or of the step. */
uint32_t step_half_timings(struct step *step, bool begin, uint64_t number,
                           struct step_timing timings[STEP_MAX_TIMINGS]);

/* ---- ranks that take periods alone ----------------------------------------------------------- */
/* All ranks are the same: steps are counted from here on. */
vkn_status step_begin_average(struct step *step);
/* Averages what ranks have come to, and begins anew. `updates`: of the one that has done fewest. */
vkn_status step_average(struct step *step, uint32_t updates, step_all_reduce *combine,
                        void *context);

#endif
