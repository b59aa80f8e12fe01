/* clang-format off */

/* vknerf/choices.h: what settings that are one of several things can be, by name and as enumerations. */
#ifndef VKNERF_CHOICES_H
#define VKNERF_CHOICES_H

/* X(ENUMERATOR, name): their values count from 1, as 0 is the default. */

#define VKN_MODELS(X)                                                                                   \
    X(VKN_MODEL_NGP, ngp)                                                                               \
    X(VKN_MODEL_VANILLA, vanilla)                                                                       \
    X(VKN_MODEL_DYNAMIC, dynamic)                                                                       \
    X(VKN_MODEL_LAYERED, layered)                                                                       \
    X(VKN_MODEL_GLSL, glsl)
/* Models whose field may be the canonical one of the dynamic model. */
#define VKN_CANONICALS(X)                                                                               \
    X(VKN_CANONICAL_NGP, ngp)                                                                           \
    X(VKN_CANONICAL_VANILLA, vanilla)                                                                   \
    X(VKN_CANONICAL_LAYERED, layered)
#define VKN_PRECISIONS(X)                                                                               \
    X(VKN_PRECISION_FP32, fp32)                                                                         \
    X(VKN_PRECISION_FP16, fp16)                                                                         \
    X(VKN_PRECISION_COOPMAT, coopmat)
/* How gradients of grid entries are added up: atomic f32 addition; 64-bit fixed point in two integers,
 * the same in any order; f32 by compare-and-swap; two f16 at a time. */
#define VKN_GRADIENT_SUMS(X)                                                                            \
    X(VKN_SUMS_F32, f32)                                                                              \
    X(VKN_SUMS_FIXED, fixed)                                                                            \
    X(VKN_SUMS_CAS, cas)                                                                               \
    X(VKN_SUMS_F16, f16)
#define VKN_BACKGROUNDS(X)                                                                              \
    X(VKN_BACKGROUND_RANDOM, random)                                                                    \
    X(VKN_BACKGROUND_WHITE, white)                                                                      \
    X(VKN_BACKGROUND_BLACK, black)
#define VKN_SWITCHES(X)                                                                                 \
    X(VKN_SWITCH_ON, on)                                                                                \
    X(VKN_SWITCH_OFF, off)
/* transforms.json of Blender, instant-ngp or nerfstudio; a COLMAP model; poses_bounds.npy; NSVF's folders.
 * Each has a reader of that name, scene_reader_NAME (src/scene/reader.h). A folder that holds several is read
 * as the first of them: transforms.json is what its owner made for training, with splits and a space of its
 * own; a COLMAP model has lenses and points; poses_bounds.npy, mostly made from such a model, has neither. */
#define VKN_SCENE_FORMATS(X)                                                                            \
    X(VKN_SCENE_TRANSFORMS, transforms)                                                                 \
    X(VKN_SCENE_COLMAP, colmap)                                                                         \
    X(VKN_SCENE_LLFF, llff)                                                                             \
    X(VKN_SCENE_NSVF, nsvf)
/* What lies outside of the cube of side aabb_scale: nothing, or all that is left of space, drawn in to
 * a cube of twice the side (Mip-NeRF 360's contraction in the maximum norm). */
#define VKN_CONTRACTIONS(X)                                                                             \
    X(VKN_CONTRACTION_NONE, none)                                                                       \
    X(VKN_CONTRACTION_CUBE, cube)
/* Where on a ray samples lie: where the occupancy grid says that something may be; everywhere, as many for
 * each ray; as many for each ray, most of them where a coarse field of these has found something; where a
 * small field of its own, which learns nothing else, proposes them. */
#define VKN_SAMPLINGS(X)                                                                                \
    X(VKN_SAMPLING_OCCUPANCY, occupancy)                                                                \
    X(VKN_SAMPLING_UNIFORM, uniform)                                                                    \
    X(VKN_SAMPLING_HIERARCHICAL, hierarchical)                                                          \
    X(VKN_SAMPLING_PROPOSAL, proposal)
