/* render: renders and exports a trained field: pictures, videos, meshes, point clouds, splats. */
#ifndef RENDER_RENDER_H
#define RENDER_RENDER_H

#include <signal.h>

#include <vknerf/export.h>
#include <vknerf/renderer.h>
#include <vknerf/run.h>

#include "scene/scene.h"

struct field_pass_request;
struct report_progress;
struct setup;
struct step_outliers;

#define RENDER_MAX_FORWARD   16u /* most forward passes of a field */
#define RENDER_MAX_PIPELINES (RENDER_MAX_FORWARD + 9u)

/* Lists the pipelines that render pictures and normal maps of a setup's field, with NULL in the
 * requests' `pipeline`. Workgroups of MLPs have as many invocations as a tile needs, all others
 * PASS_LOCAL_SIZE. `pipelines`: [RENDER_MAX_PIPELINES]. Returns the number of pipelines. */
size_t render_list_pipelines(const struct setup *setup, struct field_pass_request *pipelines);

/* Returns the guard of the renderer's device, for calls that use the renderer. */
struct base_guard *render_guard(vkn_renderer *renderer);

/* ---- a picture ----------------------------------------------------------------------------- */

/* Renders a picture as vkn_render does, from a camera in training space. The caller frees what
 * *picture owns, which is nothing after a failure. */
vkn_status render_picture(vkn_renderer *renderer, const struct scene_camera *camera,
                          enum vkn_background background, uint32_t supersample,
                          struct vkn_picture *picture);
void render_picture_free(struct vkn_picture *picture);
/* Converts a picture on black to straight alpha: divides its colours by its opacity. */
void render_unpremultiply(struct vkn_picture *picture);
/* Lets the next pictures be exposed by `exposure` stops more than the mean of the training images.
 * VKN_BAD_INPUT beyond SCENE_MOST_EXPOSURE. */
vkn_status render_set_exposure(vkn_renderer *renderer, double exposure);
/* Restricts all later rays to a box, or to none. Returns the errors of scene_box_check. */
vkn_status render_crop(vkn_renderer *renderer, const struct scene_box *box);

/* ---- views --------------------------------------------------------------------------------- */

/* Copies the cameras of a split as the renderer's training has refined them: training views, and of
 * other views the lenses that training views have too. `renderer` NULL: as in the scene. The caller
 * frees *cameras; their image paths belong to the scene. VKN_BAD_INPUT when the training refined
 * another number of views. */
vkn_status render_split_cameras(const struct vkn_renderer *renderer, const struct vkn_scene *scene,
                                enum scene_split_name split, struct scene_camera **cameras);
/* Returns the cameras that `params` selects, with its picture size. The cameras of a split come
 * from render_split_cameras; an orbit and an interpolation lead through its training views. The
 * caller frees views->cameras; their image paths belong to the scene. */
vkn_status render_views(const vkn_renderer *renderer, const struct vkn_scene *scene,
                        const struct vkn_render_params *params, struct scene_camera_path *views);

/* ---- picture files ------------------------------------------------------------------------- */

/* Writes a PNG file from 3 floats per pixel, clamped to 0..1. */
vkn_status render_write_color(const char *path, const float *rgb, uint32_t width, uint32_t height);
/* Writes a grey PNG file from one float per pixel, clamped to 0..1. */
vkn_status render_write_grey(const char *path, const float *values, uint32_t width,
                             uint32_t height);
/* Writes a PNG file of a picture's depth map, scaled by this picture's depth range. */
vkn_status render_write_depth(const char *path, const struct vkn_picture *picture);
/* Writes a PNG heat map of the mean absolute colour difference: black 0, yellow 0.25 and above. */
vkn_status render_write_error(const char *path, const float *a, const float *b, uint32_t width,
                              uint32_t height);

/* ---- evaluation: views of a split against their images -------------------------------------- */

/* Most views whose pictures are written. */
#define RENDER_MAX_PICTURES 200u

