/* bench: what a device reaches: peaks in registers, then products, MLPs, grids and steps against
 * them (vknerf/bench.h). Stands above train. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <vknerf/error.h>

struct cost_peaks;
struct field_backend;
struct gpu_device;

/* What the device reaches, measured in the run that is compared with it. Takes under a second or
 * so: multiply-adds in registers in the backend's precision, a copy in memory, atomic additions of
 * the backend's kind to neighbouring words. What cannot be measured stays 0. */
vkn_status bench_measure_peaks(struct gpu_device *device, const struct field_backend *backend,
                               struct cost_peaks *peaks);

#endif
