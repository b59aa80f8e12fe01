/* Declarations shared by the files of the bench module: a run of the command, its suites and their
 * results. */
#ifndef BENCH_INTERNAL_H
#define BENCH_INTERNAL_H

#include <vknerf/bench.h>

#include "gpu/gpu.h"

struct cJSON;
struct vendor;

/* ---- backends ------------------------------------------------------------------------------- */

/* A precision with its matrix settings to measure; corresponds to field_backend. */
struct bench_backend {
    char name[64];     /* "fp32", "coopmat 16x16x16 f32 conversions" */
    char pipeline[48]; /* suffix of its shaders' names: "fp32", "16x16x16_f16" */
    enum vkn_precision precision;
    struct gpu_matrix_shape shape; /* COOPMAT */
    bool f16_accumulate;           /* COOPMAT: accumulators are f16, not f32 */
    bool conversions; /* COOPMAT: activations stay in matrices, see matrix.conversions */
    double peak;      /* FLOP/s in registers; 0: not measured, or the results were wrong */
};
#define BENCH_MAX_BACKENDS 20u

/* Lists fp32, fp16, and the matrix shapes and accumulators that both the device and the shaders
 * support. Returns their number. */
uint32_t bench_list_backends(const struct gpu_capabilities *device,
                             const struct vkn_bench_params *params,
                             struct bench_backend backends[BENCH_MAX_BACKENDS]);
/* Sets the precision and matrix settings of a training run with that backend. */
void bench_backend_settings(const struct bench_backend *backend, struct vkn_config *config);

/* ---- a run of the command ------------------------------------------------------------------ */

/* State of a run of vknerf bench. */
struct bench {
    const struct vkn_bench_params *params;
    struct vkn_context *context; /* owns the device */
    struct gpu_device *device;
    const struct gpu_capabilities *capabilities;
    bool is_cpu;
    bool small; /* whether to use the small sizes for CPU devices */
    struct bench_backend backends[BENCH_MAX_BACKENDS];
    uint32_t backend_count;
    double copy_peak;        /* B/s, reads plus writes; 0: not measured */
    struct vendor *vendor;   /* library for matrix products; NULL: see vendor_text */
    char vendor_text[256];   /* version of the library, or why it is missing */
    struct cJSON *results;   /* array of results */
    struct cJSON *tuning;    /* of bench_tune; NULL: none */
    struct cJSON *pipelines; /* array of bench_pipelines; NULL: none */
    struct cJSON *sampling;  /* of bench_sampling; NULL: none */
    struct report_progress *progress;
    vkn_scene *scene;     /* params->scene; NULL: none */
    bool counting;        /* only count the cases */
    uint32_t done, total; /* number of cases begun, and of all cases */
};

/* Returns whether Ctrl-C was pressed. */
bool bench_stopped(const struct bench *bench);
/* Counts a case that is about to run. Returns false if it must not run, because cases are only
 * counted or Ctrl-C was pressed. */
bool bench_next(struct bench *bench);

/* ---- suites ---------------------------------------------------------------------------------- */

/* Run a suite: call bench_next before each case and bench_add_result after it. Fail only if no
 * further case can run: the device was lost, or memory for a reference is short. */
vkn_status bench_peaks(struct bench *bench);
vkn_status bench_gemm(struct bench *bench);
vkn_status bench_grid(struct bench *bench);
vkn_status bench_mlp(struct bench *bench);
vkn_status bench_step(struct bench *bench);
/* Compiles shaders and stores the compiler's statistics in bench->pipelines; a case is a shader. */
vkn_status bench_pipelines(struct bench *bench);
/* Trains with each way of sampling alternately, and reports in bench->sampling; a case is a time
 * slice. */
vkn_status bench_sampling(struct bench *bench);
/* Tunes the backend instead of running a suite, see vkn_bench_params.tune. */
vkn_status bench_tune(struct bench *bench);

/* ---- results ------------------------------------------------------------------------------- */