/* Bits of the pictures that are written for a view. */
enum {
    RENDER_COLOR = 1,
    RENDER_TARGET = 2,
    RENDER_ERROR = 4,
    RENDER_DEPTH = 8, /* scaled by this picture's depth range */
    RENDER_OPACITY = 16,
    RENDER_EVERYTHING = 31
};

struct render_evaluation {
    vkn_renderer *renderer;
    struct vkn_scene *scene; /* images that are not in memory are decoded one by one */
    enum scene_split_name split;
    enum vkn_background background; /* white or black */
    size_t stride;                  /* evaluates every stride-th view */
    const char *folder;             /* of picture files, PREFIX VIEW KIND.png; NULL: none */
    unsigned pictures;              /* bits RENDER_COLOR ...: written to `folder` */
    const char *prefix;             /* begins the names of colour pictures, "" or "step_000500_" */
    uint32_t aligned;               /* most views whose pose is aligned, evenly spaced; 0: none */
    struct report_progress *progress;
    const volatile sig_atomic_t *stop; /* may be NULL */
};

/* Renders views, measures PSNR, SSIM and floaters, and writes pictures. VKN_INTERRUPTED when
 * stopped. The caller frees *evaluation with vkn_evaluation_free; it is NULL after a failure. */
vkn_status render_evaluate(const struct render_evaluation *request,
                           struct vkn_evaluation **evaluation);

/* Returns how many views of a split an evaluation aligns by default: a few if the cameras of
 * training views were refined, because test views do not move along; else none. */
uint32_t render_default_aligned(const struct vkn_config *config, enum scene_split_name split);

/* Returns the requested background, else the one that the field was trained on: white, black, or
 * with scene.sky the default, which is the sky. */
enum vkn_background render_background(enum vkn_background request, const struct vkn_config *config);

/* ---- files of a rendering: a picture of each map of each frame, and a video of each map ------ */

struct render_frames;

/* Returns whether colours are written: they are requested, or no map is. */
bool render_wants_color(const struct vkn_render_params *params);

enum render_video_kind { RENDER_VIDEO_NONE, RENDER_VIDEO_MP4, RENDER_VIDEO_GIF };
/* Returns the kind of video from the extension, NONE for any other than .mp4 and .gif. */
enum render_video_kind render_video_kind(const char *path);

/* Creates the folder and starts the videos of `views`. Where ffmpeg fails, this function warns,
 * and render_frames_end returns the error. `params` and `views` must outlive *frames. VKN_BAD_INPUT
 * when a file cannot be written or the frames of a video differ in size; *frames is then NULL. */
vkn_status render_frames_begin(const struct vkn_render_params *params,
                               const struct scene_camera_path *views,
                               struct render_frames **frames);
/* Writes the maps of the next view's picture, which has normals where `params` wants them. */
vkn_status render_frames_add(struct render_frames *frames, const struct vkn_picture *picture);
/* Finishes the files: writes depth maps, which need the depth range of all frames, ends the videos,
 * and, after a complete rendering, removes the frames that an earlier rendering left in the folder.
 * `rendered`: status of the rendering. After VKN_INTERRUPTED, depth maps and videos hold the frames
 * so far; after another failure neither is written. Frees and nulls *frames. Returns `rendered` if
 * it is a failure, else the first error. */
vkn_status render_frames_end(struct render_frames **frames, vkn_status rendered,
                             struct vkn_render_result *result);

/* ---- meshes and points --------------------------------------------------------------------- */

/* Returns the origin of exported positions: 0 0 0 of the dataset, or a round position near the
 * scene's centre where the scene is far from 0 0 0 (scene_needs_double). */
void render_local_origin(const struct vkn_scene *scene, double origin[3]);

