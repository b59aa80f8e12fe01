/* vkn_trainer_profile: a trainer's figures beside what bench measures of the device. */
#include "base/base.h"
#include "bench/bench.h"
#include "train/train.h"

vkn_status vkn_trainer_profile(vkn_trainer *trainer, struct vkn_profile **profile)
{
    BASE_C_LOCALE;
    BASE_NEED(trainer);
    BASE_NEED(profile);
    return train_profile(trainer, bench_measure_peaks, profile);
}
