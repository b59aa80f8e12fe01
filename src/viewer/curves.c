/* Reads a run's curves as its files grow: metrics.jsonl and the evaluations of summary.json. */
#define _GNU_SOURCE
#include "viewer/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#define LONGEST_LINE 65536
#define MOST_SUMMARY ((size_t)16 << 20)
#define RATE_SECONDS 4.0 /* of training that the rate is averaged over */

static char *path_of(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Returns a member's number; NaN when it is missing. */
static double number_of(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void update_rate(struct curves *curves)
{
    size_t last = curves->metric_count - 1, first = last;
    while (first > 0 &&
           curves->metrics[last].seconds - curves->metrics[first].seconds < RATE_SECONDS)
        first--;
    double seconds = curves->metrics[last].seconds - curves->metrics[first].seconds;
    curves->steps_per_second =
        seconds > 0 ? (curves->metrics[last].step - curves->metrics[first].step) / seconds : 0;
}

static void add_metric(struct viewer *viewer, const struct metric *metric)
{
    struct curves *curves = &viewer->curves;
    pthread_mutex_lock(&viewer->lock);
    if (curves->metric_count == curves->metric_capacity) {
        size_t capacity = curves->metric_capacity > 0 ? 2 * curves->metric_capacity : 1024;
        struct metric *grown = realloc(curves->metrics, capacity * sizeof *grown);
        if (grown) {
            curves->metrics = grown;
            curves->metric_capacity = capacity;
        }
    }
    if (curves->metric_count < curves->metric_capacity) {
        curves->metrics[curves->metric_count++] = *metric;
        update_rate(curves);
    }
    pthread_mutex_unlock(&viewer->lock);
}

static void add_line(struct viewer *viewer, const char *line)
{
    cJSON *json = cJSON_Parse(line);
    const struct metric metric = {
        .step = number_of(json, "step"),
        .seconds = number_of(json, "seconds"),
        .loss = number_of(json, "loss"),
        .psnr = number_of(json, "psnr"),
        .parts = {number_of(json, "distortion_loss"), number_of(json, "interlevel_loss"),
                  number_of(json, "coarse_loss")},
        .learning_rate = number_of(json, "learning_rate"),
        .loss_scale = number_of(json, "loss_scale"),
    };
    cJSON_Delete(json);
    if (isfinite(metric.step))
        add_metric(viewer, &metric);
}

/* Drops all log lines, to read the file from its start: it was replaced or has become shorter. */
static void start_again(struct viewer *viewer, uint64_t inode)
{
    pthread_mutex_lock(&viewer->lock);
    viewer->curves.metric_count = 0;
    viewer->curves.steps_per_second = 0;
    pthread_mutex_unlock(&viewer->lock);
    viewer->curves.offset = 0;
    viewer->curves.metrics_inode = inode;
}

static void read_metrics(struct viewer *viewer, FILE *stream)
{
    struct curves *curves = &viewer->curves;
    static char line[LONGEST_LINE]; /* used by the worker only */
    struct stat now;
    if (fstat(fileno(stream), &now) != 0)
        return;
    if (now.st_ino != curves->metrics_inode || now.st_size < curves->offset)
        start_again(viewer, now.st_ino);
    if (fseek(stream, curves->offset, SEEK_SET) != 0)
        return;
    while (fgets(line, sizeof line, stream)) {
        size_t length = strlen(line);
        if (length == 0 || line[length - 1] != '\n')
            return; /* an incomplete line, still being written */
        curves->offset += (long)length;
        add_line(viewer, line);
    }
}

/* ---- evaluations ----------------------------------------------------------------------------- */

static void store_evaluations(struct viewer *viewer, const cJSON *list)
{
    int count = cJSON_GetArraySize(list), i = 0;
    struct evaluation *evaluations = count > 0 ? calloc((size_t)count, sizeof *evaluations) : NULL;
    const cJSON *item;
    if (!evaluations)
        return;
    cJSON_ArrayForEach (item, list) {
        /* What the final evaluation measured on the views of the others. */
        const cJSON *quick = cJSON_GetObjectItemCaseSensitive(item, "quick");
        const cJSON *same = quick ? quick : item;
        evaluations[i++] = (struct evaluation){number_of(item, "step"), number_of(same, "psnr"),
                                               number_of(same, "ssim")};
    }
    pthread_mutex_lock(&viewer->lock);
    free(viewer->curves.evaluations);
    viewer->curves.evaluations = evaluations;
    viewer->curves.evaluation_count = (size_t)count;
    pthread_mutex_unlock(&viewer->lock);
}

/* Stores the quality of each view of the last evaluation: the final one's `per_view`, or the
 * pictures of an evaluation during the training. */
static void store_views(struct viewer *viewer, const cJSON *summary)
{
    const cJSON *evaluations = cJSON_GetObjectItemCaseSensitive(summary, "evaluations"), *item,
                *list = cJSON_GetObjectItemCaseSensitive(summary, "per_view");
    if (!cJSON_IsArray(list))
        list = cJSON_GetObjectItemCaseSensitive(
            cJSON_GetArrayItem(evaluations, cJSON_GetArraySize(evaluations) - 1), "pictures");
    int most = cJSON_GetArraySize(list);
    size_t count = 0;
    struct view_quality *views = most > 0 ? calloc((size_t)most, sizeof *views) : NULL;
    if (!views)
        return;
    cJSON_ArrayForEach (item, list) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
        double psnr = number_of(item, "psnr");
        if (!name || !isfinite(psnr) || strlen(name) >= sizeof views->name ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") != strlen(name))
            continue;
        snprintf(views[count].name, sizeof views[count].name, "%s", name);
        views[count++].psnr = psnr;
    }
    pthread_mutex_lock(&viewer->lock);
    free(viewer->curves.views);
    viewer->curves.views = views;
    viewer->curves.view_count = count;
    pthread_mutex_unlock(&viewer->lock);
}

static void read_summary(struct viewer *viewer, FILE *stream)
{
    struct stat now;
    if (fstat(fileno(stream), &now) != 0 || now.st_size <= 0 || (size_t)now.st_size > MOST_SUMMARY)
        return;
    uint64_t time = (uint64_t)now.st_mtim.tv_sec * 1000000000u + (uint64_t)now.st_mtim.tv_nsec;
    if (time == viewer->curves.summary_time)
        return;
    size_t size = (size_t)now.st_size;
    char *text = calloc(size + 1, 1);
    if (text && fread(text, 1, size, stream) == size) {
        cJSON *json = cJSON_Parse(text);
        store_evaluations(viewer, cJSON_GetObjectItemCaseSensitive(json, "evaluations"));
        store_views(viewer, json);
        cJSON_Delete(json);
        viewer->curves.summary_time = time;
    }
    free(text);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void read_file(struct viewer *viewer, const char *folder, const char *name,
                      void (*read)(struct viewer *viewer, FILE *stream))
{
    char *path = path_of(folder, name);
    struct stat file;
    /* Opening a pipe would wait for its writer. */
    bool regular = path && stat(path, &file) == 0 && S_ISREG(file.st_mode);
    FILE *stream = regular ? fopen(path, "re") : NULL;
    if (stream) {
        read(viewer, stream);
        fclose(stream);
    }
    free(path);
}

void curves_read(struct viewer *viewer)
{
    pthread_mutex_lock(&viewer->lock);
    const char *folder = viewer->folder; /* constant once it is set */
    pthread_mutex_unlock(&viewer->lock);
    if (!folder)
        return;
    read_file(viewer, folder, "metrics.jsonl", read_metrics);
    read_file(viewer, folder, "summary.json", read_summary);
}

void curves_free(struct curves *curves)
{
    free(curves->metrics);
    free(curves->evaluations);
    free(curves->views);
    *curves = (struct curves){0};
}
