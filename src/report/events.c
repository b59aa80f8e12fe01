/* Writes TensorBoard event files: a sequence of records, each a protocol-buffer message Event.
 *
 * Record (TFRecord), little-endian: length (8 bytes), masked CRC32C of the length, the message,
 * masked CRC32C of the message. Message: fields with a key (number << 3 | wire type) and a value,
 * see "Encoding" in the protocol-buffer documentation. Field numbers are from TensorBoard's
 * event.proto and summary.proto. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/metrics.h"
#include "report/thumbnail.h"

/* Longest side of pictures in pixels: TensorBoard shows thumbnails first. */
#define PICTURE_EDGE 640u
/* Most files that are created in the same second. */
#define MOST_FILES   1000

struct report_events {
    char *path;
    int descriptor;
};

/* ---- records -------------------------------------------------------------------------------- */

/* TFRecord masks checksums, because the CRC of data that contains CRCs is weak. */
static uint32_t masked_crc(const void *data, size_t size)
{
    uint32_t crc = base_crc32c(0, data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_little_endian(struct base_text *out, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    base_text_add_bytes(out, bytes, size);
}

static vkn_status write_record(struct report_events *events, const struct base_text *message)
{
    struct base_text record = {0};
    put_little_endian(&record, message->size, 8);
    if (!record.failed)
        put_little_endian(&record, masked_crc(record.data, 8), 4);
    base_text_add_bytes(&record, message->data, message->size);
    put_little_endian(&record, masked_crc(message->data, message->size), 4);
    vkn_status status =
        record.failed || message->failed
            ? base_fail(VKN_ERROR, "%s: out of memory", events->path)
            : report_append(events->descriptor, events->path, record.data, record.size);
    free(record.data);
    return status;
}

/* ---- messages ------------------------------------------------------------------------------- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Field numbers. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP, EVENT_FILE_VERSION, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SESSION_STATUS = 1, SESSION_STATUS_START = 1 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_IMAGE = 4 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH, IMAGE_COLOR_SPACE, IMAGE_ENCODED, COLOR_SPACE_RGB = 3 };

static void put_varint(struct base_text *out, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        put_little_endian(out, value % 128 + 128, 1);
    put_little_endian(out, value, 1);
}

static void put_key(struct base_text *out, uint32_t field, enum wire wire)
{
    put_varint(out, field << 3 | wire);
}

static void put_count(struct base_text *out, uint32_t field, uint64_t value)
{
    put_key(out, field, WIRE_VARINT);
    put_varint(out, value);
}

static void put_bytes(struct base_text *out, uint32_t field, const void *data, size_t size)
{
    put_key(out, field, WIRE_BYTES);
    put_varint(out, size);
    base_text_add_bytes(out, data, size);
}

/* Adds a nested message and frees it. */
static void put_message(struct base_text *out, uint32_t field, struct base_text *message)
{
    put_bytes(out, field, message->data ? message->data : "", message->size);
    out->failed |= message->failed;
    free(message->data);
    *message = (struct base_text){0};
}

static void begin_event(struct base_text *event, uint64_t step)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof(bits));
    put_key(event, EVENT_WALL_TIME, WIRE_64);
    put_little_endian(event, bits, 8);
    put_count(event, EVENT_STEP, step);
}

static void add_scalar(struct base_text *summary, const char *tag, double value)
{
    struct base_text message = {0};
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    put_bytes(&message, VALUE_TAG, tag, strlen(tag));
    put_key(&message, VALUE_SIMPLE, WIRE_32);
    put_little_endian(&message, bits, 4);
    put_message(summary, SUMMARY_VALUE, &message);
}

static void add_picture(struct base_text *summary, const char *tag, const struct thumbnail *picture)
{
    struct base_text message = {0}, image = {0};
    put_count(&image, IMAGE_HEIGHT, picture->height);
    put_count(&image, IMAGE_WIDTH, picture->width);
    put_count(&image, IMAGE_COLOR_SPACE, COLOR_SPACE_RGB);
    put_bytes(&image, IMAGE_ENCODED, picture->png, picture->size);
    put_bytes(&message, VALUE_TAG, tag, strlen(tag));
    put_message(&message, VALUE_IMAGE, &image);
    put_message(summary, SUMMARY_VALUE, &message);
}