/* What samples that no grid places are evenly spread in: steps of the march; distance; 1 / distance; its
 * logarithm. */
#define VKN_SPACINGS(X)                                                                                 \
    X(VKN_SPACING_STEPS, steps)                                                                         \
    X(VKN_SPACING_LINEAR, linear)                                                                       \
    X(VKN_SPACING_DISPARITY, disparity)                                                                 \
    X(VKN_SPACING_LOG, log)
/* Gradient checkpointing (Chen et al. 2016): on, what layers made is computed again in the backward pass. */
#define VKN_CHECKPOINTINGS(X)                                                                           \
    X(VKN_CHECKPOINTING_ON, on)                                                                         \
    X(VKN_CHECKPOINTING_OFF, off)
/* Of the density, from the field's raw output x: e^x; softplus(x - 1), as in mip-NeRF; max(x, 0), as in
 * NeRF. In the order of the shaders' DENSITY_*. */
#define VKN_DENSITY_ACTIVATIONS(X)                                                                      \
    X(VKN_DENSITY_EXP, exp)                                                                             \
    X(VKN_DENSITY_SOFTPLUS, softplus)                                                                   \
    X(VKN_DENSITY_RELU, relu)
/* What of the position the density MLP is given: features of the hash grid, or frequencies; or nothing else. */
#define VKN_POSITION_ENCODINGS(X)                                                                       \
    X(VKN_POSITION_HASH, hash)                                                                          \
    X(VKN_POSITION_FREQUENCIES, frequencies)                                                            \
    X(VKN_POSITION_IDENTITY, identity)
/* What of the direction the colour MLP is given: spherical harmonics, frequencies, the unit vector itself, or
 * nothing. In the order of the shaders' DIRECTION_*. */
#define VKN_DIRECTION_ENCODINGS(X)                                                                      \
    X(VKN_DIRECTION_HARMONICS, harmonics)                                                               \
    X(VKN_DIRECTION_FREQUENCIES, frequencies)                                                           \
    X(VKN_DIRECTION_IDENTITY, identity)                                                                 \
    X(VKN_DIRECTION_NONE, none)
/* Of hidden layers: max(x, 0); max(x, x / 100); ln(1 + e^x); (x + sqrt(x^2 + 4)) / 2 (Barron 2021);
 * 1 / (1 + e^-x); the hyperbolic tangent; x. Their slopes follow from their values. In the order of the shaders'
 * ACTIVATION_*. */
#define VKN_ACTIVATIONS(X)                                                                              \
    X(VKN_ACTIVATION_RELU, relu)                                                                        \
    X(VKN_ACTIVATION_LEAKY_RELU, leaky_relu)                                                            \
    X(VKN_ACTIVATION_SOFTPLUS, softplus)                                                                \
    X(VKN_ACTIVATION_SQUAREPLUS, squareplus)                                                            \
    X(VKN_ACTIVATION_SIGMOID, sigmoid)                                                                  \
    X(VKN_ACTIVATION_TANH, tanh)                                                                        \
    X(VKN_ACTIVATION_NONE, none)
/* M x N x K of a cooperative-matrix product. */
#define VKN_MATRIX_SHAPES(X)                                                                            \
    X(VKN_SHAPE_8X8X8, 8x8x8)                                                                           \
    X(VKN_SHAPE_8X8X16, 8x8x16)                                                                         \
    X(VKN_SHAPE_8X16X16, 8x16x16)                                                                       \
    X(VKN_SHAPE_16X8X16, 16x8x16)                                                                       \
    X(VKN_SHAPE_16X16X16, 16x16x16)
#define VKN_ACCUMULATES(X)                                                                              \
    X(VKN_ACCUMULATE_F32, f32)                                                                          \
    X(VKN_ACCUMULATE_F16, f16)
/* What an operation of the precision policy is computed in. */
#define VKN_POLICIES(X)                                                                                 \
    X(VKN_POLICY_F32, f32)                                                                              \
    X(VKN_POLICY_F16, f16)                                                                              \
    X(VKN_POLICY_BF16, bf16)
