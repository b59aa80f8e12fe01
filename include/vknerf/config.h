/* vknerf/config.h: every setting of a training run.
 *
 * In this struct zero means "the default", which for the settings marked * depends on the device and
 * the scene; the trainer resolves them, and vkn_trainer_config gives the effective values that
 * config.json records. Where zero itself would be of use and is not the default, a negative number
 * stands for it (march.cone_angle, optimizer.weight_decay).
 * In texts and files 0 means zero, never the default: vkn_config_set and the readers of JSON store
 * what the struct has for it (0 where that means zero, as for seed, seconds and clip_norm, else -1),
 * and refuse it as out of range where there is no such thing. The default is written "default", in
 * JSON also null, and vkn_config_write_json writes null for it.
 * Each field is a key of --config FILE.json and of --set key=value by the path in vkn_config_write_json's
 * output, for example "optimizer.learning_rate". */
#ifndef VKNERF_CONFIG_H
#define VKNERF_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <vknerf/error.h>

enum vkn_background { VKN_BACKGROUND_DEFAULT, VKN_BACKGROUND_RANDOM, VKN_BACKGROUND_WHITE, VKN_BACKGROUND_BLACK };
enum vkn_model { VKN_MODEL_DEFAULT, VKN_MODEL_NGP };
enum vkn_precision { VKN_PRECISION_AUTO, VKN_PRECISION_FP32, VKN_PRECISION_FP16, VKN_PRECISION_COOPMAT };
/* How gradients of grid entries are added up: atomic f32 addition; 64-bit fixed point in two integers,
 * the same in any order; f32 by compare-and-swap; two f16 at a time. */
enum vkn_gradient_sums { VKN_SUMS_DEFAULT, VKN_SUMS_FLOAT, VKN_SUMS_FIXED, VKN_SUMS_SWAP, VKN_SUMS_HALF };
/* M x N x K of a cooperative-matrix product. */
enum vkn_matrix_shape {
    VKN_SHAPE_DEFAULT, VKN_SHAPE_8X8X8, VKN_SHAPE_8X8X16, VKN_SHAPE_8X16X16, VKN_SHAPE_16X8X16,
    VKN_SHAPE_16X16X16
};
enum vkn_accumulate { VKN_ACCUMULATE_DEFAULT, VKN_ACCUMULATE_F32, VKN_ACCUMULATE_F16 };
enum vkn_scene_format { VKN_SCENE_AUTO, VKN_SCENE_TRANSFORMS, VKN_SCENE_COLMAP, VKN_SCENE_LLFF };
enum vkn_loss { VKN_LOSS_DEFAULT, VKN_LOSS_HUBER, VKN_LOSS_L2, VKN_LOSS_L1 };
enum vkn_loss_scale {
    VKN_LOSS_SCALE_DEFAULT, VKN_LOSS_SCALE_STATIC, VKN_LOSS_SCALE_DYNAMIC, VKN_LOSS_SCALE_SCHEDULE
};

/* How the learning rate falls: at milestones; exponentially (NeRF) or along half a cosine to a final
 * rate; as points say. */
enum vkn_rate_schedule {
    VKN_RATE_DEFAULT, VKN_RATE_STEP, VKN_RATE_EXPONENTIAL, VKN_RATE_COSINE, VKN_RATE_FILE
};

enum vkn_switch { VKN_SWITCH_DEFAULT, VKN_SWITCH_ON, VKN_SWITCH_OFF };
/* What lies outside of the cube of side aabb_scale: nothing, or all that is left of space, drawn in to
 * a cube of twice the side (Mip-NeRF 360's contraction in the maximum norm). */
enum vkn_contraction { VKN_CONTRACTION_DEFAULT, VKN_CONTRACTION_NONE, VKN_CONTRACTION_CUBE };

#define VKN_SCHEDULE_POINTS 32
/* The loss scale once `step` steps are finished, until the next point; the learning rate then, from
 * which it goes straight to the next point's. */
struct vkn_schedule_point {
    uint32_t step;
    float value;
};

