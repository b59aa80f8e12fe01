/* Answers /api/probe: what a ray of a picture shows, or the range of depths in a picture. */
#include "viewer/internal.h"

#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#define RANGE_RAYS    1536.0 /* of the picture whose depths are measured */
/* Depths of less opaque rays do not count. The range has these shares of the other depths. */
#define LEAST_OPACITY 0.5f
#define NEAR_SHARE    0.02
#define FAR_SHARE     0.98

static cJSON *describe_pixel(const struct vkn_picture *picture)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "depth", (double)picture->depth[0]);
    cJSON_AddNumberToObject(json, "opacity", (double)picture->opacity[0]);
    cJSON_AddItemToObject(json, "color", cJSON_CreateFloatArray(picture->color, 3));
    return json;
}

static int compare_depths(const void *left, const void *right)
{
    const float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

/* Sorts the depths of opaque rays to the front of picture->depth; returns their number. */
static size_t sort_depths(const struct vkn_picture *picture)
{
    size_t count = 0;
    for (size_t i = 0; i < (size_t)picture->width * picture->height; i++)
        if (picture->opacity[i] >= LEAST_OPACITY && picture->depth[i] > 0)
            picture->depth[count++] = picture->depth[i];
    qsort(picture->depth, count, sizeof *picture->depth, compare_depths);
    return count;
}

/* Without opaque rays the answer is an empty object. */
static cJSON *describe_range(const struct vkn_picture *picture)
{
    cJSON *json = cJSON_CreateObject();
    size_t count = sort_depths(picture), last = count > 0 ? count - 1 : 0;
    if (count == 0)
        return json;
    double near = (double)picture->depth[(size_t)(NEAR_SHARE * (double)last)],
           far = (double)picture->depth[(size_t)ceil(FAR_SHARE * (double)last)];
    double margin = 0.02 * fmax(far - near, 0.1 * far);
    cJSON_AddNumberToObject(json, "near", fmax(near - margin, 0));
    cJSON_AddNumberToObject(json, "far", far + margin);
    return json;
}

static struct answer describe(struct viewer *viewer, const struct exchange *exchange)
{
    struct frame_request request = exchange->frame;
    struct part part = {.full = {request.width, request.height}, .supersample = 1};
    struct vkn_picture *picture = NULL;
    request.map = MAP_RGB; /* the renderer without normals is faster */
    request.second_map = MAP_NONE;
    if (exchange->has_pixel) {
        part.x = (uint32_t)fmin(exchange->pixel[0] * request.width, request.width - 1.0);
        part.y = (uint32_t)fmin(exchange->pixel[1] * request.height, request.height - 1.0);
        part.width = part.height = 1;
    } else {
        frames_size(&request, RANGE_RAYS, part.full);
        part.width = part.full[0];
        part.height = part.full[1];
    }
    if (frames_picture(viewer, &request, &part, &picture) != VKN_OK)
        return answer_error(500, vkn_last_error());
    const struct answer answer =
        answer_json(200, exchange->has_pixel ? describe_pixel(picture) : describe_range(picture));
    vkn_picture_free(&picture);
    return answer;
}

double probe_work(struct viewer *viewer)
{
    double began = viewer_now();
    pthread_mutex_lock(&viewer->lock);
    struct exchange *exchange = viewer->probes; /* stays valid while it is parked */
    if (exchange)
        viewer->probes = exchange->next;
    pthread_mutex_unlock(&viewer->lock);
    if (!exchange)
        return 0;
    const struct answer answer = describe(viewer, exchange);
    pthread_mutex_lock(&viewer->lock);
    answer_set(exchange, &answer);
    pthread_mutex_unlock(&viewer->lock);
    return fmax(viewer_now() - began, 1e-6);
}
