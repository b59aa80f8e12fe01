/* Fuzzes the readers of scenes: transforms.json texts become cameras without existing images, which
 * are inspected and drawn, and camera paths; and all bytes are decoded as a picture and as an EXR
 * file. All inputs must be refused or give sane values. */
#define _GNU_SOURCE
#include <math.h>

#include <cjson/cJSON.h>
#include <zlib.h>

#include "config/config.h"

#include "fuzz.h"
#include "report/report.h"
#include "scene/exr.h"
#include "scene/image.h"
#include "scene/camera_path.h"
#include "scene/transforms.h"

/* Larger images are slow to decode, not wrong. */
#define MAX_DECODED_PIXELS (1u << 20)

/* ---- transforms.json ------------------------------------------------------------------------- */

static void check_camera(const struct scene_camera *camera)
{
    require(camera->width > 0 && camera->height > 0, "an empty camera");
    require(isfinite(camera->focal_x) && isfinite(camera->focal_y), "a focal length is not finite");
    require(isfinite(camera->center_x) && isfinite(camera->center_y), "a centre is not finite");
    require(camera->time >= 0 && camera->time <= 1, "a time is out of range");
    for (int i = 0; i < 12; i++)
        require(isfinite(camera->pose[i]), "a pose is not finite");
    double origin[3], direction[3], x = 0, y = 0;
    scene_camera_ray(camera, 0.5 * camera->width, 0.5 * camera->height, origin, direction);
    scene_camera_project(camera, direction, &x, &y);
}

static void check_scene(const struct vkn_scene *scene)
{
    uint64_t pixels = 0;
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        pixels = 0;
        for (size_t i = 0; i < scene->splits[split].camera_count; i++) {
            const struct scene_camera *camera = &scene->splits[split].cameras[i];
            check_camera(camera);
            require(camera->first_pixel == pixels, "pixels do not follow each other");
            pixels += (uint64_t)camera->width * camera->height;
        }
        require(pixels == scene->splits[split].pixel_count, "a wrong number of pixels");
    }
    require(scene->splits[SCENE_TRAIN].camera_count > 0, "nothing to train on");
    require((double)scene->scale >= VKN_LEAST_SCENE_SCALE &&
                (double)scene->scale <= VKN_MOST_SCENE_SCALE,
            "a scale is out of range");
    for (int i = 0; i < 3; i++)
        require(fabs((double)scene->offset[i]) <= VKN_MOST_SCENE_OFFSET,
                "an offset is out of range");
    require(scene->aabb_scale > 0 && (scene->aabb_scale & (scene->aabb_scale - 1)) == 0,
            "aabb_scale is no power of two");
}

static void parse_path(const struct vkn_scene *scene, const cJSON *json)
{
    struct scene_camera_path camera_path;
    if (camera_path_parse(scene, "fuzz.json", json, &camera_path_same_space,
                          &scene->splits[SCENE_TRAIN].cameras[0], &camera_path) != VKN_OK) {
        require(camera_path.cameras == NULL, "cameras of a refused path");
        return;
    }
    require(camera_path.count > 0, "an empty path");
    for (size_t i = 0; i < camera_path.count; i++)
        check_camera(&camera_path.cameras[i]);
    free(camera_path.cameras);
}

