/* Lists every buffer that shaders see, once. C and GLSL include this file; GLSL uses the numbers.
 */
/* clang-format off */
/* A row is
 *
 *   BUFFER(number, NAME, "name", element, count, memory, kept)
 *
 *   number   value of BIND_NAME: descriptor set number / SET_SIZE, binding number % SET_SIZE
 *   "name"   name in lists of memory and in messages
 *   element  type of an element, for the host
 *   count    number of elements, from the host's struct buffer_counts *n
 *   memory   GPU_DEVICE, or GPU_HOST if the host reads or writes it between dispatches
 *   kept     SAVED(tensor): in checkpoints under that name, in the order of the rows;
 *            WEIGHTS(tensor): --init also reads it; UNSAVED: not in checkpoints
 *
 * Set 0 is a field and the samples at which the field is evaluated: training, pictures, meshes and self-tests
 * bind buffers of their own to the same numbers. Set 1 belongs to the module that records the pass, so
 * several modules' lists use the same numbers of set 1.
 */
/* clang-format on */
#ifndef SHARED_BUFFERS_H
#define SHARED_BUFFERS_H

/* Bindings of a set: two sets stay within 31 storage buffers, the limit of some drivers. */
#define SET_SIZE 15

/* clang-format off */
/* Buffers of a training step. All passes read CONFIG, which the tables of the shaders omit.
 *
 *   buffer             shape                                   contents
 *   CONFIG             Config                                  constants of the run
 *   CONTROL            Control                                 written by the host between two submissions
 *   DISPATCHES         [2 * DISPATCH_COUNT] Dispatch           copy of State.dispatches, then the proposal's
 *   STATS              [STATS_RING] Stats                      ring of step statistics, which the host reads later
 *   CAMERAS            [camera] Camera                         training views first
 *                      [depth] Depth                           then known depths of views, with loss.depth
 *   PIXELS             [pixel] RGBA8                           training images, premultiplied, or PIXEL_IGNORED:
 *                                                              all views or the resident image strips
 *   RAYS               [ray] Ray
 *   RESULTS            [ray] RayResult
 *   SAMPLES            [sample] Sample
 *   FIELD              [sample][rgb, density] f32              field values
 *   FIELD_GRADIENTS    [sample][rgb, density] f32              gradients of the loss, times the loss scale
 *   FEATURES           [level][sample][feature] f32 or f16     inputs of the MLPs, in the MLPs' precision; after
 *                                                              field_backward the live samples' gradients
 *                      [chunk's column][row] f32 or f16        then activations (field/layers.glsl)
 *   LIVE               [live sample] u32                       samples that carry a gradient
 *   PARAMS             [parameter] f32                         parameters in training, their average in inference
 *   F16_PARAMS         [parameter] f16                         rounded copy; then MLP weights by output; then
 *                                                              panels of weights (field/layers.glsl)
 *   GRADIENTS          [parameter] f32
 *   ACCUMULATORS       [parameter][low, high word] i32         sums in 64-bit fixed point, if used: high * 2^32 + low
 *                      [parameter] f16                         then gradients in f16, if used
 *   AVERAGE            [parameter] f32                         moving average of the parameters
 *   F16_AVERAGE        as F16_PARAMS                           its rounded copy
 *   OCCUPANCY          [time bin][cascade][cell] f32           density * step_min (in contracted space, a density
 *                                                              per contracted radius); negative: no camera sees
 *                                                              the cell. Cells are in Morton order.
 *                                                              Dynamic scenes: the last 8 bits are the time at
 *                                                              which the value was found (rays/cell_times.glsl)
 *   OCCUPANCY_BITS     [time bin][cascade][cell] 1 bit         1: occupied; 32 cells a word
 *                      [time bin][cascade][block] u32          then one word per block of 8x8x8 cells
 *   MOMENT1, MOMENT2   [parameter] f32                         moments of the optimiser: none, one or both, by the
 *                                                              kind of optimiser (src/optim/kinds.c)
 *                      [parameter] u32                         with optimizer.moments=bf16 both in MOMENT1
 *                                                              (optim/moments.glsl), none in MOMENT2
 *   STEP_COUNTS        [entry] u32                             optimiser steps taken by each entry
 *   STATE              State
 *                      [texel][4] ErrorCell                    then the sky, with scene.sky: red, green, blue, weight
 *                      [view][cell] ErrorCell                  then the error map, with batch.by_error
 *                      [view][VIEW_SUMS] ErrorCell             then gradients of the views, with scene.refine
 *                      [view][APPEARANCE_PARAMETERS] ErrorCell then gradients of appearances, scene.appearance
 *                      [view] View                             then the views' refinements
 *                      [view] Appearance                       then the views' appearances
 *   PARTIALS           [workgroup][summed parameter] f32       partial sums of weight gradients
 *   SCRATCH            [workgroup] bytes                       tiles of field_backward
 *                      [column][row] f32 or f16                then gradients of activations
 *   REDUCE             [REDUCE_SIZE] f32                       partial sums by workgroup, see REDUCE_*
 *                      see struct ErrorSums                    then sums of the error map, with batch.by_error
 *   INPUT_GRADIENTS    [sample][xyz 0, xyz 0] f32              gradients with respect to position and direction, of
 *                                                              live samples; with SPEC_INPUT_GRADIENTS
 *   ADDRESSES          [buffer number] u64                     addresses of all buffers, for shaders that read by
 *                                                              address; written by the module gpu
 *
 * DISPATCHES is a copy because the device reads indirect dispatch sizes from it: barriers on STATE, which only shaders
 * access, then need not wait for reads of dispatch sizes. */
