/* vknerf/bench.h: measures the throughput of a device in every precision that it offers. */
#ifndef VKNERF_BENCH_H
#define VKNERF_BENCH_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* Suites of measurements. */
enum vkn_bench_suite {
    VKN_BENCH_ALL,      /* GEMM, MLP, GRID and STEP */
    VKN_BENCH_GEMM,     /* matrix products */
    VKN_BENCH_MLP,      /* the fused MLPs, forward and backward */
    VKN_BENCH_GRID,     /* the hash grid's gather and scatter */
    VKN_BENCH_STEP,     /* the whole training step */
    VKN_BENCH_PROGRAMS, /* compiler statistics of all shaders of training and rendering, which are
                           compiled but not run; not in ALL */
    VKN_BENCH_SAMPLING, /* trains a scene with each march.sampling in turn; not in ALL */
};

/* Parameters of vkn_bench. */
struct vkn_bench_params {
    size_t size;
    const struct vkn_job *job;    /* NULL: all defaults */
    enum vkn_bench_suite suite;   /* what to measure */
    enum vkn_precision precision; /* AUTO: every backend that the device offers */
    bool tune;     /* instead of a suite: tries other tile sizes for the field's passes
                      of the backend that a run with `precision` uses, and stores the
                      fastest */
    bool quick;    /* only the smallest cases, few repetitions; of PROGRAMS only those
                      of the precision that AUTO is expected to choose */
    bool full;     /* all sizes, even on CPU devices */
    bool flexible; /* also matrix shapes that only the flexible dimensions of
                      VK_NV_cooperative_matrix2 offer */
    /* Sizes to measure; 0: those of the suite. */
    uint32_t batch; /* rows of products and MLPs, samples of grid and step: a multiple of 512 */
    uint32_t width, depth;        /* of the MLPs: width, number of hidden layers */
    uint32_t log2_entries;        /* log2 of the entries in a level's table */
    uint32_t repetitions;         /* timed runs of each case; 0: 20, on CPU devices 5 */
    uint32_t seeds;               /* of SAMPLING: number of seeds, from config.seed on; 0: 1 */
    const char *scene;            /* of STEP, NULL: a synthetic one; of SAMPLING, required */
    enum vkn_scene_format format; /* of the scene; AUTO: detected from its files */
    /* SAMPLING: settings of all runs, such as the seconds of training; sampling, steps,
     * precision and format must be unset. */
    const vkn_config *config;
    const char *out; /* folder for bench.json and bench.svg; NULL: no files */
};

/* Runs the measurements and writes the files to `out`. `params` may be NULL: the suites of ALL.
 * *json becomes the object that docs/bench.md describes, in memory that the caller frees: with
 * VKN_OK all results, with VKN_INTERRUPTED the results so far. If the results of a case are wrong,
 * the case is reported instead of timed, and the call still succeeds. */
VKN_API vkn_status vkn_bench(const struct vkn_bench_params *params, char **json);

VKN_END_DECLARATIONS

#endif
