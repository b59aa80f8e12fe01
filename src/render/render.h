/* render: what a trained field looks like: pictures, videos, meshes and points, and their files. */
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

#define RENDER_MAX_FORWARD   16u /* passes of a field's forward recipe */
#define RENDER_MAX_PIPELINES (RENDER_MAX_FORWARD + 9u)

/* The programs that pictures of a setup's field are made with, maps of normals included, in
 * workgroups of PASS_LOCAL_SIZE but for FIELD_FORWARD and the like; they have no place. `programs`
 * has room for RENDER_MAX_PIPELINES; returns their number. */
size_t render_list_pipelines(const struct setup *setup, struct field_pass_request *pipelines);

/* ---- a picture ----------------------------------------------------------------------------- */

/* vkn_render of a camera in training space. The caller frees what *picture owns, which is nothing
 * after a failure. */
vkn_status render_picture(vkn_renderer *renderer, const struct scene_camera *camera,
                          enum vkn_background background, uint32_t supersample,
                          struct vkn_picture *picture);
void render_picture_free(struct vkn_picture *picture);
/* Of a picture on black: its colours without what is behind them, not multiplied by the opacity. */
void render_unpremultiply(struct vkn_picture *picture);
/* From now on pictures, and whatever else rays find, show this box alone, as vkn_picture_params has
 * it. VKN_BAD_INPUT where there is nothing in it. */
vkn_status render_crop(vkn_renderer *renderer, const double box[6]);

/* ---- views --------------------------------------------------------------------------------- */

/* The cameras that `params` asks for, in its size. The caller frees views->cameras; their image
 * paths are the scene's. */
vkn_status render_views(const struct vkn_scene *scene, const struct vkn_render_params *params,
                        struct scene_camera_path *views);

/* ---- picture files ------------------------------------------------------------------------- */

/* A PNG file. Values are clamped to 0..1, 3 floats per pixel. */
vkn_status render_write_color(const char *path, const float *rgb, uint32_t width, uint32_t height);
/* The same with one float per pixel. */
vkn_status render_write_grey(const char *path, const float *values, uint32_t width,
                             uint32_t height);
/* A PNG file of one picture's depth map, on a scale of its own. */
vkn_status render_write_depth(const char *path, const struct vkn_picture *picture);
/* Mean absolute difference of the colours, from black over red to yellow at 0.25 and above. */
vkn_status render_write_error(const char *path, const float *a, const float *b, uint32_t width,
                              uint32_t height);

/* ---- quality: views of a split beside their images ----------------------------------------- */

/* Pictures of more views than this are not kept. */
#define RENDER_MAX_PICTURES 200u

/* Pictures of a view. */
enum {
    RENDER_COLOR = 1,
    RENDER_TARGET = 2,
    RENDER_ERROR = 4,
    RENDER_DEPTH = 8, /* on a scale of its own */
    RENDER_OPACITY = 16,
    RENDER_EVERYTHING = 31
};

struct render_evaluation {
    vkn_renderer *renderer;
    struct vkn_scene *scene; /* images that are not loaded are decoded one by one */
    enum scene_split_name split;
    enum vkn_background background; /* white or black */
    size_t stride;                  /* every stride-th view */
    const char *folder;             /* for pictures, PREFIX VIEW KIND.png; NULL: none */
    unsigned pictures;              /* which of RENDER_COLOR ... to write there */
    const char *prefix;             /* of the names of renders, "" or "step_000500_" */
    struct report_progress *progress;
    const volatile sig_atomic_t *stop; /* may be NULL */
};

/* PSNR and SSIM. VKN_INTERRUPTED when stopped. The caller frees *evaluation with
 * vkn_evaluation_free; NULL after a failure. */
vkn_status render_evaluate(const struct render_evaluation *request,
                           struct vkn_evaluation **evaluation);

/* The one asked for, else white, or black for a field trained on black. */
enum vkn_background render_background(enum vkn_background asked, const struct vkn_config *config);

/* ---- the files of a rendering: pictures of every frame's maps, and a video of each map ------ */

struct render_frames;

/* Whether the colours are written: when they are asked for, or no map is. */
bool render_wants_color(const struct vkn_render_params *params);

enum render_video_kind { RENDER_VIDEO_NONE, RENDER_VIDEO_MP4, RENDER_VIDEO_GIF };
/* By the end of the name; NONE when it is neither. */
enum render_video_kind render_video_kind(const char *path);

