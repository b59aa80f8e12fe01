/* Every buffer that programs see, once. A row is
 *   BUFFER(number, NAME, "name", element, count, memory, kept)
 * number   of BIND_NAME: descriptor set number / SET_SIZE, binding number % SET_SIZE
 * "name"   in lists of memory and in messages
 * element  its type, for the host; count: how many, of the host's struct buffer_counts *n
 * memory   GPU_DEVICE, or GPU_HOST for what the host reads or writes between dispatches
 * kept     KEPT(tensor): in checkpoints, under that name and in the order of the rows;
 *          WEIGHTS(tensor): --init takes it over as well; LOST: it is not kept
 *
 * Set 0 is a field and the samples that it is asked about: the same for training, pictures, meshes
 * and self-tests, each with buffers of its own. Set 1 belongs to the room that records the pass, so
 * lists of several rooms use its numbers. Included by C and by GLSL, which takes the numbers alone.
 */
#ifndef SHARED_BUFFERS_H
#define SHARED_BUFFERS_H

#define SET_SIZE \
    15 /* bindings of a set: two sets stay below the 31 storage buffers of some drivers */

/* config            constants of the run
 * control           written by the host between recordings
 * stats             a ring, read late by the host
 * training images   premultiplied RGBA8 (all views, or some at a time), or PIXEL_IGNORED
 * field values      rgb and density of samples
 * field gradients   of the loss by rgb and density
 * features          [level][sample][feature], float, or f16 where the MLPs are: the field's inputs;
 *                   after field_backward gradients of live samples
 * live samples      indices of samples that carry a gradient
 * parameters        masters when training, their average for inference; f16: a rounded copy of them
 * gradient sums     64-bit fixed point, low word first, or pairs of f16
 * average           moving average of the masters
 * occupancy         [slice of time][cascade][resolution^3], Morton order: optical thickness of a
 *                   smallest step (where space is contracted, of that much contracted radius);
 *                   negative where no camera sees. Where the scene moves the last 8 bits are the
 *                   time at which that was found (shaders/rays/cell_times.glsl)
 * occupancy bits    32 cells a word; then one uint per 8x8x8 block
 * moments           of gradients, which the optimiser keeps: as many as its kind has (src/optim/kinds.c)
 * step counts       steps of the optimiser taken by each entry
 * partial gradients, backward scratch   by workgroup of field_backward: sums of weights; its tiles
 * partial sums      by workgroup, see REDUCE_*
 * input gradients   [sample]: by position (xyz, 0), by direction (xyz, 0); of live samples, where
 *                   SPEC_INPUT_GRADIENTS asks for them
 * addresses         64-bit addresses of all buffers by number, for programs that read by address;
 *                   the room gpu fills it in */
/* Group counts are begin_step's copy of State.dispatches. Devices read them by a way of their own:
 * apart from what programs write, that spares barriers which wait for both. */