#define STEP_BUFFERS(BUFFER)                                                                                           \
    BUFFER(0, CONFIG, "config", struct Config, 1, GPU_DEVICE, UNSAVED)                                                 \
    BUFFER(15, CONTROL, "control", struct Control, 1, GPU_HOST, UNSAVED)                                               \
    BUFFER(13, DISPATCHES, "group counts", struct Dispatch, 2 * DISPATCH_COUNT, GPU_DEVICE, UNSAVED)                   \
    BUFFER(16, STATS, "stats", struct Stats, STATS_RING, GPU_HOST, UNSAVED)                                            \
    BUFFER(1, CAMERAS, "cameras", uint32_t, (n->cameras * sizeof(struct Camera) + n->depths * sizeof(struct Depth)) / 4, GPU_DEVICE, UNSAVED) \
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
    BUFFER(20, ACCUMULATORS, "gradient accumulators", uint8_t, n->params * n->sum_bytes, GPU_DEVICE, UNSAVED)          \
    BUFFER(21, AVERAGE, "average parameters", float, n->params, GPU_DEVICE, WEIGHTS("average"))                        \
    BUFFER(22, F16_AVERAGE, "f16 average parameters", uint16_t, n->f16_params + n->panels, GPU_DEVICE, UNSAVED)        \
    BUFFER(9, OCCUPANCY, "occupancy", float, n->cells, GPU_DEVICE, WEIGHTS("occupancy"))                               \
    BUFFER(10, OCCUPANCY_BITS, "occupancy bits", uint32_t, n->bit_words, GPU_DEVICE, UNSAVED)                          \
    BUFFER(23, MOMENT1, "first moments", float, n->moments[0], GPU_DEVICE, SAVED("moment1"))                           \
    BUFFER(24, MOMENT2, "second moments", float, n->moments[1], GPU_DEVICE, SAVED("moment2"))                          \
    BUFFER(25, STEP_COUNTS, "step counts", uint32_t, n->entries, GPU_DEVICE, SAVED("counts"))                          \
    BUFFER(11, STATE, "state", uint32_t, (sizeof(struct State) + (n->sky_cells + n->error_cells) * sizeof(struct ErrorCell) + n->refined_views * (VIEW_SUMS * sizeof(struct ErrorCell) + sizeof(struct View)) + n->appearances * (APPEARANCE_PARAMETERS * sizeof(struct ErrorCell) + sizeof(struct Appearance))) / 4, GPU_DEVICE, SAVED("state")) \
    BUFFER(26, PARTIALS, "partial gradients", float, n->groups * n->summed, GPU_DEVICE, UNSAVED)                       \
    BUFFER(27, SCRATCH, "backward scratch", uint8_t, n->groups * n->scratch_bytes + n->layer_bytes, GPU_DEVICE, UNSAVED) \
    BUFFER(28, REDUCE, "partial sums", float, REDUCE_SIZE + n->error_sums, GPU_DEVICE, UNSAVED)                       \
    BUFFER(29, INPUT_GRADIENTS, "input gradients", float[8], n->input_gradients, GPU_DEVICE, UNSAVED)