/* Makes the folder and starts the videos of these views. A video that ffmpeg does not make is a
 * warning now and an error at the end. `params` and `views` outlive *frames. VKN_BAD_INPUT when a
 * file cannot be written or the sizes of a video's frames differ; *frames is then NULL. */
vkn_status render_frames_begin(const struct vkn_render_params *params,
                               const struct scene_camera_path *views,
                               struct render_frames **frames);
/* The next view's picture, with normals where they are wanted. */
vkn_status render_frames_add(struct render_frames *frames, const struct vkn_picture *picture);
/* What remains to be done with the frames so far: depths, which need the range of all, and the ends
 * of the videos; an interruption leaves them no less complete, another failure leaves none. After
 * all frames, those of an earlier rendering in the folder are removed. `rendered` is how the
 * rendering came to its end. Frees and nulls *frames. The first error, `rendered` before all,
 * counts. */
vkn_status render_frames_end(struct render_frames **frames, vkn_status rendered,
                             struct vkn_render_result *result);

/* ---- meshes and points --------------------------------------------------------------------- */

/* What positions of exports count from: the dataset's origin, or of a scene that is far from it
 * (scene_needs_double) a round position near the scene's middle. */
void render_local_origin(const struct vkn_scene *scene, double origin[3]);

/* A mesh, or without triangles points. Owns both arrays; zero-initialise it, free it with
 * render_mesh_free. */
struct render_mesh {
    double origin[3]; /* that positions count from: render_local_origin */
    struct MeshVertex *vertices;
    uint32_t (*triangles)[3]; /* vertices, counterclockwise seen from outside */
    size_t vertex_count, triangle_count;
    size_t vertex_capacity, triangle_capacity;
    uint64_t device_bytes; /* of device memory held while it was made */
    double up[3]; /* what is upwards, for files that say so; unit length, or all zero: +y */
    /* Once render_mesh_unwrap and render_mesh_paint have been called; owned as well. */
    uint32_t texture_size; /* pixels along an edge */
    float (*texels)[2]; /* of each vertex, its place in the texture: pixels from the left, from the
                           top */
    uint8_t *texture;   /* RGB rows from the top, sRGB */
};
void render_mesh_free(struct render_mesh *mesh);

struct render_mesh_params {
    double low[3], high[3]; /* box, in the dataset's space; all zero: none is given */
    uint32_t resolution;    /* voxels along the box's longest edge, 1 to 2048 */
    double threshold; /* density of the surface, per dataset unit; 0: that at which 1/128 of the
                         unit cube's edge in training space absorbs half of the light: about the
                         size that its occupancy cells and finer features have, so that what is
                         denser hides what is behind it */
    enum vkn_unseen unseen;
};

/* Where a surface was looked for, in dataset units. Voxels are cubes: the box's shorter edges are
 * whole numbers of them. */
struct render_voxels {
    uint32_t counts[3];
    double edge, low[3], high[3];
    double threshold; /* density of the surface */
};

/* The surface of the renderer's field in the dataset's space, see render_mesh; where no box is
 * given, of what the training views see: of an object all of it, of a place (aabb_scale above 1)
 * without what lies far behind the rest. VKN_BAD_INPUT names what is wrong: "crop", "resolution" or
 * "threshold". `progress` and `stop` may be NULL. The caller frees *mesh, also after a failure. */
vkn_status render_surface(vkn_renderer *renderer, const struct vkn_scene *scene,
                          const struct render_mesh_params *params, struct report_progress *progress,
                          const volatile sig_atomic_t *stop, struct render_mesh *mesh,
                          struct render_voxels *voxels);

/* Removes the triangles whose vertices are all MESH_UNSEEN, and vertices of no triangle. *removed:
 * how many vertices are gone. The others keep their order. */
vkn_status render_mesh_drop_unseen(struct render_mesh *mesh, size_t *removed);

/* Removes the connected parts of less than `vertices` vertices; with `largest` all but the largest
 * (the first of several). The others keep their order. *parts: how many there were, *removed: how
 * many are gone. */
vkn_status render_mesh_keep_components(struct render_mesh *mesh, size_t vertices, bool largest,
                                       size_t *parts, size_t *removed);