/* Of a pixel, in the order of the shaders' LOSS_*. */
#define VKN_LOSSES(X)                                                                                   \
    X(VKN_LOSS_HUBER, huber)                                                                            \
    X(VKN_LOSS_L2, l2)                                                                                  \
    X(VKN_LOSS_L1, l1)                                                                                  \
    X(VKN_LOSS_CHARBONNIER, charbonnier)
/* How parameters follow from gradients, in the order of the shaders' OPTIMIZER_*. */
#define VKN_OPTIMIZERS(X)                                                                               \
    X(VKN_OPTIMIZER_ADAM, adam)                                                                         \
    X(VKN_OPTIMIZER_LION, lion)
/* How the learning rate falls: at milestones; exponentially (NeRF) or along half a cosine to a final
 * rate; as points say. */
#define VKN_RATE_SCHEDULES(X)                                                                           \
    X(VKN_RATE_STEP, step)                                                                              \
    X(VKN_RATE_EXPONENTIAL, exponential)                                                                \
    X(VKN_RATE_COSINE, cosine)                                                                          \
    X(VKN_RATE_FILE, file)
#define VKN_LOSS_SCALES(X)                                                                              \
    X(VKN_LOSS_SCALE_STATIC, static)                                                                    \
    X(VKN_LOSS_SCALE_DYNAMIC, dynamic)                                                                  \
    X(VKN_LOSS_SCALE_SCHEDULE, schedule)

/* Ranks that train together: gradients are added up in every step, and weights are the same on all; or each goes
 * its own way for 16 steps, and weights are averaged (local SGD; Stich 2019). */
#define VKN_PARALLEL_MODES(X)                                                                           \
    X(VKN_PARALLEL_SYNCHRONOUS, synchronous)                                                                  \
    X(VKN_PARALLEL_AVERAGE, average)
/* Numbers that gradients of the hash grid are exchanged as. */
#define VKN_COMMUNICATION_TYPES(X)                                                                      \
    X(VKN_COMMUNICATION_F32, f32)                                                                       \
    X(VKN_COMMUNICATION_F16, f16)
/* What of something each of them has, or does. */
#define VKN_PARALLEL_PARTS(X)                                                                           \
    X(VKN_PART_ALL, all)                                                                                \
    X(VKN_PART_SHARE, share)

/* Files that vkn_run_export writes, by the end of their names, and what they hold: a mesh, a mesh with a texture,
 * points, splats. Hardly any program reads points of .obj and .glb files. LOCAL: positions have single precision and
 * count from vkn_export_result.origin, as positions of all splats do. Writers are in src/render/formats.h. */
#define VKN_EXPORT_FORMATS(MESH, TEXTURE, POINTS, SPLATS, LOCAL)                                        \
    MESH(ply) POINTS(ply) SPLATS(ply)                                                                   \
    MESH(obj)                                                                                           \
    MESH(glb) TEXTURE(glb) LOCAL(glb)
/* In the place of what is not asked for. */
#define VKN_NO_FORMAT(extension)

/* Which pairs of pictures vkn_prepare compares: all, or those near each other in the order of their names and a
 * few far apart. */
#define VKN_MATCHERS(X)                                                                                 \
    X(VKN_MATCHER_EXHAUSTIVE, exhaustive)                                                               \
    X(VKN_MATCHER_SEQUENTIAL, sequential)
/* COLMAP's names of the lenses that it finds and vknerf reads. */
#define VKN_CAMERA_MODELS(X)                                                                            \
    X(VKN_CAMERA_MODEL_SIMPLE_PINHOLE, SIMPLE_PINHOLE)                                                  \
    X(VKN_CAMERA_MODEL_PINHOLE, PINHOLE)                                                                \
    X(VKN_CAMERA_MODEL_SIMPLE_RADIAL, SIMPLE_RADIAL)                                                    \
    X(VKN_CAMERA_MODEL_RADIAL, RADIAL)                                                                  \
    X(VKN_CAMERA_MODEL_OPENCV, OPENCV)                                                                  \
    X(VKN_CAMERA_MODEL_SIMPLE_RADIAL_FISHEYE, SIMPLE_RADIAL_FISHEYE)                                    \
    X(VKN_CAMERA_MODEL_OPENCV_FISHEYE, OPENCV_FISHEYE)

