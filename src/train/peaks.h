/* What the device reaches, measured in the run that is compared with it. The room bench, which stands above
 * train and owns the kernels, defines it; train only says what it needs. */
#ifndef TRAIN_PEAKS_H
#define TRAIN_PEAKS_H

#include "field/path.h"
#include "train/cost.h"

/* Takes under a second or so: multiply-adds in registers in the path's precision, a copy in memory,
 * atomic additions of the path's kind to neighbouring words. What cannot be measured stays 0. */
vkn_status train_measure_peaks(struct gpu_device *device, const struct field_path *path,
                               struct cost_peaks *peaks);

#endif