/* clang-format off */
#define STEP_BUFFERS(BUFFER)                                                                                           \
    BUFFER(0, CONFIG, "config", struct Config, 1, GPU_DEVICE, UNSAVED)                                                 \
    BUFFER(15, CONTROL, "control", struct Control, 1, GPU_HOST, UNSAVED)                                               \
    BUFFER(13, DISPATCHES, "group counts", struct Dispatch, 2 * DISPATCH_COUNT, GPU_DEVICE, UNSAVED)                   \
    BUFFER(16, STATS, "stats", struct Stats, STATS_RING, GPU_HOST, UNSAVED)                                            \
    BUFFER(1, CAMERAS, "cameras", struct Camera, n->cameras, GPU_DEVICE, UNSAVED)                                      \
    BUFFER(17, PIXELS, "training images", uint32_t, n->pixels, GPU_DEVICE, UNSAVED)                                    \
    BUFFER(2, RAYS, "rays", struct Ray, n->rays, GPU_DEVICE, UNSAVED)                                                  \
    BUFFER(3, RESULTS, "ray results", struct RayResult, n->rays, GPU_DEVICE, UNSAVED)                                  \
    BUFFER(4, SAMPLES, "samples", struct Sample, n->samples, GPU_DEVICE, UNSAVED)                                      \
    BUFFER(5, FIELD, "field values", float[4], n->samples, GPU_DEVICE, UNSAVED)                                        \
    BUFFER(12, FIELD_GRADIENTS, "field gradients", float[4], n->samples, GPU_DEVICE, UNSAVED)                          \
    BUFFER(6, FEATURES, "features", uint8_t, n->samples * n->feature_bytes + n->layer_bytes + n->kept_bytes, GPU_DEVICE, UNSAVED) \
    BUFFER(18, LIVE, "live samples", uint32_t, n->samples, GPU_DEVICE, UNSAVED)                                        \
    BUFFER(7, PARAMS, "parameters", float, n->params, GPU_DEVICE, WEIGHTS("params"))                                   \
    BUFFER(8, F16_PARAMS, "f16 parameters", uint16_t, n->f16_params + n->panels, GPU_DEVICE, UNSAVED)                  \
    BUFFER(19, GRADIENTS, "gradients", float, n->params, GPU_DEVICE, UNSAVED)                                          \
    BUFFER(20, ACCUMULATORS, "gradient sums", uint8_t, n->params * n->sum_bytes, GPU_DEVICE, UNSAVED)                  \
    BUFFER(21, AVERAGE, "average parameters", float, n->params, GPU_DEVICE, WEIGHTS("average"))                        \
    BUFFER(22, F16_AVERAGE, "f16 average parameters", uint16_t, n->f16_params + n->panels, GPU_DEVICE, UNSAVED)        \
    BUFFER(9, OCCUPANCY, "occupancy", float, n->cells, GPU_DEVICE, WEIGHTS("occupancy"))                               \
    BUFFER(10, OCCUPANCY_BITS, "occupancy bits", uint32_t, n->bit_words, GPU_DEVICE, UNSAVED)                          \
    BUFFER(23, MOMENT1, "first moments", float, n->moments[0], GPU_DEVICE, SAVED("moment1"))                           \
    BUFFER(24, MOMENT2, "second moments", float, n->moments[1], GPU_DEVICE, SAVED("moment2"))                          \
    BUFFER(25, STEP_COUNTS, "step counts", uint32_t, n->entries, GPU_DEVICE, SAVED("counts"))                          \
    BUFFER(11, STATE, "state", struct State, 1, GPU_DEVICE, SAVED("state"))                                            \
    BUFFER(26, PARTIALS, "partial gradients", float, n->groups * n->summed, GPU_DEVICE, UNSAVED)                       \
    BUFFER(27, SCRATCH, "backward scratch", uint8_t, n->groups * n->scratch_bytes + n->layer_bytes, GPU_DEVICE, UNSAVED) \
    BUFFER(28, REDUCE, "partial sums", float, REDUCE_SIZE, GPU_DEVICE, UNSAVED)                                        \
    BUFFER(29, INPUT_GRADIENTS, "input gradients", float[8], n->input_gradients, GPU_DEVICE, UNSAVED)
/* clang-format on */
#define BIND_ADDRESSES      14
/* What the pass that samples for the fine field reads of the coarse one's set of samples, in
 * bindings of its own: no rows, for these are the set's RESULTS, SAMPLES and FIELD. */
#define BIND_COARSE_RESULTS 26
#define BIND_COARSE_SAMPLES 27
#define BIND_COARSE_FIELD   28
/* What the pass that teaches a proposal reads of the fine samples. */
#define BIND_FINE_RESULTS   23
#define BIND_FINE_SAMPLES   24
#define BIND_FINE_FIELD     25
/* What the pass that finds normals from densities around samples reads of the picture's samples. */
#define BIND_VIEW_RAYS      23
#define BIND_VIEW_SAMPLES   24
#define BIND_VIEW_FIELD     25
/* Where ranks that took periods alone are averaged, in bindings of their own, which have the
 * numbers that are averaged in the place of the parameters: the entries' counts when all ranks were
 * the same; their steps since, as float. */
#define BIND_SYNCED_COUNTS  26
#define BIND_STEPS          27

/* Samples as those who evaluate them between passes read and write them, in bindings of their own.
 */
#define BIND_LIST_SUMMARY       15
#define BIND_LISTED_POSITIONS   16
#define BIND_LISTED_DIRECTIONS  17
#define BIND_LISTED_DISTANCES   18
#define BIND_LISTED_WIDTHS      19
#define BIND_LISTED_TIMES       20
#define BIND_LISTED_RAYS        21
#define BIND_LISTED_RANGES      22
#define BIND_LISTED_TARGETS     23
#define BIND_LISTED_BACKGROUNDS 24
#define BIND_LISTED_VIEWS       25
#define BIND_LISTED_IN_LOSS     26
#define BIND_LISTED_DENSITIES   27

