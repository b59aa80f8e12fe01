/* Writes metrics.jsonl: one JSON object per line, each written completely or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "report/metrics.h"
#include "report/report.h"

/* ---- columns --------------------------------------------------------------------------------- */

#define COLUMN(field, tag, is_integer, old_name) \
    {#field, (tag), (is_integer), offsetof(struct report_metrics, field), (old_name)}
#define WHOLE(field, tag) COLUMN(field, tag, true, NULL)
#define REAL(field, tag)  COLUMN(field, tag, false, NULL)

const struct column columns[RUN_COLUMNS] = {
    [RUN_STEP] = WHOLE(step, NULL),
    [RUN_SECONDS] = REAL(seconds, "train/seconds"),
    [RUN_LOSS] = REAL(loss, "train/loss"),
    [RUN_DISTORTION_LOSS] = REAL(distortion_loss, "train/distortion_loss"),
    [RUN_INTERLEVEL_LOSS] = REAL(interlevel_loss, "train/interlevel_loss"),
    [RUN_COARSE_LOSS] = REAL(coarse_loss, "train/coarse_loss"),
    [RUN_PSNR] = REAL(psnr, "train/psnr"),
    [RUN_LEARNING_RATE] = REAL(learning_rate, "optimizer/learning_rate"),
    [RUN_LOSS_SCALE] = REAL(loss_scale, "optimizer/loss_scale"),
    [RUN_SKIPPED] = WHOLE(skipped_steps, "optimizer/skipped_steps"),
    [RUN_UNDERFLOWED] = COLUMN(underflowed, "optimizer/underflowed", false, "flushed"),
    [RUN_RAYS] = REAL(rays_per_second, "speed/rays_per_second"),
    [RUN_SAMPLES] = REAL(samples_per_second, "speed/samples_per_second"),
    [RUN_MARCHED] = REAL(marched_per_second, "speed/marched_per_second"),
    [RUN_GRAD_NORM] = REAL(grad_norm, "optimizer/grad_norm"),
    [RUN_MEMORY] = WHOLE(gpu_memory_bytes, "device/gpu_memory_bytes"),
    [RUN_IDLE] = REAL(idle_share, "device/idle_share"),
    [RUN_DOWNSCALE] = WHOLE(image_downscale, "images/image_downscale"),
    [RUN_EXCHANGED] = WHOLE(images_exchanged, "images/images_exchanged"),
    [RUN_ALL_REDUCE_SHARE] = REAL(exchange_share, "parallel/exchange_share"),
    [RUN_KEPT_SHARE] = REAL(kept_share, "train/kept_share"),
    [RUN_KEEP_WEIGHT] = REAL(keep_weight, "train/keep_weight"),
};

uint64_t column_count(const struct report_metrics *metrics, enum run_column column)
{
    return *(const uint64_t *)(const void *)((const char *)metrics + columns[column].offset);
}

double column_value(const struct report_metrics *metrics, enum run_column column)
{
    if (columns[column].is_integer)
        return (double)column_count(metrics, column);
    const void *field = (const char *)metrics + columns[column].offset;
    double value = *(const double *)field;
    return column == RUN_GRAD_NORM && value < 0.0 ? (double)NAN : value;
}

double report_psnr(double mean_squared_error)
{
    if (isnan(mean_squared_error))
        return mean_squared_error;
    if (mean_squared_error <= 1e-10)
        return 100.0;
    return -10.0 * log10(mean_squared_error);
}

/* ---- appending records ----------------------------------------------------------------------- */

vkn_status report_append(int descriptor, const char *path, const void *data, size_t size)
{
    off_t before = lseek(descriptor, 0, SEEK_END);
    for (size_t done = 0; done < size;) {
        ssize_t written = write(descriptor, (const char *)data + done, size - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int error = written < 0 ? errno : ENOSPC;
            if (before < 0 || ftruncate(descriptor, before) != 0)
                base_log(BASE_LOG_WARNING, "%s: its last record may be incomplete", path);
            return base_fail(VKN_ERROR, "%s: cannot write: %s", path, strerror(error));
        }
        done += (size_t)written;
    }
    return VKN_OK;
}

#define FILE_LIMIT ((size_t)1 << 30)

struct report_log {
    char *path;
    int descriptor;
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Lines kept so far, and the offset in `text` at which each begins. */
struct kept_lines {
    struct base_text text;
    struct kept_line {
        size_t begin;
        double step;
    } *lines;
    size_t count;
};

/* Returns whether to keep a line: it is a JSON object (a crash can leave the last line incomplete)
 * with a step of at most `resume_step` (later steps will be trained again). *at: the step. Sets
 * *short_of_memory when the line cannot be parsed for lack of memory. */
static bool read_step(const char *line, size_t size, uint64_t resume_step, double *at,
                      bool *short_of_memory)
{
    cJSON *object = NULL;
    *short_of_memory |= base_json_parse("metrics.jsonl", line, size, &object) == VKN_ERROR;
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(object, "step");
    bool keep = cJSON_IsObject(object) && cJSON_IsNumber(step) && step->valuedouble >= 0.0 &&
                step->valuedouble <= (double)resume_step;
    if (keep)
        *at = step->valuedouble;
    cJSON_Delete(object);
    return keep;
}

/* Keeps a line and drops earlier lines of the same or later steps, as run_read_metrics does. */
static void keep_line(struct kept_lines *kept, const char *line, size_t size, double step)
{
    while (kept->count > 0 && kept->lines[kept->count - 1].step >= step)
        kept->text.size = kept->lines[--kept->count].begin;
    kept->lines[kept->count++] = (struct kept_line){kept->text.size, step};
    base_text_add_bytes(&kept->text, line, size);
    base_text_add_bytes(&kept->text, "\n", 1);
}

static size_t count_lines(const char *text, size_t size)
{
    size_t count = 1;
    for (size_t i = 0; i < size; i++)
        count += text[i] == '\n' ? 1 : 0;
    return count;
}

static void keep_lines(const char *text, size_t size, uint64_t resume_step, struct kept_lines *kept)
{
    double step = 0.0;
    for (const char *line = text, *end = text + size; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;
        if (read_step(line, (size_t)(line_end - line), resume_step, &step, &kept->text.failed))
            keep_line(kept, line, (size_t)(line_end - line), step);
        line = newline ? newline + 1 : end;
    }
}

static vkn_status drop_later_lines(const char *path, uint64_t resume_step)
{
    char *text;
    size_t size;
    BASE_TRY(base_text_read(path, FILE_LIMIT, &text, &size));
    struct kept_lines kept = {.lines = base_alloc(count_lines(text, size), sizeof(*kept.lines))};
    if (kept.lines)
        keep_lines(text, size, resume_step, &kept);
    vkn_status status = VKN_OK;
    if (!kept.lines || kept.text.failed)
        status = base_fail(VKN_ERROR, "%s: out of memory", path);
    else if (kept.text.size != size || (size && memcmp(kept.text.data, text, size) != 0))
        status = base_file_replace(path, kept.text.size ? kept.text.data : "", kept.text.size);
    free(kept.lines);
    free(kept.text.data);
    free(text);
    return status;
}

static vkn_status open_file(struct report_log *log, uint64_t resume_step)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    if (resume_step == 0)
        flags |= O_TRUNC;
    else if (base_file_exists(log->path))
        BASE_TRY(drop_later_lines(log->path, resume_step));
    log->descriptor = open(log->path, flags, 0666);
    if (log->descriptor < 0)
        return base_fail(base_status_of_errno(errno), "%s: cannot open for writing: %s", log->path,
                         strerror(errno));
    return VKN_OK;
}

vkn_status report_log_open(const char *run, uint64_t resume_step, struct report_log **log)
{
    *log = NULL;
    struct report_log *made = base_alloc(1, sizeof(*made));
    if (!made)
        return VKN_ERROR;
    made->descriptor = -1;
    made->path = base_path_join(run, "metrics.jsonl");
    vkn_status status = made->path ? open_file(made, resume_step) : VKN_ERROR;
    if (status != VKN_OK)
        report_log_close(&made);
    *log = made;
    return status;
}

void report_log_close(struct report_log **log)
{
    if (!*log)
        return;
    if ((*log)->descriptor >= 0)
        close((*log)->descriptor);
    free((*log)->path);
    free(*log);
    *log = NULL;
}

/* ---- appending ------------------------------------------------------------------------------ */

static void format_line(struct base_text *line, const struct report_metrics *metrics)
{
    for (size_t i = 0; i < RUN_COLUMNS; i++) {
        base_text_add(line, "%s\"%s\": ", i > 0 ? ", " : "{", columns[i].name);
        double value = column_value(metrics, i);
        if (columns[i].is_integer)
            base_text_add(line, "%" PRIu64, column_count(metrics, i));
        else if (isfinite(value)) /* JSON has no infinities */
            base_text_add(line, "%.9g", value);
        else
            base_text_add(line, "null");
    }
    base_text_add(line, "}\n");
}

vkn_status report_log_add(struct report_log *log, const struct report_metrics *metrics)
{
    struct base_text line = {0};
    format_line(&line, metrics);
    vkn_status status = line.failed
                            ? base_fail(VKN_ERROR, "%s: out of memory", log->path)
                            : report_append(log->descriptor, log->path, line.data, line.size);
    free(line.data);
    return status;
}