/* A mesh, or a point cloud (no triangles). Zero-initialise it, free it with render_mesh_free. */
struct render_mesh {
    double origin[3]; /* added to positions; in their unit: render_local_origin */
    struct MeshVertex *vertices;
    uint32_t (*triangles)[3]; /* vertex indices, counterclockwise seen from outside */
    size_t vertex_count, triangle_count;
    size_t vertex_capacity, triangle_capacity;
    uint64_t device_bytes; /* device memory held while the mesh was made */
    double up[3];          /* up direction for formats that store it: unit length; all zero: +y */
    /* Set by render_mesh_unwrap (texels) and render_mesh_paint (texture); the mesh owns them. */
    uint32_t texture_size; /* pixels along an edge */
    float (*texels)[2];    /* [vertex]: texture position in pixels from the left and the top */
    uint8_t *texture;      /* RGB rows from the top, sRGB */
};
void render_mesh_free(struct render_mesh *mesh);
/* Multiplies positions and origin by `factor`. */
void render_mesh_scale(struct render_mesh *mesh, double factor);

struct render_mesh_params {
    struct scene_box box;
    uint32_t resolution; /* voxels along the box's longest edge, 1 to 2048 */
    /* Density of the surface per dataset unit. 0: the density at which a path of 1/128 of the unit
     * cube's edge in training space, about the size of an occupancy cell, has transmittance 1/2:
     * denser regions hide what is behind them. */
    double threshold;
    enum vkn_unseen unseen;
};

/* The voxel grid of an extracted surface, in dataset units. Voxels are cubes, so the box's edges
 * are multiples of the voxel's edge. */
struct render_voxels {
    uint32_t counts[3];
    double edge;
    struct scene_box box;
    double threshold; /* density of the surface */
};

/* Extracts the surface of the renderer's field in dataset space, see render_mesh. The default box
 * bounds the points that the training views see, without outliers where aabb_scale is above 1.
 * VKN_BAD_INPUT names the wrong parameter: "crop", "resolution" or "threshold". `progress`, `stop`:
 * may be NULL. The caller frees *mesh, also after a failure. */
vkn_status render_surface(vkn_renderer *renderer, const struct vkn_scene *scene,
                          const struct render_mesh_params *params, struct report_progress *progress,
                          const volatile sig_atomic_t *stop, struct render_mesh *mesh,
                          struct render_voxels *voxels);

/* Removes triangles whose three vertices are all MESH_UNSEEN, and vertices without a triangle.
 * *removed: number of removed vertices. Keeps the order of the others. */
vkn_status render_mesh_drop_unseen(struct render_mesh *mesh, size_t *removed);

/* Removes connected components with fewer than `vertices` vertices; with `only_largest`, all
 * components but the largest (the first of equally large ones). Keeps the order of the others.
 * *components: number of components before, *removed: number of removed components. */
vkn_status render_mesh_keep_components(struct render_mesh *mesh, size_t vertices, bool only_largest,
                                       size_t *components, size_t *removed);

#define RENDER_MOST_TEXTURE 16384u
/* Unwraps the mesh into charts of a texture; vertices on chart borders are duplicated. `voxels`:
 * the grid that the mesh was made with. `size`: pixels along the texture's edge; 0: the smallest
 * power of two that gives 4 pixels along a voxel's edge, at most 8192 unless the charts do not fit
 * at 1 pixel. *density: pixels along a voxel's edge. VKN_BAD_INPUT: the texture is too small for
 * the triangles. After a failure the mesh is unchanged. */
vkn_status render_mesh_unwrap(struct render_mesh *mesh, const struct render_voxels *voxels,
                              uint32_t size, size_t *charts, double *density);
/* Paints the texture of an unwrapped mesh of the renderer's field: each texel is the rendered
 * colour of a ray along the inward normal, from one voxel above the surface to one voxel below.
 * `progress` and `stop` may be NULL. */
vkn_status render_mesh_paint(vkn_renderer *renderer, const struct vkn_scene *scene,
                             const struct render_voxels *voxels, struct report_progress *progress,
                             const volatile sig_atomic_t *stop, struct render_mesh *mesh);

struct render_points_params {
    uint32_t count; /* of points; fewer are returned when rays rarely hit a surface */
    uint32_t seed;
    struct scene_box box; /* none: everywhere */
};

/* Samples a point cloud of the surface that the training views see, in dataset space: rays through
 * random image positions, equally many of each view, end where their transmittance falls to 1/2.
 * Points have the rendered colour and normal. The same seed gives the same points. `progress` and
 * `stop` may be NULL. The caller frees *cloud, also after a failure. */