/* clang-format on */
#define BIND_ADDRESSES      14
/* RESULTS, SAMPLES and FIELD of the coarse samples, in the passes that place the fine samples
 * (sample_fine, sample_proposal). */
#define BIND_COARSE_RESULTS 26
#define BIND_COARSE_SAMPLES 27
#define BIND_COARSE_FIELD   28
/* RESULTS, SAMPLES and FIELD of the fine samples, in the pass that computes a proposal's loss
 * (interlevel). */
#define BIND_FINE_RESULTS   23
#define BIND_FINE_SAMPLES   24
#define BIND_FINE_FIELD     25
/* RAYS, SAMPLES and FIELD of a picture, in the pass that computes normals from densities around the
 * samples (difference_normals). */
#define BIND_VIEW_RAYS      23
#define BIND_VIEW_SAMPLES   24
#define BIND_VIEW_FIELD     25
/* Parameter averaging, in which PARAMS is the buffer that is averaged. */
#define BIND_SYNCED_COUNTS  26 /* [entry] u32: step counts at the last averaging */
#define BIND_STEPS          27 /* [entry] f32: steps since then, later the rank's share */

/* Samples for callers that evaluate a field between passes: shapes in stepper/list_samples.comp. */
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

/* clang-format off */
/* Buffers of pictures, points and meshes. A mesh is made in slabs: `layers` layers of `layer` grid points whose
 * vertices are found together. A slab's values include one layer below it and two above; MESH_OVERLAP of them are
 * copied from the slab before.
 *
 *   buffer             shape                                   contents
 *   OUTPUT             [pixel] Output
 *   NORMALS            [sample][4] f32                         view normals of samples
 *                      [ray][4] f32                            then sums of weight * normal
 *   MESH               MeshGrid
 *   MESH_VALUES        [layers + MESH_OVERLAP][y][x] f32       positive inside of the surface
 *   MESH_FIRST_VERTEX  [layers + 1][y][x] u32                  first vertex on a grid point's edges, if the edges
 *                                                              have any; layer 0 is the layer below the slab
 *   MESH_POINTS        [listed point] u32                      indices of MESH_VALUES to evaluate
 *   MESH_TILES         [tile + 1][vertices, triangles] u32     sums over all preceding tiles; the last: totals
 *   MESH_TABLE         [case][2] u32                           triangles of a cell
 *   MESH_VERTICES      [vertex] MeshVertex
 *   MESH_TRIANGLES     [triangle][3] u32
 *   VISIBILITY_MAPS    [pixel] f32                             1 / distance of the visible surface, for each camera's
 *                                                              pixels from first_pixel on; 0: none
 *   TEXTURE_TRIANGLES  [triangle] TextureTriangle
 *   TEXELS             [row][column] u32                       triangle that the texel shows, with TEXEL_MARGIN if
 *                                                              the texel is beyond its edge, or TEXEL_NONE; after
 *                                                              texture_colors RGB8
 *   SPLATS             [splat] Splat
 */
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
    BUFFER(25, VISIBILITY_MAPS, "visibility maps", float, n->visibility_maps, GPU_DEVICE, UNSAVED)                     \
    BUFFER(26, TEXTURE_TRIANGLES, "texture triangles", struct TextureTriangle, n->triangles, GPU_DEVICE, UNSAVED)      \
    BUFFER(27, TEXELS, "texels", uint32_t, n->texels, GPU_DEVICE, UNSAVED)                                             \
    BUFFER(28, SPLATS, "splats", struct Splat, n->splats, GPU_HOST, UNSAVED)
/* clang-format on */

/* Defines the numbers as constants BIND_NAME, and BINDING(NAME) for the layout of a GLSL block. */
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
