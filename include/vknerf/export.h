/* vknerf/export.h: writes the surface of a trained field as mesh, points or Gaussian splats. */
#ifndef VKNERF_EXPORT_H
#define VKNERF_EXPORT_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* Treatment of regions that no training view sees, such as the inside of objects and their
 * underside. The density of the field is arbitrary there. */
enum vkn_unseen {
    /* Solid, if at least half of the views look at the region and the surface hides it from all of
     * them: there are no inner walls, and soft surfaces end where transmittance is one half. */
    VKN_UNSEEN_FILL,
    /* As FILL, but surfaces that no view sees are removed: the mesh is open there. */
    VKN_UNSEEN_DROP,
    /* The density of the field. */
    VKN_UNSEEN_KEEP,
};

/* Texture of a size that suits the mesh. */
#define VKN_TEXTURE_FITTING UINT32_MAX

/* Parameters of vkn_run_export. */
struct vkn_export_params {
    size_t size;
    const struct vkn_job *job;    /* NULL: all defaults */
    const char *run;              /* run directory or checkpoint */
    const char *scene;            /* NULL: the path that the run recorded */
    enum vkn_scene_format format; /* of the scene; AUTO: the format that the run recorded */
    enum vkn_precision precision; /* see vkn_renderer_open */
    const char *mesh;             /* .ply, .obj or .glb file; NULL: no mesh */
    const char *points;           /* .ply file; NULL: no point cloud */
    /* Box to export, in dataset units. All zero: see `object`; else for the mesh the region that
     * training views see (without 1 % at either end of each axis if aabb_scale is above 1), for
     * points everything. */
    double crop_low[3], crop_high[3];
    uint32_t resolution;    /* voxels along the box's longest edge; 0: 256 */
    double threshold;       /* density of the surface, per dataset unit; 0: the density whose
                               transmittance over 1/128 of the unit cube of training space is 1/2 */
    bool has_time;          /* export a dynamic scene at `time`; otherwise at 0, with a message */
    double time;            /* 0..1 */
    enum vkn_unseen unseen; /* treatment of regions that no training view sees */
    double min_component; /* connected components with fewer vertices are removed; below 1: a share
                             of all vertices; 0: none */
    bool largest;         /* only the component with most vertices is kept */
    uint32_t point_count; /* number of points and of splats; 0: 100000 */
    uint32_t seed;        /* of the rays that find the points */
    const char *splats;   /* .ply file of `point_count` Gaussians; NULL: none. Needs `size` */
    /* Pixels along the edge of the colour texture of a .glb mesh, at most 16384, or
     * VKN_TEXTURE_FITTING; 0: colours of vertices. Needs `size`. */
    uint32_t texture;
    /* Without a box: exports the box of the object that most training views look at, if there is
     * one. Needs `size`. */
    bool object;
    /* Folder for the masks of a run with loss.robust, one PNG file for each training image, 0 at
     * pixels that were left out; NULL: no masks. Needs `size`. */
    const char *masks;
    /* Metres of a dataset unit; 0: the scene.unit_length of the run, else of the scene's file. If
     * it is known, positions in all files are in metres. Needs `size`. */
    double unit_length;
    /* Degrees by which the box of `crop_low` and `crop_high` is rotated about its centre: about the
     * dataset's x axis, then y, then z, -360 to 360. Refused without a box. Needs `size`. */
    double crop_rotation[3];
};

/* Result of vkn_run_export. */
struct vkn_export_result {
    size_t size;
    /* Mesh: zeros without one. */
    size_t vertices, triangles;
    size_t dropped;                   /* vertices removed by VKN_UNSEEN_DROP */
    size_t components, removed;       /* connected components found; components removed */
    uint32_t voxels[3];               /* number of the grid's voxels along each axis */
    double crop_low[3], crop_high[3]; /* corners of the grid before its rotation,
                                       * dataset units */
    double voxel;                     /* edge of a voxel, dataset units */
    double threshold;                 /* density of the surface, per dataset unit */
    size_t points;                    /* number of points of the point cloud */
    double seconds;                   /* wall time */
    uint64_t gpu_memory_bytes;        /* peak of device memory */
    /* All further members need `size`. */
    uint32_t texture;       /* pixels along the texture's edge; 0: no texture */
    size_t charts;          /* number of charts of the texture */
    double texture_density; /* texture pixels along a voxel's edge */
    size_t splats;          /* number of Gaussians */
    double origin[3]; /* origin of positions in .glb files and of splats, in the files' units: 0 0
                         0, or for a scene far from there a rounded position near its centre */
    bool has_object;  /* the object's box was found and exported */
    double object_low[3], object_high[3]; /* the object's box, dataset units */
    /* Masks: share of the images' area that is left out, and images with such a part. */
    double masked_share;
    uint32_t masked_views;
    double unit_length; /* metres of a dataset unit; 0: unknown, the files are in dataset units */
};

/* Writes the mesh, the points and the splats, in this order, each file completely or not at all. */
VKN_API vkn_status vkn_run_export(const struct vkn_export_params *params,
                                  struct vkn_export_result *result);
/* Writes the same files of a renderer's field, in training or of a checkpoint. `scene` must have
 * the training views of the renderer's scene. Of `params` the members run, scene, format, precision
 * and masks are refused, and of the job only quiet, stop and progress have an effect. has_time also
 * sets the renderer's time, as vkn_renderer_set_time does; otherwise a dynamic field is exported at
 * the renderer's time. */
VKN_API vkn_status vkn_renderer_export(vkn_renderer *renderer, vkn_scene *scene,
                                       const struct vkn_export_params *params,
                                       struct vkn_export_result *result);
/* Returns the JSON object of `vknerf export --json`, in memory that the caller frees; NULL if
 * memory runs out. */
VKN_API char *vkn_export_json(const struct vkn_export_params *params,
                              const struct vkn_export_result *result);

VKN_END_DECLARATIONS

#endif