/* Writes the summary as an event and frees it. */
static vkn_status write_summary(struct report_events *events, uint64_t step,
                                struct base_text *summary)
{
    struct base_text event = {0};
    begin_event(&event, step);
    put_message(&event, EVENT_SUMMARY, summary);
    vkn_status status = write_record(events, &event);
    free(event.data);
    return status;
}

/* ---- the file ------------------------------------------------------------------------------- */

static char *file_path(const char *run, int attempt)
{
    char host[128] = "localhost", number[16] = "";
    if (gethostname(host, sizeof(host)) == 0)
        host[sizeof(host) - 1] = 0;
    for (char *c = host; *c; c++)
        if (*c == '/')
            *c = '_';
    if (attempt > 0)
        snprintf(number, sizeof(number), ".%03d", attempt);
    char *name =
        base_format("events.out.tfevents.%010lld.%s%s", (long long)time(NULL), host, number);
    char *path = name ? base_path_join(run, name) : NULL;
    free(name);
    return path;
}

/* Creates a new file, so that files of other processes stay unchanged. */
static vkn_status make_file(const char *run, struct report_events *events)
{
    for (int attempt = 0; attempt < MOST_FILES; attempt++) {
        free(events->path);
        events->path = file_path(run, attempt);
        if (!events->path)
            return VKN_ERROR;
        events->descriptor =
            open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (events->descriptor >= 0)
            return VKN_OK;
        if (errno != EEXIST)
            break;
    }
    return base_fail(base_status_of_errno(errno), "%s: cannot open for writing: %s", events->path,
                     strerror(errno));
}

static vkn_status write_version(struct report_events *events)
{
    static const char version[] = "brain.Event:2";
    struct base_text event = {0};
    begin_event(&event, 0);
    put_bytes(&event, EVENT_FILE_VERSION, version, sizeof(version) - 1);
    vkn_status status = write_record(events, &event);
    free(event.data);
    return status;
}

/* Writes a session start: readers drop events of `first_step` and later from earlier files. */
static vkn_status write_start(struct report_events *events, uint64_t first_step)
{
    struct base_text event = {0}, session = {0};
    begin_event(&event, first_step);
    put_count(&session, SESSION_STATUS, SESSION_STATUS_START);
    put_message(&event, EVENT_SESSION, &session);
    vkn_status status = write_record(events, &event);
    free(event.data);
    return status;
}

vkn_status report_events_open(const char *run, uint64_t resume_step, struct report_events **events)
{
    *events = base_alloc(1, sizeof(**events));
    if (!*events)
        return VKN_ERROR;
    (*events)->descriptor = -1;
    vkn_status status = make_file(run, *events);
    if (status == VKN_OK)
        status = write_version(*events);
    if (status == VKN_OK)
        status = write_start(*events, resume_step > 0 ? resume_step + 1 : 0);
    if (status != VKN_OK)
        report_events_close(events);
    return status;
}

void report_events_close(struct report_events **events)
{
    if (!*events)
        return;
    if ((*events)->descriptor >= 0)
        close((*events)->descriptor);
    free((*events)->path);
    free(*events);
    *events = NULL;
}

/* ---- events --------------------------------------------------------------------------------- */

vkn_status report_events_add(struct report_events *events, const struct report_metrics *metrics)
{
    struct base_text summary = {0};
    for (size_t i = 0; i < RUN_COLUMNS; i++) {
        double value = column_value(metrics, i);
        if (columns[i].tag && !isnan(value))
            add_scalar(&summary, columns[i].tag, value);
    }
    return write_summary(events, metrics->step, &summary);
}

vkn_status report_events_add_scalar(struct report_events *events, uint64_t step, const char *tag,
                                    double value)
{
    struct base_text summary = {0};
    add_scalar(&summary, tag, value);
    return write_summary(events, step, &summary);
}

vkn_status report_events_add_picture(struct report_events *events, uint64_t step, const char *tag,
                                     const char *path)
{
    struct thumbnail picture;
    BASE_TRY(thumbnail_read(path, PICTURE_EDGE, &picture));
    struct base_text summary = {0};
    add_picture(&summary, tag, &picture);
    free(picture.png);
    return write_summary(events, step, &summary);
}
