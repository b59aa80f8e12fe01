/* What the device reaches, measured in the run that is compared with it. */
#ifndef BENCH_PEAKS_H
#define BENCH_PEAKS_H

#include "field/field.h"
#include "pipeline/pipeline.h"

/* Takes under a second or so: multiply-adds in registers in the path's precision, a copy in memory,
 * atomic additions of the path's kind to neighbouring words. What cannot be measured stays 0. */
vkn_status bench_measure_peaks(struct gpu_device *device, const struct field_path *path,
                               struct cost_peaks *peaks);

#endif