vkn_status render_points(vkn_renderer *renderer, const struct vkn_scene *scene,
                         const struct render_points_params *params,
                         struct report_progress *progress, const volatile sig_atomic_t *stop,
                         struct render_mesh *cloud);

/* Finds the object that most training views look at on the points of render_points with the seed 0;
 * results as in scene_find_object. `progress` and `stop` may be NULL. */
vkn_status render_find_object(vkn_renderer *renderer, const struct vkn_scene *scene,
                              struct report_progress *progress, const volatile sig_atomic_t *stop,
                              double low[3], double high[3], const char **problem);

/* Writes the masks that loss.robust has found, as images_write_masks does, and sets what outliers
 * there are. VKN_BAD_INPUT if the renderer is not that of a checkpoint of a training with
 * loss.robust. */
vkn_status render_write_masks(const struct vkn_renderer *r, const struct vkn_scene *scene,
                              const char *folder, const volatile sig_atomic_t *stop,
                              struct step_outliers *found);

/* 3D Gaussians. Zero-initialise it and free it with render_splats_free. */
struct render_splats {
    double origin[3]; /* as in struct render_mesh */
    struct Splat *splats;
    size_t count;
    uint64_t device_bytes; /* device memory held while the splats were made */
};
/* Creates Gaussians at the points of render_points: flat along the surface, as wide as the spacing
 * of the points, with spherical harmonics fitted to the field's colours from directions in front of
 * the surface. The caller frees *splats, also after a failure. */
vkn_status render_splats(vkn_renderer *renderer, const struct vkn_scene *scene,
                         const struct render_points_params *params,
                         struct report_progress *progress, const volatile sig_atomic_t *stop,
                         struct render_splats *splats);
void render_splats_free(struct render_splats *splats);
/* Multiplies positions, origin and sizes by `factor`. */
void render_splats_scale(struct render_splats *splats, double factor);

/* Content of an exported file. */
enum render_content { RENDER_MESH, RENDER_TEXTURE, RENDER_POINTS, RENDER_SPLATS };
/* A format of VKN_EXPORT_FORMATS. The functions write into a writer that the caller begins and
 * commits or aborts. Their errors name the file. */
struct render_format {
    enum render_content content;
    const char *end; /* file extension */
    vkn_status (*write)(struct base_file_writer *writer, const struct render_mesh *mesh);
    vkn_status (*write_splats)(struct base_file_writer *writer, const struct render_splats *splats);
};
/* Finds the format of a path by its extension. VKN_BAD_INPUT names the valid extensions. */
vkn_status render_find_format(enum render_content content, const char *path,
                              const struct render_format **format);
/* Lists the extensions of `content`: ".ply, .obj or .glb" where `last` is " or ". */
#define RENDER_FORMATS_TEXT 64u
void render_list_formats(enum render_content content, const char *last,
                         char text[RENDER_FORMATS_TEXT]);

/* ---- renderers of a training ----------------------------------------------------------------- */

struct step;
/* Creates a renderer of a step's averaged parameters, always as they are at the time of rendering.
 * `steps_done`: the step's count of training steps. Both must outlive the renderer. */
vkn_status render_of_step(const struct step *step, const uint64_t *steps_done,
                          const char *scene_path, vkn_renderer **renderer);
/* Passes the caller's reference to the trainer to the renderer, which drops it when destroyed. */
void render_hold_trainer(vkn_renderer *renderer, vkn_trainer *trainer);

struct buffers;
/* Evaluates the samples of `rays` rays: reads BIND_SAMPLES of `view` and writes its BIND_FIELD.
 * *any: whether there are samples; false: all rays have ended. */
typedef vkn_status render_evaluate_samples(void *context, const struct buffers *view, uint32_t rays,
                                           bool *any);
/* Sets a function that evaluates samples in place of the field's passes. Afterwards the renderer
 * cannot make normals, meshes or points. */
void render_set_evaluator(vkn_renderer *renderer, render_evaluate_samples *evaluate, void *context);

#endif
