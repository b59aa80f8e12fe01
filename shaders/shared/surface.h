/* Structs in buffers of meshes, their textures, and splats. layout.h includes this file. */
#ifndef SHARED_SURFACE_H
#define SHARED_SURFACE_H

/* Grid points at which a mesh's density is evaluated, in training space: origin + spacing * (x *
 * first axis + y * second + z * third). The axes are unit vectors. Points on the grid's six faces,
 * and everything beyond, count as empty. */
struct MeshGrid {
    SHARED_UINT points[3];
    SHARED_UINT layers; /* layers of a slab; at least MESH_OVERLAP */
    SHARED_FLOAT origin[3];
    SHARED_FLOAT axes[9]; /* the first axis is axes[0] to axes[2] */
    SHARED_FLOAT spacing;
    SHARED_FLOAT threshold;        /* logarithm of the density at the surface */
    SHARED_FLOAT scale, offset[3]; /* training space = dataset space * scale + offset */
    SHARED_FLOAT time;             /* of all samples, 0..1 */
    SHARED_UINT padding;
};

#define MESH_OVERLAP     3   /* layers of values that a slab shares with the slab before */
#define MESH_LIMIT       4.0 /* values are clamped to -MESH_LIMIT .. MESH_LIMIT */
#define MESH_UNSEEN      0   /* alpha of vertices that no training view sees */
#define MESH_TABLE_WORDS 512 /* triangles of all 256 cases */
#define MESH_TILE_STEPS  8   /* points per invocation of a tile */

/* A vertex of a mesh, in training space until mesh_colors converts its position to dataset space,
 * or a point of a point cloud, in dataset space. */
struct MeshVertex {
    SHARED_FLOAT position[3];
    SHARED_FLOAT normal[3]; /* outwards, unit length */
    SHARED_UINT color;      /* RGBA8, R in the lowest byte; alpha 255 or MESH_UNSEEN */
};

#define TEXTURE_SAMPLES 8 /* samples per texel, from a voxel above the surface to one below */

/* Flag of a texel beyond its triangle's edge, and value of a texel without a triangle: see TEXELS
 * in buffers.h. */
#define TEXEL_MARGIN 0x80000000u
#define TEXEL_NONE   0xffffffffu

/* Triangle of a textured mesh: positions in dataset space; texture coordinates in pixels from the
 * left, and from the top of the resident rows. */
struct TextureTriangle {
    SHARED_FLOAT position[9], normal[9]; /* of the three corners */
    SHARED_FLOAT texel[6];
};

#define SPLAT_VIEWS     28 /* directions from which a splat is seen: shaders/render/harmonics.glsl */
#define SPLAT_DEPTHS    8  /* samples along the normal, within one spacing of the surface */
#define SPLAT_HARMONICS 16 /* degrees 0 to 3 */

/* A Gaussian on the surface. The host writes position, normal and spacing, the device the rest. */
struct Splat {
    SHARED_FLOAT position[3]; /* dataset space */
    SHARED_FLOAT normal[3];
    SHARED_FLOAT spacing;       /* distance to its neighbours, in dataset units */
    SHARED_FLOAT opacity;       /* 0..1 */
    SHARED_FLOAT harmonics[48]; /* [harmonic][rgb] of its colour */
};

#endif
