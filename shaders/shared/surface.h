/* Meshes, their textures, and splats: structs in buffers of those who export them. A part of
 * layout.h. */
#ifndef SHARED_SURFACE_H
#define SHARED_SURFACE_H

/* The points where a mesh's density is looked at: origin + spacing * (x, y, z), in training space.
 * Those on the grid's six faces, and all beyond, count as empty. */
struct MeshGrid {
    SHARED_UINT points[3];
    SHARED_UINT layers; /* of a slab; at least MESH_OVERLAP */
    SHARED_FLOAT origin[3];
    SHARED_FLOAT spacing;
    SHARED_FLOAT threshold;        /* logarithm of the surface's density */
    SHARED_FLOAT scale, offset[3]; /* training space = dataset space * scale + offset */
    SHARED_FLOAT time;             /* of all samples, 0..1 */
    SHARED_UINT padding[2];
};

#define MESH_OVERLAP     3   /* layers of values that a slab shares with the one before */
#define MESH_LIMIT       4.0 /* values are kept within -MESH_LIMIT .. MESH_LIMIT */
#define MESH_UNSEEN      0   /* A of vertices that no training view sees */
#define MESH_TABLE_WORDS 512 /* of the triangles of all 256 cases */
#define MESH_TILE_STEPS  8   /* points of a tile: this times the workgroup's size */

struct MeshVertex {
    SHARED_FLOAT position[3];
    SHARED_FLOAT normal[3]; /* outwards, unit length */
    SHARED_UINT color;      /* RGBA8, R in the lowest byte; A 255, or MESH_UNSEEN */
};

#define TEXTURE_SAMPLES 8 /* of a pixel, from a voxel above the surface to one below */

/* Of a texel, see buffers.h. */
#define TEXEL_MARGIN 0x80000000u
#define TEXEL_NONE   0xffffffffu

/* Of a mesh with a texture; positions in the dataset's space, pixels from the left and top of the
 * rows at hand. */
struct TextureTriangle {
    SHARED_FLOAT position[9], normal[9]; /* of its three corners */
    SHARED_FLOAT texel[6];
};

#define SPLAT_VIEWS     28 /* directions that a splat is seen from: shaders/render/harmonics.glsl */
#define SPLAT_DEPTHS    8  /* samples from its spacing above the surface to as far below */
#define SPLAT_HARMONICS 16 /* of degrees 0 to 3 */

/* A place of a surface as a Gaussian: the host gives the first seven, the device what follows. */
struct Splat {
    SHARED_FLOAT position[3]; /* in the dataset's space */
    SHARED_FLOAT normal[3];
    SHARED_FLOAT spacing;       /* to its neighbours, in the dataset's unit */
    SHARED_FLOAT opacity;       /* 0..1 */
    SHARED_FLOAT harmonics[48]; /* [harmonic][rgb] of what is seen of it */
};

#endif
