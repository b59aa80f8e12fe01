/* vknerf/export.h: meshes, point clouds and splats of a run. */
#ifndef VKNERF_EXPORT_H
#define VKNERF_EXPORT_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* What a mesh makes of places that no training view sees: the inside of things, the side that they
 * stand on. The field was never told what is there. */
enum vkn_unseen {
    VKN_UNSEEN_FILL, /* what half of the views or more look at, but all of them find hidden behind
                        something, is solid: there are no inner walls, and soft surfaces end where
                        half of the light does */
    VKN_UNSEEN_DROP, /* the same; but surfaces that no view looks upon are left out, so that the
                        mesh is open where its neighbours end */
    VKN_UNSEEN_KEEP, /* whatever density the field has there */
};

/* As many pixels as suit the mesh. */
#define VKN_TEXTURE_FITTING UINT32_MAX

/* Of vkn_run_export. */
struct vkn_export_params {
    size_t size;
    const struct vkn_job *job;    /* NULL: all defaults */
    const char *run;              /* run directory or checkpoint */
    const char *scene;            /* NULL: where the run found it */
    enum vkn_scene_format format; /* of the scene; AUTO: as the run found it */
    enum vkn_precision precision; /* see vkn_renderer_open */
    const char *mesh;             /* .ply, .obj or .glb file; NULL: no mesh */
    const char *points;           /* .ply file; NULL: no point cloud */
    /* Box that both are of, in dataset units. All zero: what the training views see for the mesh
     * (without 1 % at either end of an axis where aabb_scale is above 1), everything for points. */
    double crop_low[3], crop_high[3];
    uint32_t resolution; /* voxels along the box's longest edge; 0: 256 */
    double threshold;    /* density of the surface, per dataset unit; 0: that at which 1/128 of
                            training's unit cube absorbs half of the light */
    bool has_time; /* of a scene that moves, the moment `time`, 0..1; otherwise 0 with a message */
    double time;   /* see frozen */
    enum vkn_unseen unseen; /* what the mesh makes of places that no view sees */
    double min_component;   /* connected parts with fewer vertices are removed: a share of all
                               vertices   below 1, else their number; 0: none */
    bool largest;           /* only the part with most vertices stays */
    uint32_t point_count;   /* and of splats; 0: 100000 */
    uint32_t seed;          /* of the rays that find the points */
    const char *splats;     /* since 0.2. .ply file of Gaussians, as many as points; NULL: none */
    uint32_t texture; /* since 0.2. Of a .glb file alone: pixels along the edge of a texture, at
                         most 16384, with the field's colours; VKN_TEXTURE_FITTING; 0: vertices have
                         them */
};

/* What vkn_run_export has made. */
struct vkn_export_result {
    size_t size;
    /* Of the mesh; zeros without one. */
    size_t vertices, triangles;
    size_t dropped;             /* vertices that no view sees, with VKN_UNSEEN_DROP */
    size_t components, removed; /* connected parts that were found, and those taken away again */
    uint32_t voxels[3];         /* along each axis */
    double crop_low[3], crop_high[3]; /* of the grid, dataset units */
    double voxel;                     /* edge, dataset units */
    double threshold;                 /* per dataset unit */
    size_t points;                    /* of the point cloud */
    double seconds;                   /* that it took */
    uint64_t gpu_memory_bytes;        /* most device memory held */
    uint32_t texture;       /* since 0.2. Pixels along the texture's edge; 0: there is none */
    size_t charts;          /* since 0.2. Pieces that it shows the mesh in */
    double texture_density; /* since 0.2. Its pixels along a voxel's edge */
    size_t splats;          /* since 0.2 */
    double origin[3]; /* since 0.2. In the dataset's space, what positions in .glb and in files of
                         splats count from: 0 0 0, or of a scene that is far from there a round
                         position near its middle */
};

/* Writes the mesh, then the points, then the splats, each file whole or not at all. */
VKN_API vkn_status vkn_run_export(const struct vkn_export_params *params,
                                  struct vkn_export_result *result);
/* As the JSON object of `vknerf export --json` in fresh memory that the caller frees; NULL on no
 * memory. */
VKN_API char *vkn_export_json(const struct vkn_export_params *params,
                              const struct vkn_export_result *result);

VKN_END_DECLARATIONS

#endif
