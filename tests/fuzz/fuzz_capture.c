/* Fuzzes the readers of COLMAP, LLFF and NSVF captures and of PLY files. The first byte of the
 * input selects the file: c i p cameras, images and points3D in binary, C I P the same as text, n
 * poses_bounds.npy, y a point cloud in PLY, k m b NSVF's intrinsics, pose (a matrix) and bbox.
 * Files that are read become a scene, together with fixed other files if necessary. All bytes must
 * be refused or give sane values. */
#define _GNU_SOURCE
#include <math.h>

#include "config/config.h"

#include "fuzz.h"
#include "scene/colmap.h"
#include "scene/llff.h"
#include "scene/ply.h"

/* ---- scenes ---------------------------------------------------------------------------------- */

static void check_camera(const struct scene_camera *camera)
{
    require(camera->width > 0 && camera->height > 0, "an empty camera");
    require(isfinite(camera->focal_x) && isfinite(camera->focal_y), "a focal length is not finite");
    require(isfinite(camera->center_x) && isfinite(camera->center_y), "a centre is not finite");
    for (int i = 0; i < 12; i++)
        require(isfinite(camera->pose[i]), "a pose is not finite");
    double origin[3], direction[3], x = 0, y = 0;
    scene_camera_ray(camera, 0.5 * camera->width, 0.5 * camera->height, origin, direction);
    scene_camera_project(camera, direction, &x, &y);
}

static void check_scene(const struct vkn_scene *scene)
{
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        for (size_t i = 0; i < scene->splits[split].camera_count; i++)
            check_camera(&scene->splits[split].cameras[i]);
    for (size_t i = 0; i < scene->point_count; i++)
        for (int k = 0; k < 3; k++)
            require(isfinite(scene->points[i].position[k]), "a point is not finite");
    require((double)scene->scale >= VKN_LEAST_SCENE_SCALE &&
                (double)scene->scale <= VKN_MOST_SCENE_SCALE,
            "a scale is out of range");
    for (int i = 0; i < 3; i++)
        require(fabs((double)scene->offset[i]) <= VKN_MOST_SCENE_OFFSET,
                "an offset is out of range");
    require(isfinite(scene->near) && scene->near >= 0, "a near distance is negative");
    require(scene->aabb_scale > 0 && (scene->aabb_scale & (scene->aabb_scale - 1)) == 0,
            "aabb_scale is no power of two");
}

/* Replaces the search for images: every image exists, in the expected size. */
static void pretend_images(struct transforms *transforms)
{
    for (size_t i = 0; i < transforms->count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        bool small = frame->lens.size[0] <= SCENE_MAX_IMAGE_SIZE &&
                     frame->lens.size[1] <= SCENE_MAX_IMAGE_SIZE;
        frame->width = small ? (uint32_t)frame->lens.size[0] : 64;
        frame->height = small ? (uint32_t)frame->lens.size[1] : 48;
        if (frame->file_path == NULL)
            frame->file_path = base_format("%zu.png", i);
        frame->image_path = base_format("%zu.png", i);
        require(frame->file_path != NULL && frame->image_path != NULL, "out of memory");
    }
}