#define VKN_STEPS 32
/* Which steps something happens at, beside the end; all zero: none. */
struct vkn_steps {
    uint32_t every;         /* multiples of this; with `factor` the first of a series */
    float factor;           /* each step of the series is so many times the one before; 0: no series */
    uint32_t at[VKN_STEPS]; /* without `every`: these, increasing; ends with 0 */
};

struct vkn_config {
    enum vkn_model model;
    enum vkn_precision precision;   /* auto: the fastest that the device offers* */
    enum vkn_gradient_sums gradient_sums; /* default float, fixed when deterministic or not offered* */
    enum vkn_background background; /* training background; default random */
    uint64_t seed;
    bool deterministic;             /* fixed-point accumulation: same seed and device, same bits */
    uint32_t steps;                 /* training stops after this many; default 20000*, or no limit when seconds is set */
    double seconds;                 /* training stops after this long; 0: no limit */
    struct vkn_steps eval_every;    /* quick evaluations */
    uint32_t save_every;            /* steps between checkpoints; 0: by time */
    double save_seconds;            /* between checkpoints; default 60, none with save_every; negative: none */
    uint32_t keep;                  /* newest checkpoints that stay, each with a name of its own; default 1,
                                       which has none: the newest alone */
    uint32_t eval_views;            /* of an evaluation on the way, spread over the test views; default 4 */

    struct {
        enum vkn_switch tensorboard; /* event files; default on */
    } log;

    struct {
        enum vkn_scene_format format; /* how the scene is written; default: found out from its files* */
        uint32_t downscale;         /* default 1 */
        float scale;                /* dataset to training space; 0: the file's, its dialect's or measured* */
        float offset[3];            /* added to what scale makes of the dataset, when placed */
        uint32_t aabb_scale;        /* side of the reconstructed cube, power of two; 0: the file's or measured* */
        bool placed;                /* scale, offset and aabb_scale are given, by the run that chose them:
                                       nothing is taken from the file or measured* */
        enum vkn_contraction contraction; /* default none */
        uint64_t image_budget;      /* bytes of training images on the device; where they do not fit, a
                                       part is there at a time. 0: what the device has room for* */
        uint64_t host_budget;       /* bytes of decoded images kept in host memory; where they do not fit,
                                       files are decoded again. 0: a quarter of the machine's memory */
    } scene;

    struct {                        /* training begins with small images */
        bool enabled;
        uint32_t start_downscale;   /* on top of the scene's: 2, 4 or 8; default 4 */
        float milestones[3];        /* shares of the training at which it halves; default 0.1, 0.25, 0.5 */
    } progressive;

    struct {
        uint32_t levels;            /* default 16 */
        uint32_t features;          /* per level, 2 or 4; default 2 */
        uint32_t log2_entries;      /* of a level's table; default 19, CPU devices 15* */
        uint32_t coarsest;          /* grid points along an edge of the coarsest level; default 16 */
        uint32_t finest;            /* of the finest; default 2048 x aabb_scale, CPU devices 512 x,
                                       twice that when space is contracted* */
    } grid;

    struct {
        uint32_t density_width, density_layers; /* hidden; default 64, 1. Widths are multiples of 16, 16..128 */
        uint32_t geometry;                      /* outputs of the density MLP; default 16 */
        uint32_t color_width, color_layers;     /* hidden; default 64, 2 */
        uint32_t sh_degree;                     /* of the direction's spherical harmonics, 1..4; default 4 */
    } mlp;

    struct {                        /* of cooperative matrices */
        enum vkn_matrix_shape shape;    /* default the largest that the device offers* */
        enum vkn_accumulate accumulate; /* default f32 */
        bool conversions;           /* activations stay in registers (VK_NV_cooperative_matrix2) */
    } matrix;

    struct {
        uint32_t samples;           /* live samples per step; default 2^18, CPU devices 2^14* */
        uint32_t max_rays;          /* default 2^17 / 2^14* */
    } batch;

