/* vknerf/bench.h: how fast a device is, in every precision it offers. */
#ifndef VKNERF_BENCH_H
#define VKNERF_BENCH_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* What is measured. */
enum vkn_bench_suite {
    VKN_BENCH_ALL,      /* all of these that are part of it */
    VKN_BENCH_GEMM,     /* matrix products */
    VKN_BENCH_MLP,      /* the fused MLPs, forward and backward */
    VKN_BENCH_GRID,     /* the hash grid's gather and scatter */
    VKN_BENCH_STEP,     /* the whole training step */
    VKN_BENCH_PROGRAMS, /* what the driver's compiler makes of the programs of training and of
                           pictures, none of which runs; no part of ALL */
    VKN_BENCH_SAMPLING, /* a scene trained with each march.sampling by turns; no part of ALL */
};

/* Of vkn_bench. */
struct vkn_bench_params {
    size_t size;
    const struct vkn_job *job;    /* NULL: all defaults */
    enum vkn_bench_suite suite;   /* what is measured */
    enum vkn_precision precision; /* AUTO: every backend that the device offers */
    bool tune;                    /* no suite: tries other tile sizes for the field's passes in the
                                     path that a run with `precision` takes, and remembers them */
    bool quick;                   /* the smallest case of each kind, few repetitions; of programs
                                     those of the precision that AUTO is expected to take */
    bool full;                    /* every size, on CPU devices too */
    bool flexible;                /* matrix shapes too that only the flexible dimensions of
                                     VK_NV_cooperative_matrix2 offer */
    /* Where not zero, the only size measured: */
    uint32_t batch; /* rows of products and MLPs, samples of grid and step; multiple of 512 */
    uint32_t width, depth;        /* of the MLPs */
    uint32_t log2_entries;        /* of a level's table */
    uint32_t repetitions;         /* timed runs of a case; 0: 20, on CPU devices 5 */
    uint32_t seeds;               /* of SAMPLING: config.seed and those after it; 0: 1 */
    const char *scene;            /* of the step; NULL: one made up in memory. SAMPLING needs one */
    enum vkn_scene_format format; /* of the scene; AUTO: found out from its files */
    const vkn_config
        *config;     /* of SAMPLING: what differs from the defaults, the seconds of
                        training     of each among it; sampling, steps, precision and format
                        stay open */
    const char *out; /* folder for bench.json and bench.svg; NULL: none */
};

/* Measures, and writes both files. `params` may be NULL: every suite of ALL. *json is the
 * object that docs/bench.md describes, in fresh memory that the caller frees: with VKN_OK, and with
 * VKN_INTERRUPTED as far as it got. A case whose results are wrong is reported as such and not
 * timed; it is no failure of the call. */
VKN_API vkn_status vkn_bench(const struct vkn_bench_params *params, char **json);

VKN_END_DECLARATIONS

#endif