/* Pictures, points and meshes. A mesh's slab is `layers` layers of `layer` grid points whose
 * vertices are found together; MESH_OVERLAP layers below it and two above belong to it.
 * normals               view normals of samples; then sums of weight * normal of rays
 * mesh values           [layers + MESH_OVERLAP][points[1]][points[0]]: positive inside of the surface
 * mesh vertex numbers   [layers + 1][points[1]][points[0]]: the first vertex of a point's edges,
 *                       where these have any; layer 0 is the one below the slab
 * mesh points           those of the mesh values to evaluate
 * mesh tiles            [2][tiles + 1]: vertices and triangles of all tiles before; the last: of all
 * mesh table            triangles of a cell, two words for each case
 * sight                 for each pixel of the views of the cameras, from their first_pixel on,
 *                       1 / distance of what they see; 0: nothing
 * texels                pixels of rows of a texture: the number of the triangle that each shows,
 *                       TEXEL_MARGIN more where it shows it beyond its edge, TEXEL_NONE; once that
 * is evaluated, RGB8 */
/* clang-format off */
#define VIEW_BUFFERS(BUFFER)                                                                                           \
    BUFFER(15, OUTPUT, "pixels", struct Output, n->rays, GPU_HOST, UNSAVED)                                            \
    BUFFER(16, NORMALS, "normals", float[4], n->samples + n->rays, GPU_DEVICE, UNSAVED)                                \
    BUFFER(17, MESH, "mesh grid", struct MeshGrid, 1, GPU_DEVICE, UNSAVED)                                             \
    BUFFER(18, MESH_VALUES, "mesh values", float, (n->layers + MESH_OVERLAP) * n->layer, GPU_DEVICE, UNSAVED)          \
    BUFFER(19, MESH_FIRST_VERTEX, "mesh vertex numbers", uint32_t, (n->layers + 1) * n->layer, GPU_DEVICE, UNSAVED)    \
    BUFFER(20, MESH_POINTS, "mesh points", uint32_t, n->layers * n->layer, GPU_DEVICE, UNSAVED)                        \
    BUFFER(21, MESH_TILES, "mesh tiles", uint32_t[2], n->tiles + 1, GPU_DEVICE, UNSAVED)                               \
    BUFFER(22, MESH_TABLE, "mesh table", uint32_t, MESH_TABLE_WORDS, GPU_DEVICE, UNSAVED)                              \
    BUFFER(23, MESH_VERTICES, "mesh vertices", struct MeshVertex, n->vertices, GPU_HOST, UNSAVED)                      \
    BUFFER(24, MESH_TRIANGLES, "mesh triangles", uint32_t[3], n->triangles, GPU_HOST, UNSAVED)                         \
    BUFFER(25, VISIBILITY_MAPS, "sight", float, n->visibility_maps, GPU_DEVICE, UNSAVED)                               \
    BUFFER(26, TEXTURE_TRIANGLES, "texture triangles", struct TextureTriangle, n->triangles, GPU_DEVICE, UNSAVED)      \
    BUFFER(27, TEXELS, "texels", uint32_t, n->texels, GPU_DEVICE, UNSAVED)                                             \
    BUFFER(28, SPLATS, "splats", struct Splat, n->splats, GPU_HOST, UNSAVED)
/* clang-format on */

/* The numbers as constants: BINDING(RAYS) in the layout of a GLSL block. */
#ifdef VULKAN
#define BUFFER_NUMBER(number, NAME, name, element, count, memory, kept) \
    const uint BIND_##NAME = number;
#define BINDING(NAME) set = BIND_##NAME / SET_SIZE, binding = BIND_##NAME % SET_SIZE
#else
#define BUFFER_NUMBER(number, NAME, name, element, count, memory, kept) BIND_##NAME = (number),
enum {
#endif
STEP_BUFFERS(BUFFER_NUMBER)
VIEW_BUFFERS(BUFFER_NUMBER)
#ifndef VULKAN
}
;
#endif

#endif