#define RENDER_MOST_TEXTURE 16384u
/* Cuts the mesh into charts of a texture, which doubles vertices on their edges. `voxels`: of the
 * grid that it was made with. `size`: pixels along the texture's edge; 0: such that a voxel's has
 * 4, in at most 8192 where those do. *density: how many one has. VKN_BAD_INPUT: too few for so many
 * triangles. After a failure the mesh is what it was. */
vkn_status render_mesh_unwrap(struct render_mesh *mesh, const struct render_voxels *voxels,
                              uint32_t size, size_t *charts, double *density);
/* The texture of an unwrapped mesh of the renderer's field: what is seen from straight above of the
 * field from a voxel above each place of the surface to one below. `progress` and `stop` may be
 * NULL. */
vkn_status render_mesh_paint(vkn_renderer *renderer, const struct vkn_scene *scene,
                             const struct render_voxels *voxels, struct report_progress *progress,
                             const volatile sig_atomic_t *stop, struct render_mesh *mesh);

struct render_points_params {
    uint32_t count; /* of points; fewer are found when rays rarely hit anything */
    uint32_t seed;
    double low[3], high[3]; /* box, in the dataset's space; all zero: everywhere */
};

/* Points on what the training views see, in the dataset's space: where rays through random places
 * of random views, as many of each, have lost half of their light, with the colours that the views
 * have there and the normals of normal maps. The same for the same seed. `progress` and `stop` may
 * be NULL. The caller frees *cloud, also after a failure. */
vkn_status render_points(vkn_renderer *renderer, const struct vkn_scene *scene,
                         const struct render_points_params *params,
                         struct report_progress *progress, const volatile sig_atomic_t *stop,
                         struct render_mesh *cloud);

/* Gaussians. Zero-initialise, free with render_splats_free. */
struct render_splats {
    double origin[3]; /* as render_mesh has it */
    struct Splat *splats;
    size_t count;
    uint64_t device_bytes; /* of device memory held while they were made */
};
/* Such as lie where render_points has its points: flat along the surface, as wide as these are
 * apart, with what is seen of the field there from all directions in front of it. The caller frees
 * *splats, also after a failure. */
vkn_status render_splats(vkn_renderer *renderer, const struct vkn_scene *scene,
                         const struct render_points_params *params,
                         struct report_progress *progress, const volatile sig_atomic_t *stop,
                         struct render_splats *splats);
void render_splats_free(struct render_splats *splats);

/* What a file of an export holds. */
enum render_content { RENDER_MESH, RENDER_TEXTURE, RENDER_POINTS, RENDER_SPLATS };
/* A format of VKN_EXPORT_FORMATS. Writes into a writer that the caller has begun, and commits or
 * aborts; errors name the file. */
struct render_format {
    enum render_content content;
    const char *end; /* of its files' names */
    vkn_status (*write)(struct base_file_writer *writer, const struct render_mesh *mesh);
    vkn_status (*write_splats)(struct base_file_writer *writer, const struct render_splats *splats);
};
/* Finds the format of a path by its end. VKN_BAD_INPUT names the path, and the ends that there are.
 */
vkn_status render_find_format(enum render_content content, const char *path,
                              const struct render_format **format);
/* Lists the ends of files: ".ply, .obj or .glb" where `last` is " or ". */
#define RENDER_FORMATS_TEXT 64u
void render_list_formats(enum render_content content, const char *last,
                         char text[RENDER_FORMATS_TEXT]);

/* ---- what is shown --------------------------------------------------------------------------- */

struct step;
/* Shows what a step trains as it is now; `steps_done` counts its steps. Both, and what they belong
 * to, must outlive the renderer. */
vkn_status render_of_step(const struct step *step, const uint64_t *steps_done,
                          const char *scene_path, vkn_renderer **renderer);
/* Destroys the trainer, which holds one for it, when it is destroyed itself. */
void render_hold_trainer(vkn_renderer *renderer, vkn_trainer *trainer);

struct buffers;
/* Evaluates the samples of `rays` rays that BIND_SAMPLES of `view` has, into its BIND_FIELD. *any:
 * whether there are some; else all rays have come to their ends. */
typedef vkn_status render_evaluate_samples(void *context, const struct buffers *view, uint32_t rays,
                                           bool *any);
/* From now on views are evaluated by that in the place of the field's passes; normals, meshes and
 * points are not there then. */
void render_set_evaluator(vkn_renderer *renderer, render_evaluate_samples *evaluate, void *context);

#endif
