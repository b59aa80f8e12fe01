/* Inside of the bench room: a run of the command, its suites and their results. */
#ifndef BENCH_INTERNAL_H
#define BENCH_INTERNAL_H

#include <vknerf/bench.h>

#include "gpu/gpu.h"

struct cJSON;
struct vendor;

/* ---- backends ------------------------------------------------------------------------------- */

/* A way to compute; what field_backend is to the training step. */
struct bench_backend {
    char name[64];     /* "fp32", "coopmat 16x16x16 f32 conversions" */
    char pipeline[48]; /* suffix of its programs: "fp32", "16x16x16_f16" */
    enum vkn_precision precision;
    struct gpu_matrix_shape shape; /* COOPMAT */
    bool f16_accumulate;           /* COOPMAT: f16 instead of f32 */
    bool conversions; /* COOPMAT: activations stay in matrices, see matrix.conversions */
    double peak;      /* FLOP/s in registers; 0: not measured or wrong */
};
#define BENCH_MAX_BACKENDS 20u

/* fp32, fp16 and every shape and accumulator that both the device and the programs have. */
uint32_t bench_list_backends(const struct gpu_capabilities *device,
                             const struct vkn_bench_params *params,
                             struct bench_backend backends[BENCH_MAX_BACKENDS]);
/* The matrix settings of a training run in that backend. */
void bench_backend_settings(const struct bench_backend *backend, struct vkn_config *config);

/* ---- a run of the command ------------------------------------------------------------------ */

struct bench {
    const struct vkn_bench_params *params;
    struct vkn_context *context; /* owns the device */
    struct gpu_device *device;
    const struct gpu_capabilities *capabilities;
    bool cpu;   /* a CPU device */
    bool small; /* sizes for a CPU device */
    struct bench_backend backends[BENCH_MAX_BACKENDS];
    uint32_t backend_count;
    double copy_peak;        /* B/s, read and written; 0: not measured */
    struct vendor *vendor;   /* its library of products; NULL: see vendor_text */
    char vendor_text[256];   /* its version, or why there is none */
    struct cJSON *results;   /* array */
    struct cJSON *tuning;    /* of bench_tune; NULL: none */
    struct cJSON *pipelines; /* of bench_programs, array; NULL: none */
    struct cJSON *sampling;  /* of bench_sampling; NULL: none */
    struct report_progress *progress;
    vkn_scene *scene;     /* params->scene; NULL: none */
    bool counting;        /* cases are counted, not run */
    uint32_t done, total; /* cases */
};

bool bench_stopped(const struct bench *bench);
/* Called before each case: false when it shall not run, for it is only counted or Ctrl-C came. */
bool bench_next(struct bench *bench);

/* ---- suites: each calls bench_next for each of its cases, and bench_add_result after it
 * ------------ */

/* Fails only when nothing further can run: the device is lost, memory for a reference is missing.
 */
vkn_status bench_peaks(struct bench *bench);
vkn_status bench_gemm(struct bench *bench);
vkn_status bench_grid(struct bench *bench);
vkn_status bench_mlp(struct bench *bench);
vkn_status bench_step(struct bench *bench);
/* Compiles instead of measuring: its cases are programs, its results bench->programs. */
vkn_status bench_programs(struct bench *bench);
/* Trains with each way of sampling by turns: its cases are turns, its results bench->sampling. */
vkn_status bench_sampling(struct bench *bench);
/* No suite: see vkn_bench_params.tune. */
vkn_status bench_tune(struct bench *bench);

/* ---- results ------------------------------------------------------------------------------- */

struct bench_times {
    double median, lower, upper, least, most; /* seconds; quartiles and extremes */
    uint32_t repetitions;                     /* timed */
    uint32_t iterations;                      /* of the case in each */
    bool device;                              /* its timestamps; else the host's clock */
};

/* How far results are from a reference in double precision, as a share of their size. */
struct bench_check {
    double error, tolerance;
    uint32_t outputs; /* compared */
};

#define BENCH_MAX_SIZES 6u

struct bench_result {
    const char *suite, *backend; /* the backend's name, also "copy" or the vendor library's */
    char name[64];               /* of the case */
    struct {
        const char *name;
        double value;
    } sizes[BENCH_MAX_SIZES];     /* of the case; ends with a NULL */
    const char *unit;             /* "FLOP/s", "B/s" or "samples/s" */
    double flops, bytes, samples; /* of one turn; 0: does not apply */
    double peak;                  /* in `unit`; 0: none */
    struct bench_check check;
    struct bench_times times;
    const char *vendor; /* backend of the vendor library's product of the same case; NULL: none */
    double vendor_rate;
    struct cJSON *more; /* further fields; bench_add_result takes it over. NULL: none */
    char fault[256];    /* why it was not timed; empty: it was */
};

/* Units of the result's kind per second; 0 when it was not timed. */
double bench_rate(const struct bench_result *result);
void bench_add_result(struct bench *bench, const struct bench_result *result);
/* Sets a size of the case. */
void bench_add_size(struct bench_result *result, const char *name, double value);
/* Turns a failure of one case into its fault; VKN_NO_DEVICE and VKN_INTERRUPTED are passed on. */
vkn_status bench_record_failure(struct bench_result *result, vkn_status status);
/* Folds an output into the check; `scale` is the size of a typical one. */
void bench_compare(struct bench_check *check, double got, double want, double scale);
/* Fills in a fault unless the check passed. */
bool bench_passed(struct bench_result *result);

/* ---- measuring ----------------------------------------------------------------------------- */

/* Records one turn of a case. Turn after turn uses other memory, so that caches do not flatter. */
typedef void (*bench_record)(void *context, struct gpu_recording *recording, uint32_t iteration);

/* Runs turns once. */
vkn_status bench_run(struct bench *bench, bench_record record, void *context, uint32_t iterations,
                     double *seconds);
/* Warms up, then times. */
vkn_status bench_measure(struct bench *bench, bench_record record, void *context,
                         struct bench_times *times);
/* Statistics of seconds, which it sorts. */
void bench_summarize(double *seconds, uint32_t count, struct bench_times *times);
uint32_t bench_repetitions(const struct bench *bench);

/* ---- buffers and numbers ------------------------------------------------------------------- */

/* Sets of a case's memory to take turns with. */
uint32_t bench_sets(const struct bench *bench, uint64_t bytes);
/* Records whole numbers as 32 bits until the end of the buffer. */
vkn_status bench_fill(struct bench *bench, const struct gpu_buffer *buffer, uint32_t value);
/* Fills a buffer with repetitions of a pattern. */
vkn_status bench_upload_pattern(struct bench *bench, const struct gpu_buffer *buffer,
                                const void *pattern, uint64_t size);
/* Fills a buffer with 0, 1, 2, ... */
vkn_status bench_upload_indices(struct bench *bench, const struct gpu_buffer *buffer);
/* Uploads numbers, rounded to f16 where `half` says so. */
vkn_status bench_upload_values(struct bench *bench, const struct gpu_buffer *buffer,
                               const float *numbers, uint64_t count, bool half);

double bench_read_value(const void *numbers, uint64_t index, bool half); /* of float or of f16 */
float bench_random(uint64_t *state);                              /* in [-1, 1), exact in f16 */
void bench_random_direction(uint64_t *state, float direction[3]); /* of unit length, nearly */

#endif