static void assemble(struct transforms *transforms)
{
    struct transforms files[SCENE_SPLITS] = {{0}};
    files[SCENE_TRAIN] = *transforms;
    struct scene_options options = {.path = "fuzz"};
    struct vkn_scene *scene = base_alloc(1, sizeof(*scene));
    require(scene != NULL, "out of memory");
    if (scene_assemble(scene, files, true, &options) == VKN_OK)
        check_scene(scene);
    else
        require_message();
    scene_close(&scene);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void fuzz_npy(const uint8_t *data, size_t size)
{
    struct npy array;
    struct transforms transforms = {0};
    vkn_status status = npy_parse("fuzz.npy", data, size, &array);
    if (status == VKN_OK)
        status = llff_frames("fuzz.npy", &array, &transforms);
    npy_free(&array);
    if (status == VKN_OK) {
        pretend_images(&transforms);
        assemble(&transforms);
    } else {
        require_message();
    }
    transforms_free(&transforms);
}

/* Fixed content of the two files that are not fuzzed. */
static const char *const plain_cameras = "1 PINHOLE 64 48 60 60 32 24\n";
static const char *const plain_images = "1 1 0 0 0 0 0 4 1 a.png\n\n2 1 0 0 0 1 0 4 1 b.png\n\n"
                                        "3 0 0 1 0 0 0 4 1 c.png\n\n";
static const char *const plain_points = "1 0 0 0 9 9 9 1 1 0 2 0 3 0\n2 1 1 1 9 9 9 1 2 1 3 1\n";

/* `text` has a zero byte after its `size` bytes, like a file that was read. */
static vkn_status parse_model(char kind, const char *text, size_t size, struct colmap *model)
{
    static const char kinds[] = "cipCIP";
    static colmap_parser *const parsers[] = {colmap_binary_cameras, colmap_binary_images,
                                             colmap_binary_points,  colmap_text_cameras,
                                             colmap_text_images,    colmap_text_points};
    const char *const plain[] = {plain_cameras, plain_images, plain_points};
    size_t which = (size_t)(strchr(kinds, kind) - kinds);
    for (size_t i = 0; i < 3; i++) {
        bool fuzzed = which % 3 == i;
        BASE_TRY(parsers[fuzzed ? which : 3 + i]("fuzz", fuzzed ? text : plain[i],
                                                 fuzzed ? size : strlen(plain[i]), model));
    }
    return VKN_OK;
}

static void fuzz_model(char kind, const uint8_t *data, size_t size)
{
    struct colmap model = {0};
    struct transforms transforms = {0};
    char *text = copy_text(data, size);
    vkn_status status = parse_model(kind, text, size, &model);
    if (status == VKN_OK)
        status = colmap_frames("fuzz", &model, &transforms);
    if (status == VKN_OK) {
        pretend_images(&transforms);
        status = colmap_points(&model, &transforms);
    }
    if (status == VKN_OK)
        assemble(&transforms);
    else
        require_message();
    transforms_free(&transforms);
    colmap_free(&model);
    free(text);
}

/* Uses the input as the point cloud of three frames that look at the origin. */
static void fuzz_cloud(const uint8_t *data, size_t size)
{
    struct ply cloud;
    struct colmap model = {0};
    struct transforms transforms = {0};
    char *text = copy_text(data, size);
    if (ply_parse("fuzz.ply", text, size, &cloud) != VKN_OK) {
        require_message();
    } else {
        require(colmap_text_cameras("fuzz", plain_cameras, strlen(plain_cameras), &model) == VKN_OK,
                "plain cameras");
        require(colmap_text_images("fuzz", plain_images, strlen(plain_images), &model) == VKN_OK,
                "plain images");
        require(colmap_frames("fuzz", &model, &transforms) == VKN_OK, "plain frames");
        pretend_images(&transforms);
        transforms.points = cloud.points;
        transforms.point_count = cloud.count;
        cloud.points = NULL;
        require(cloud_set_bounds(&transforms) == VKN_OK, "a cloud without bounds");
        assemble(&transforms);
    }
    ply_free(&cloud);
    transforms_free(&transforms);
    colmap_free(&model);
    free(text);
}

/* ---- a folder -------------------------------------------------------------------------------- */

static char capture[] = "/dev/shm/vknerf-fuzz-XXXXXX";
static const char nsvf_kinds[] = "kmb";
static const char *const nsvf_files[3] = {"intrinsics.txt", "pose/0_b.txt", "bbox.txt"};

static char *path_in_capture(const char *name)
{
    char *path = base_path_join(capture, name);
    require(path != NULL, "out of memory");
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    char *path = path_in_capture(name);
    FILE *file = fopen(path, "wb");
    require(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0, path);
    free(path);
}

static void remove_capture(void)
{
    static const char *const names[] = {"rgb/0_a.png",    "rgb/0_b.png",  "rgb",
                                        "pose/0_a.txt",   "pose/0_b.txt", "pose",
                                        "intrinsics.txt", "bbox.txt",     ""};
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        char *path = path_in_capture(names[i]);
        remove(path);
        free(path);
    }
}

/* Makes a capture of two images and the first one's pose; fuzz_folder() writes the other files. */
static void make_capture(void)
{
    static const uint8_t pixels[8 * 6] = {0};
    static const char *const images[2] = {"rgb/0_a.png", "rgb/0_b.png"};
    if (mkdtemp(capture) == NULL) { /* /dev/shm, in memory, exists only on Linux */
        snprintf(capture, sizeof(capture), "/tmp/vknerf-fuzz-XXXXXX");
        require(mkdtemp(capture) != NULL, capture);
    }
    require(atexit(remove_capture) == 0, capture);
    for (size_t i = 0; i < 2; i++) {
        char *path = path_in_capture(images[i]), *folder = base_path_folder(path);
        require(folder != NULL && base_make_folder(folder) == VKN_OK &&
                    scene_image_write_png(path, pixels, 8, 6, 1) == VKN_OK,
                path);
        free(folder);
        free(path);
    }
    char *poses = path_in_capture("pose");
    require(base_make_folder(poses) == VKN_OK, poses);
    free(poses);
    write_file("pose/0_a.txt", "1 0 0 2 0 1 0 0 0 0 1 0 0 0 0 1", 31);
}

/* NSVF's reader starts from a folder. */
static void fuzz_folder(size_t which, const uint8_t *data, size_t size)
{
    static const char *const plain[3] = {"9 4 3 0", "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1",
                                         "0 0 0 1 1 1 .1"};
    static bool made = false;
    if (!made)
        make_capture();
    made = true;
    for (size_t i = 0; i < 3; i++)
        write_file(nsvf_files[i], i == which ? (const void *)data : plain[i],
                   i == which ? size : strlen(plain[i]));
    const struct scene_options options = {.path = capture, .format = VKN_SCENE_NSVF};
    struct vkn_scene *scene = NULL;
    if (scene_open(&options, &scene) == VKN_OK)
        check_scene(scene);
    else
        require_message();
    scene_close(&scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    base_log_threshold(BASE_LOG_NOTHING); /* thousands of warnings do not help */
    if (size == 0)
        return 0;
    if (data[0] == 'n')
        fuzz_npy(data + 1, size - 1);
    else if (data[0] == 'y')
        fuzz_cloud(data + 1, size - 1);
    else if (data[0] != 0 && strchr(nsvf_kinds, data[0]) != NULL)
        fuzz_folder((size_t)(strchr(nsvf_kinds, data[0]) - nsvf_kinds), data + 1, size - 1);
    else if (data[0] != 0 && strchr("cipCIP", data[0]) != NULL)
        fuzz_model((char)data[0], data + 1, size - 1);
    return 0;
}