/* Time of an iteration of a case. */
struct bench_times {
    double median, lower, upper, least, most; /* seconds: quartiles, extremes */
    uint32_t repetitions;                     /* number of timed runs */
    uint32_t iterations;                      /* iterations of the case in each run */
    bool by_device_clock;                     /* false: measured by the host clock */
};

/* Largest relative difference to a reference in double precision. */
struct bench_check {
    double error, tolerance;
    uint32_t outputs; /* number of compared outputs */
};

#define BENCH_MAX_SIZES 6u

/* Result of a case: a row of the report. */
struct bench_result {
    const char *suite, *backend; /* backend: its name, "copy", or the vendor library's name */
    char name[64];               /* name of the case */
    struct {
        const char *name;
        double value;
    } sizes[BENCH_MAX_SIZES];     /* sizes of the case; the first NULL name ends the list */
    const char *unit;             /* "FLOP/s", "B/s" or "samples/s" */
    double flops, bytes, samples; /* per iteration; 0: does not apply */
    double peak;                  /* in `unit`; 0: none */
    struct bench_check check;
    struct bench_times times;
    const char *vendor; /* name of the vendor library's result for the same case; NULL: none */
    double vendor_rate; /* in `unit` */
    struct cJSON *more; /* further JSON fields, which bench_add_result frees; NULL: none */
    char fault[256];    /* why the case was not timed; empty: it was */
};

/* Returns the rate in result->unit; 0: not timed. */
double bench_rate(const struct bench_result *result);
void bench_add_result(struct bench *bench, const struct bench_result *result);
/* Appends a size of the case. */
void bench_add_size(struct bench_result *result, const char *name, double value);
/* Turns the failure of a case into its fault and returns VKN_OK; passes on VKN_NO_DEVICE and
 * VKN_INTERRUPTED. */
vkn_status bench_record_failure(struct bench_result *result, vkn_status status);
/* Adds an output to the check; its error is relative to `scale`, a typical output's size. */
void bench_compare(struct bench_check *check, double got, double want, double scale);
/* Returns whether the check passed; else sets the fault. */
bool bench_passed(struct bench_result *result);

/* ---- measuring ----------------------------------------------------------------------------- */

/* Records one iteration of a case. Successive iterations use different buffers, so that caches do
 * not speed them up. */
typedef void (*bench_record)(void *context, struct gpu_recording *recording, uint32_t iteration);

/* Runs the iterations in one submission and measures their time. */
vkn_status bench_run(struct bench *bench, bench_record record, void *context, uint32_t iterations,
                     double *seconds);
/* Warms up, then measures the time of an iteration repeatedly. */
vkn_status bench_measure(struct bench *bench, bench_record record, void *context,
                         struct bench_times *times);
/* Computes the statistics of `seconds`, which it sorts. */
void bench_summarize(double *seconds, uint32_t count, struct bench_times *times);
/* Returns how many times a case is timed. */
uint32_t bench_repetitions(const struct bench *bench);

/* ---- buffers and values -------------------------------------------------------------------- */

/* Returns how many copies of a case's buffers the iterations alternate between; bytes: per copy. */
uint32_t bench_sets(const struct bench *bench, uint64_t bytes);
/* Fills a buffer with a 32-bit value. */
vkn_status bench_fill(struct bench *bench, const struct gpu_buffer *buffer, uint32_t value);
/* Fills a buffer with repetitions of a pattern. */
vkn_status bench_upload_pattern(struct bench *bench, const struct gpu_buffer *buffer,
                                const void *pattern, uint64_t size);
/* Fills a buffer with 0, 1, 2, ... */
vkn_status bench_upload_indices(struct bench *bench, const struct gpu_buffer *buffer);
/* Uploads values, rounded to f16 if requested. */
vkn_status bench_upload_values(struct bench *bench, const struct gpu_buffer *buffer,
                               const float *numbers, uint64_t count, bool f16);

double bench_read_value(const void *numbers, uint64_t index, bool f16); /* reads an f16 or an f32 */
float bench_random(uint64_t *state);                              /* in [-1, 1), exact in f16 */
void bench_random_direction(uint64_t *state, float direction[3]); /* almost of unit length */

#endif