/* X(name, ENUMERATOR of 0, its name, the others): enum vkn_name. */
#define VKN_ENUMERATIONS(X)                                                                             \
    X(model, VKN_MODEL_DEFAULT, default, VKN_MODELS)                                                    \
    X(canonical, VKN_CANONICAL_DEFAULT, default, VKN_CANONICALS)                                        \
    X(precision, VKN_PRECISION_AUTO, auto, VKN_PRECISIONS)                                              \
    X(gradient_sums, VKN_SUMS_DEFAULT, default, VKN_GRADIENT_SUMS)                                      \
    X(background, VKN_BACKGROUND_DEFAULT, default, VKN_BACKGROUNDS)                                     \
    X(switch, VKN_SWITCH_DEFAULT, default, VKN_SWITCHES)                                                \
    X(scene_format, VKN_SCENE_AUTO, auto, VKN_SCENE_FORMATS)                                            \
    X(contraction, VKN_CONTRACTION_DEFAULT, default, VKN_CONTRACTIONS)                                  \
    X(sampling, VKN_SAMPLING_DEFAULT, default, VKN_SAMPLINGS)                                           \
    X(spacing, VKN_SPACING_DEFAULT, default, VKN_SPACINGS)                                              \
    X(checkpointing, VKN_CHECKPOINTING_AUTO, auto, VKN_CHECKPOINTINGS)                                  \
    X(density_activation, VKN_DENSITY_DEFAULT, default, VKN_DENSITY_ACTIVATIONS)                        \
    X(position_encoding, VKN_POSITION_DEFAULT, default, VKN_POSITION_ENCODINGS)                         \
    X(direction_encoding, VKN_DIRECTION_DEFAULT, default, VKN_DIRECTION_ENCODINGS)                      \
    X(activation, VKN_ACTIVATION_DEFAULT, default, VKN_ACTIVATIONS)                                     \
    X(matrix_shape, VKN_SHAPE_DEFAULT, default, VKN_MATRIX_SHAPES)                                      \
    X(accumulate, VKN_ACCUMULATE_DEFAULT, default, VKN_ACCUMULATES)                                     \
    X(policy, VKN_POLICY_DEFAULT, default, VKN_POLICIES)                                                \
    X(loss, VKN_LOSS_DEFAULT, default, VKN_LOSSES)                                                      \
    X(optimizer, VKN_OPTIMIZER_DEFAULT, default, VKN_OPTIMIZERS)                                        \
    X(rate_schedule, VKN_RATE_DEFAULT, default, VKN_RATE_SCHEDULES)                                     \
    X(loss_scale, VKN_LOSS_SCALE_DEFAULT, default, VKN_LOSS_SCALES)                                     \
    X(parallel_mode, VKN_PARALLEL_DEFAULT, default, VKN_PARALLEL_MODES)                                 \
    X(communication_type, VKN_COMMUNICATION_DEFAULT, default, VKN_COMMUNICATION_TYPES)                  \
    X(parallel_part, VKN_PART_DEFAULT, default, VKN_PARALLEL_PARTS)                                     \
    X(matcher, VKN_MATCHER_AUTO, auto, VKN_MATCHERS)                                                    \
    X(camera_model, VKN_CAMERA_MODEL_AUTO, auto, VKN_CAMERA_MODELS)

/* The elements of an enumeration, and of an array of names. */
#define VKN_ENUMERATOR(enumerator, name) enumerator,
#define VKN_NAME(enumerator, name)       #name,

#define VKN_ENUM(name, zero, zero_name, others) enum vkn_##name { zero, others(VKN_ENUMERATOR) };

/* enum vkn_model, vkn_precision, vkn_background, ...: one for each row of VKN_ENUMERATIONS. */
VKN_ENUMERATIONS(VKN_ENUM)

/* clang-format on */

#endif
