/* bench: measures the peak rates of a device, and matrix products, MLPs, hash grids and training
 * steps against them (vknerf/bench.h). Depends on train. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <vknerf/error.h>

struct cost_peaks;
struct field_backend;
struct gpu_device;

/* Measures the peak rates of a device in about a second, to compare a profiled run with them:
 * multiply-adds in registers in the backend's precision (FLOP/s), a copy in memory (B/s), and
 * atomic additions of the backend's kind to adjacent words (per second). Rates that cannot be
 * measured are 0. */
vkn_status bench_measure_peaks(struct gpu_device *device, const struct field_backend *backend,
                               struct cost_peaks *peaks);

#endif