    struct {
        uint32_t resolution;        /* of the occupancy grid, multiple of 8 and power of two; default 128, CPU devices 64* */
        float decay;                /* default 0.95 */
        float threshold;            /* optical thickness of a smallest step; default 0.01 */
        float cone_angle;           /* default 0 when aabb_scale is 1 and space not contracted,
                                       else 1/256, CPU devices 1/64*; negative: 0 */
        uint32_t steps_per_unit;    /* smallest step = sqrt(3) / this; default 1024, CPU devices 256* */
        float early_stop;           /* transmittance; default 1e-4 */
        float near_distance;        /* training units in front of the camera; default 0.1, less for nearer content* */
    } march;

    struct {
        enum vkn_loss kind;         /* default Huber */
        float delta;                /* Huber's; default 0.1 */
    } loss;

    struct {
        float learning_rate;        /* default 1e-2 */
        float beta1, beta2, epsilon; /* defaults 0.9, 0.99, 1e-15 */
        float weight_decay;         /* L2 on MLP weights; default 1e-6; negative: none */
        uint32_t warmup_steps;      /* the rate rises linearly; default 100, a twentieth of runs below 2000
                                       steps, none (1) with a schedule from a file* */
        enum vkn_rate_schedule schedule; /* default step; file when rates are given* */
        float final_rate;           /* of exponential and cosine, which reach it at the end of training by
                                       steps or time; default a hundredth of learning_rate* */
        struct vkn_schedule_point rates[VKN_SCHEDULE_POINTS]; /* as loss_scale.schedule */
        float decay_factor;         /* of step: learning rate factor at each milestone; default 0.33 */
        float milestones[3];        /* shares of the training; default 1/2, 3/4, 9/10 */
        uint32_t decay_start, decay_interval; /* without a limit: steps; default 20000, 10000 */
        float average_decay;        /* moving average of the weights, per step; default 0.95 */
        float clip_norm;            /* global gradient norm; 0: no clipping */
    } optimizer;

    struct {
        enum vkn_loss_scale kind;   /* default static in fp32, else dynamic; schedule when that is given* */
        float initial;              /* default 65536 when dynamic, the first of a schedule, else 1* */
        float growth, backoff;      /* dynamic: factors; default 2, 0.5 */
        uint32_t interval;          /* dynamic: good steps before growth; default 2000 */
        uint32_t falls;             /* dynamic: back-offs without such an interval between that lower the
                                       learning rate for good; default 12 */
        float fall_factor;          /* by this factor; default 0.5, 1: never */
        struct vkn_schedule_point schedule[VKN_SCHEDULE_POINTS]; /* by increasing step; ends with a value of 0 */
    } loss_scale;
};

/* One setting by its path, from text ("optimizer.learning_rate", "5e-3"). VKN_BAD_INPUT names the key and
 * what it accepts, and suggests the nearest key for an unknown one. `source` (a file name or "--set")
 * begins the message. "default" is the default; whole numbers may end in k, M or G (1000, ...), bytes in
 * K, M or G (1024, ...), seconds in s, m or h. */
vkn_status vkn_config_set(struct vkn_config *config, const char *source, const char *key, const char *value);
/* A whole number that may end in k, M or G: "20k", "1.5M". False when it is none below 2^64. */
bool vkn_parse_count(const char *text, uint64_t *count);
/* All keys that a JSON file holds: nested objects, or paths as keys. */
vkn_status vkn_config_read_json(struct vkn_config *config, const char *file);
/* The same from a JSON text; `source` names it in messages. Keys that are not settings are an error
 * unless `ignore_unknown`, which is for what a run recorded (config.json also holds the command and the
 * device; a 0 out of range there is the default, as earlier versions wrote it). */
vkn_status vkn_config_parse_json(struct vkn_config *config, const char *source, const char *json,
                                 bool ignore_unknown);
/* The configuration as a nested JSON object in fresh memory that the caller frees; NULL on no memory. */
char *vkn_config_write_json(const struct vkn_config *config);

#endif
