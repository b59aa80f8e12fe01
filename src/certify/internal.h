/* Declares what the files of certify share besides the checks. */
#ifndef CERTIFY_INTERNAL_H
#define CERTIFY_INTERNAL_H

#include <stdio.h>

#include "certify/check.h"
#include "gpu/gpu.h"

struct cJSON;
struct report_progress;
struct vkn_certify_params;
struct vkn_job;

/* ---- running tests --------------------------------------------------------------------------- */

/* Runs a test and writes what it finds to `events`, an object per line:
 *   {"begin": TEST}, {"pass": SHADER}, {"note": TEXT}: now
 *   {"result": "passed" | "failed", "test", "seconds", "message", "pass", "backend", "feature",
 *    "passes": [SHADER], "figures": [{"what", "backend", "precision", "error", "tolerance",
 *    "error_ulps", "tolerance_ulps"}]}
 * Returns whether the test passed. */
bool check_run(const struct certify_test *test, struct gpu_device *device, FILE *events);
/* Write an event: an object, which is deleted, or a text. */
void check_event(FILE *events, struct cJSON *event);
void check_text_event(FILE *events, const char *key, const char *text);
/* Makes check_everything() true. */
void check_include_everything(bool wanted);

/* ---- parts ----------------------------------------------------------------------------------- */

/* Names of the parts besides certify_parts. A part's name may end in the suffix: its tests then run
 * with the kernels of GPUs on a CPU device. */
#define CERTIFY_DEVICE     "device"    /* opens the device, with its self-test */
#define CERTIFY_TRAININGS  "trainings" /* trainings of the bundled scene */
#define CERTIFY_BENCH      "bench"     /* quick measurements of vknerf bench */
#define CERTIFY_GPU_SUFFIX "/gpu-kernels"
extern const struct certify_part *const certify_parts[];
extern const size_t certify_part_count;
/* Finds the part and the kernels that a name stands for; NULL: there is none. */
const struct certify_part *certify_find_part(const char *name, unsigned *kernels);
/* Returns the number of tests that run with these kernels. */
size_t certify_count_tests(const struct certify_part *part, unsigned kernels);

/* ---- the certificate ------------------------------------------------------------------------- */

/* A certificate that is being made. */
struct certificate {
    const struct vkn_certify_params *params;
    const struct vkn_job *job;
    struct report_progress *progress;
    struct cJSON *json, *parts; /* owned; parts belongs to json */
    struct cJSON *part;         /* of the running process, belongs to parts */
    char *cache;                /* path in the user's cache folder; NULL: none */
    char test[64], pass[64];    /* what the running process does; "": nothing */
    char error[512];            /* why a part could not begin; "": it could */
    size_t done, total;         /* tests, for the progress */
    bool is_cpu;
    int log; /* descriptor for the standard error of processes */
};
/* Runs "COMMAND ARGUMENT ... [--device D] [--shader-dir DIR]", with the options of the job, until
 * it ends, is stopped, or makes no progress for the limit; calls `on_line` (may be NULL) for every
 * line of its output. Writes how the process ended: "" for success. Returns VKN_INTERRUPTED if the
 * job was stopped. */
typedef void certify_line(struct certificate *certificate, const char *line);
vkn_status certify_run(struct certificate *certificate, const char *const *arguments,
                       certify_line *on_line, char how[BASE_HOW_SIZE]);
#define CERTIFY_TRAINING_COUNT 4u /* most trainings that the progress counts */
/* Train the bundled scene and run vknerf bench; add their results to the certificate. */
vkn_status certify_trainings(struct certificate *certificate);
vkn_status certify_bench(struct certificate *certificate);

#endif