/* Reads the text as a camera path through an unrelated scene. */
static void parse_path_alone(const cJSON *json)
{
    struct scene_camera camera = {.width = 64,
                                  .height = 48,
                                  .focal_x = 70,
                                  .focal_y = 70,
                                  .center_x = 32,
                                  .center_y = 24,
                                  .pose = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    struct vkn_scene scene = {.path = "fuzz", .scale = 0.5F};
    scene.splits[SCENE_TRAIN] = (struct scene_split){.cameras = &camera, .camera_count = 1};
    parse_path(&scene, json);
}

static void make_paths(const struct vkn_scene *scene, const cJSON *json)
{
    struct scene_camera *cameras = NULL;
    if (scene_orbit(scene, 3, &cameras) == VKN_OK) {
        for (size_t i = 0; i < 3; i++)
            check_camera(&cameras[i]);
        free(cameras);
    }
    if (scene_interpolate(scene, 5, &cameras) == VKN_OK) {
        for (size_t i = 0; i < 5; i++)
            check_camera(&cameras[i]);
        free(cameras);
    }
    parse_path(scene, json);
}

/* Replaces transforms_find_images: every image exists, in the expected size. */
static void pretend_images(struct transforms *transforms)
{
    for (size_t i = 0; i < transforms->count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        bool sized = frame->lens.size[0] > 0 && frame->lens.size[0] <= SCENE_MAX_IMAGE_SIZE &&
                     frame->lens.size[1] <= SCENE_MAX_IMAGE_SIZE;
        frame->width = sized ? (uint32_t)frame->lens.size[0] : 64;
        frame->height = sized ? (uint32_t)frame->lens.size[1] : 48;
        frame->image_path = base_format("%s", frame->file_path);
        require(frame->image_path != NULL, "out of memory");
    }
}

/* Requires that all measures are finite; cJSON writes other numbers as null. */
static void check_measures(const cJSON *json)
{
    require(!cJSON_IsNull(json) && (!cJSON_IsNumber(json) || isfinite(json->valuedouble)),
            "a measure is not finite");
    const cJSON *item;
    cJSON_ArrayForEach (item, json) {
        check_measures(item);
    }
}

/* Runs vknerf info's inspection and drawing. */
static void inspect(const struct vkn_scene *scene)
{
    struct scene_findings findings = {0};
    struct inspection *inspection = NULL;
    vkn_status status = inspect_scene(scene, &findings, 0.1, &inspection);
    if (status == VKN_OK) {
        cJSON *json = inspect_json(inspection);
        char *text = cJSON_PrintUnformatted(json), *drawing = report_camera_drawing(inspection);
        require(text != NULL && drawing != NULL, "no JSON or no drawing");
        check_measures(json);
        require(strstr(drawing, "nan") == NULL && strstr(drawing, "inf") == NULL,
                "a drawn number is not finite");
        free(drawing);
        free(text);
        cJSON_Delete(json);
    } else {
        require_message();
    }
    inspect_free(&inspection);
    scene_findings_free(&findings);
}

static void assemble(struct transforms *transforms, bool single, uint32_t downscale,
                     const cJSON *json)
{
    struct transforms files[SCENE_SPLITS] = {{0}};
    files[SCENE_TRAIN] = *transforms;
    struct scene_options options = {.path = "fuzz", .downscale = downscale};
    struct vkn_scene *scene = base_alloc(1, sizeof(*scene));
    require(scene != NULL, "out of memory");
    scene->path = base_format("fuzz");
    require(scene->path != NULL, "out of memory");
    if (scene_assemble(scene, files, single, &options) == VKN_OK) {
        check_scene(scene);
        make_paths(scene, json);
        if (single)
            inspect(scene);
    } else {
        require_message();
    }
    scene_close(&scene);
}

static void fuzz_json(const uint8_t *data, size_t size)
{
    cJSON *json = NULL;
    if (base_json_parse("fuzz.json", (const char *)data, size, &json) != VKN_OK)
        return;
    parse_path_alone(json);
    struct transforms transforms;
    if (transforms_parse("fuzz.json", json, true, &transforms) == VKN_OK) {
        pretend_images(&transforms);
        assemble(&transforms, true, 1, json);
        assemble(&transforms, false, 7, json);
    }
    transforms_free(&transforms);
    cJSON_Delete(json);
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Corrects PNG checksums, so that mutations get past them. */
static void repair_png(uint8_t *data, size_t size)
{
    for (size_t at = 8; size - at >= 12;) {
        size_t length = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 |
                        (size_t)data[at + 2] << 8 | data[at + 3];
        if (length > size - at - 12)
            return;
        uint32_t crc = (uint32_t)crc32(0, data + at + 4, (uInt)length + 4);
        for (unsigned i = 0; i < 4; i++)
            data[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += length + 12;
    }
}

static void fuzz_image(const uint8_t *data, size_t size)
{
    struct image_header header;
    if (image_read_header("fuzz", data, size, true, &header) != VKN_OK ||
        (uint64_t)header.width * header.height > MAX_DECODED_PIXELS)
        return;
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    if (image_decode("fuzz", data, size, &rgba, &width, &height) != VKN_OK) {
        require_message();
        return;
    }
    uint32_t k = width < 3 || height < 3 ? 1 : 3;
    uint32_t *pixels = base_alloc((size_t)(width / k) * (height / k), sizeof(*pixels));
    require(pixels != NULL, "out of memory");
    image_downscale(rgba, NULL, width, height, k, pixels);
    free(pixels);
    free(rgba);
}

static void fuzz_exr(const uint8_t *data, size_t size)
{
    float *values = NULL;
    uint32_t width = 0, height = 0;
    if (exr_parse("fuzz", data, size, &values, &width, &height) != VKN_OK) {
        require(values == NULL, "values of a refused file");
        require_message();
    }
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    base_log_threshold(BASE_LOG_NOTHING); /* thousands of warnings do not help */
    fuzz_json(data, size);
    fuzz_image(data, size);
    fuzz_exr(data, size);
    if (size > 8 && data[0] == 0x89) { /* PNG */
        uint8_t *repaired = malloc(size);
        require(repaired != NULL, "out of memory");
        memcpy(repaired, data, size);
        repair_png(repaired, size);
        fuzz_image(repaired, size);
        free(repaired);
    }
    return 0;
}
