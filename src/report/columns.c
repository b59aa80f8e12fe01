#include "report/columns.h"

#include <math.h>
#include <stddef.h>

#define WHOLE(field, tag) {#field, (tag), true, offsetof(struct report_metrics, field)}
#define REAL(field, tag)  {#field, (tag), false, offsetof(struct report_metrics, field)}

const struct column columns[RUN_COLUMNS] = {
    [RUN_STEP] = WHOLE(step, NULL),
    [RUN_SECONDS] = REAL(seconds, "train/seconds"),
    [RUN_LOSS] = REAL(loss, "train/loss"),
    [RUN_PSNR] = REAL(psnr, "train/psnr"),
    [RUN_LEARNING_RATE] = REAL(learning_rate, "optimizer/learning_rate"),
    [RUN_LOSS_SCALE] = REAL(loss_scale, "optimizer/loss_scale"),
    [RUN_SKIPPED] = WHOLE(skipped_steps, "optimizer/skipped_steps"),
    [RUN_FLUSHED] = REAL(flushed, "optimizer/flushed"),
    [RUN_RAYS] = REAL(rays_per_second, "speed/rays_per_second"),
    [RUN_SAMPLES] = REAL(samples_per_second, "speed/samples_per_second"),
    [RUN_MARCHED] = REAL(marched_per_second, "speed/marched_per_second"),
    [RUN_GRAD_NORM] = REAL(grad_norm, "optimizer/grad_norm"),
    [RUN_MEMORY] = WHOLE(gpu_memory_bytes, "device/gpu_memory_bytes"),
    [RUN_IDLE] = REAL(idle_share, "device/idle_share"),
    [RUN_DOWNSCALE] = WHOLE(image_downscale, "images/image_downscale"),
    [RUN_EXCHANGED] = WHOLE(images_exchanged, "images/images_exchanged"),
    [RUN_RANKS] = REAL(exchange_share, "parallel/exchange_share"),
};

uint64_t column_count(const struct report_metrics *metrics, enum run_column column)
{
    return *(const uint64_t *)(const void *)((const char *)metrics + columns[column].offset);
}

double column_value(const struct report_metrics *metrics, enum run_column column)
{
    if (columns[column].whole)
        return (double)column_count(metrics, column);
    const void *place = (const char *)metrics + columns[column].offset;
    double value = *(const double *)place;
    return column == RUN_GRAD_NORM && value < 0.0 ? (double)NAN : value;
}
