/* clang-format off */

/* vknerf/choices.h: the settings' named values, as lists of names and as enumerations. */
#ifndef VKNERF_CHOICES_H
#define VKNERF_CHOICES_H

/* Each list is of X(ENUMERATOR, name). The values count from 1; 0 is the default. */

/* Models of the field: hash grid with small MLPs (Instant NGP); NeRF's MLP; a deformation in front of a canonical
 * field; layers with any encodings; an encoding in GLSL. */
#define VKN_MODELS(X)                                                                                   \
    X(VKN_MODEL_NGP, ngp)                                                                               \
    X(VKN_MODEL_VANILLA, vanilla)                                                                       \
    X(VKN_MODEL_DYNAMIC, dynamic)                                                                       \
    X(VKN_MODEL_LAYERED, layered)                                                                       \
    X(VKN_MODEL_GLSL, glsl)
/* Models of the dynamic model's canonical field. */
#define VKN_CANONICALS(X)                                                                               \
    X(VKN_CANONICAL_NGP, ngp)                                                                           \
    X(VKN_CANONICAL_VANILLA, vanilla)                                                                   \
    X(VKN_CANONICAL_LAYERED, layered)
/* Arithmetic of the field; coopmat: fp16 with cooperative matrices. */
#define VKN_PRECISIONS(X)                                                                               \
    X(VKN_PRECISION_FP32, fp32)                                                                         \
    X(VKN_PRECISION_FP16, fp16)                                                                         \
    X(VKN_PRECISION_COOPMAT, coopmat)
/* Atomic additions of hash grid gradients: f32; 64-bit fixed point in two integers, whose sums do not depend on
 * the order; f32 by compare-and-swap; pairs of f16. */
#define VKN_GRADIENT_SUMS(X)                                                                            \
    X(VKN_SUMS_F32, f32)                                                                                \
    X(VKN_SUMS_FIXED, fixed)                                                                            \
    X(VKN_SUMS_CAS, cas)                                                                                \
    X(VKN_SUMS_F16, f16)
/* Background of transparent pixels. */
#define VKN_BACKGROUNDS(X)                                                                              \
    X(VKN_BACKGROUND_RANDOM, random)                                                                    \
    X(VKN_BACKGROUND_WHITE, white)                                                                      \
    X(VKN_BACKGROUND_BLACK, black)
/* Switches that are on, off, or left to a default. */
#define VKN_SWITCHES(X)                                                                                 \
    X(VKN_SWITCH_ON, on)                                                                                \
    X(VKN_SWITCH_OFF, off)
/* Formats of scenes: transforms.json of Blender, instant-ngp or nerfstudio; a COLMAP model; poses_bounds.npy;
 * NSVF's folders. Each has a reader scene_reader_NAME (src/scene/reader.h). A folder with several formats is read
 * as the first of them: transforms.json was made for training, with splits and a space of its own; a COLMAP model
 * has lenses and points; poses_bounds.npy, mostly made from a COLMAP model, has neither. */
#define VKN_SCENE_FORMATS(X)                                                                            \
    X(VKN_SCENE_TRANSFORMS, transforms)                                                                 \
    X(VKN_SCENE_COLMAP, colmap)                                                                         \
    X(VKN_SCENE_LLFF, llff)                                                                             \
    X(VKN_SCENE_NSVF, nsvf)
/* Space outside the cube of side aabb_scale: empty, or contracted into a cube of twice the side (Mip-NeRF 360's
 * contraction in the maximum norm). */
#define VKN_CONTRACTIONS(X)                                                                             \
    X(VKN_CONTRACTION_NONE, none)                                                                       \
    X(VKN_CONTRACTION_CUBE, cube)
/* Test views: those of the scene's files, else every 8th view in order of paths; none, all views are for training;
 * every 8th of the views of all files. */
#define VKN_TEST_VIEWS(X)                                                                               \
    X(VKN_TEST_VIEWS_FILES, files)                                                                      \
    X(VKN_TEST_VIEWS_NONE, none)                                                                        \
    X(VKN_TEST_VIEWS_EIGHTH, eighth)
/* Camera parameters that a training refines with the field: none; the poses; the lenses of camera groups; both.
 * The numbers minus VKN_REFINEMENT_OFF are the bits REFINE_* of shaders/shared/layout.h. */
#define VKN_REFINEMENTS(X)                                                                              \
    X(VKN_REFINEMENT_OFF, off)                                                                          \
    X(VKN_REFINEMENT_POSES, poses)                                                                      \
    X(VKN_REFINEMENT_LENSES, lenses)                                                                    \
    X(VKN_REFINEMENT_ALL, all)
/* What a training estimates of how images were taken: nothing; the exposure of each image; also its white balance,
 * and the vignetting and response curve of each camera. */
#define VKN_APPEARANCES(X)                                                                              \
    X(VKN_APPEARANCE_OFF, off)                                                                          \
    X(VKN_APPEARANCE_EXPOSURE, exposure)                                                                \
    X(VKN_APPEARANCE_FULL, full)
/* Placement of samples on a ray: in occupied cells of the occupancy grid; uniform, with the same number per ray;
 * hierarchical, where a coarse field of the same model finds density (NeRF); where a small proposal field predicts
 * weight (Mip-NeRF 360). */
#define VKN_SAMPLINGS(X)                                                                                \
    X(VKN_SAMPLING_OCCUPANCY, occupancy)                                                                \
    X(VKN_SAMPLING_UNIFORM, uniform)                                                                    \
    X(VKN_SAMPLING_HIERARCHICAL, hierarchical)                                                          \
    X(VKN_SAMPLING_PROPOSAL, proposal)
/* Measure in which samples without an occupancy grid are evenly spaced: steps of the march; distance;
 * 1 / distance; log(distance). */
#define VKN_SPACINGS(X)                                                                                 \
    X(VKN_SPACING_STEPS, steps)                                                                         \
    X(VKN_SPACING_LINEAR, linear)                                                                       \
    X(VKN_SPACING_DISPARITY, disparity)                                                                 \
    X(VKN_SPACING_LOG, log)
/* Activation checkpointing (Chen et al. 2016); on: the backward pass recomputes the layers' activations. */
#define VKN_CHECKPOINTINGS(X)                                                                           \
    X(VKN_CHECKPOINTING_ON, on)                                                                         \
    X(VKN_CHECKPOINTING_OFF, off)
/* Density from the field's raw output x: e^x; softplus(x - 1), as in mip-NeRF; max(x, 0), as in NeRF. The order is
 * that of the shaders' DENSITY_*. */
#define VKN_DENSITY_ACTIVATIONS(X)                                                                      \
    X(VKN_DENSITY_EXP, exp)                                                                             \
    X(VKN_DENSITY_SOFTPLUS, softplus)                                                                   \
    X(VKN_DENSITY_RELU, relu)
/* Encoding of the position for the density MLP: hash grid features; frequencies; the position itself. */
#define VKN_POSITION_ENCODINGS(X)                                                                       \
    X(VKN_POSITION_HASH, hash)                                                                          \
    X(VKN_POSITION_FREQUENCIES, frequencies)                                                            \
    X(VKN_POSITION_IDENTITY, identity)
/* Encoding of the direction for the colour MLP: spherical harmonics; frequencies; the unit vector itself; nothing.
 * The order is that of the shaders' DIRECTION_*. */
#define VKN_DIRECTION_ENCODINGS(X)                                                                      \
    X(VKN_DIRECTION_HARMONICS, harmonics)                                                               \
    X(VKN_DIRECTION_FREQUENCIES, frequencies)                                                           \
    X(VKN_DIRECTION_IDENTITY, identity)                                                                 \
    X(VKN_DIRECTION_NONE, none)
/* Activations of hidden layers: max(x, 0); max(x, x / 100); ln(1 + e^x); (x + sqrt(x^2 + 4)) / 2 (Barron 2021);
 * 1 / (1 + e^-x); tanh(x); x. The derivative of each is a function of its value. The order is that of the shaders'
 * ACTIVATION_*. */
#define VKN_ACTIVATIONS(X)                                                                              \
    X(VKN_ACTIVATION_RELU, relu)                                                                        \
    X(VKN_ACTIVATION_LEAKY_RELU, leaky_relu)                                                            \
    X(VKN_ACTIVATION_SOFTPLUS, softplus)                                                                \
    X(VKN_ACTIVATION_SQUAREPLUS, squareplus)                                                            \
    X(VKN_ACTIVATION_SIGMOID, sigmoid)                                                                  \
    X(VKN_ACTIVATION_TANH, tanh)                                                                        \
    X(VKN_ACTIVATION_NONE, none)
/* Shapes M x N x K of a cooperative matrix product. */
#define VKN_MATRIX_SHAPES(X)                                                                            \
    X(VKN_SHAPE_8X8X8, 8x8x8)                                                                           \
    X(VKN_SHAPE_8X8X16, 8x8x16)                                                                         \
    X(VKN_SHAPE_8X16X16, 8x16x16)                                                                       \
    X(VKN_SHAPE_16X8X16, 16x8x16)                                                                       \
    X(VKN_SHAPE_16X16X16, 16x16x16)
/* Accumulation types of a cooperative matrix product. */
#define VKN_ACCUMULATES(X)                                                                              \
    X(VKN_ACCUMULATE_F32, f32)                                                                          \
    X(VKN_ACCUMULATE_F16, f16)
/* Types of an operation of the precision policy. */
#define VKN_POLICIES(X)                                                                                 \
    X(VKN_POLICY_F32, f32)                                                                              \
    X(VKN_POLICY_F16, f16)                                                                              \
    X(VKN_POLICY_BF16, bf16)
/* Losses of a pixel. The order is that of the shaders' LOSS_*. */
#define VKN_LOSSES(X)                                                                                   \
    X(VKN_LOSS_HUBER, huber)                                                                            \
    X(VKN_LOSS_L2, l2)                                                                                  \
    X(VKN_LOSS_L1, l1)                                                                                  \
    X(VKN_LOSS_CHARBONNIER, charbonnier)
/* Curves of distance for the distortion loss: distance, in contracted space contracted; the power ladder with
 * exponent -1/4 (Zip-NeRF). */
#define VKN_DISTORTION_CURVES(X)                                                                        \
    X(VKN_DISTORTION_LINEAR, linear)                                                                    \
    X(VKN_DISTORTION_LADDER, ladder)
/* Optimisers. The order is that of the shaders' OPTIMIZER_*. */
#define VKN_OPTIMIZERS(X)                                                                               \
    X(VKN_OPTIMIZER_ADAM, adam)                                                                         \
    X(VKN_OPTIMIZER_LION, lion)
/* Storage types of Adam's moments; bf16: rounded stochastically, both in one 32-bit word. */
#define VKN_MOMENT_TYPES(X)                                                                             \
    X(VKN_MOMENTS_F32, f32)                                                                             \
    X(VKN_MOMENTS_BF16, bf16)
/* Schedules of the learning rate: a factor at each milestone; exponential (NeRF) or half a cosine to a final rate;
 * points from a file. */
#define VKN_RATE_SCHEDULES(X)                                                                           \
    X(VKN_RATE_STEP, step)                                                                              \
    X(VKN_RATE_EXPONENTIAL, exponential)                                                                \
    X(VKN_RATE_COSINE, cosine)                                                                          \
    X(VKN_RATE_FILE, file)
/* Kinds of loss scaling. */
#define VKN_LOSS_SCALES(X)                                                                              \
    X(VKN_LOSS_SCALE_STATIC, static)                                                                    \
    X(VKN_LOSS_SCALE_DYNAMIC, dynamic)                                                                  \
    X(VKN_LOSS_SCALE_SCHEDULE, schedule)

/* Data parallelism of several ranks: all-reduce of gradients in every step, with equal parameters on all ranks; or
 * averaging of parameters after every 16 steps that each rank takes by itself (local SGD; Stich 2019). */
#define VKN_PARALLEL_MODES(X)                                                                           \
    X(VKN_PARALLEL_SYNCHRONOUS, synchronous)                                                            \
    X(VKN_PARALLEL_AVERAGE, average)
/* Communication types of hash grid gradients. */
#define VKN_COMMUNICATION_TYPES(X)                                                                      \
    X(VKN_COMMUNICATION_F32, f32)                                                                       \
    X(VKN_COMMUNICATION_F16, f16)
/* Part of the images or occupancy cells that a rank holds or updates. */
#define VKN_PARALLEL_PARTS(X)                                                                           \
    X(VKN_PART_ALL, all)                                                                                \
    X(VKN_PART_SHARE, share)

/* Extensions of the files that vkn_run_export writes, by content: mesh, textured mesh, points, splats. Points are not
 * written as .obj and .glb, because hardly any program reads points from such files. LOCAL: positions are f32 relative
 * to vkn_export_result.origin, as in all files of splats. The writers are in src/render/formats.h. */
#define VKN_EXPORT_FORMATS(MESH, TEXTURE, POINTS, SPLATS, LOCAL)                                        \
    MESH(ply) POINTS(ply) SPLATS(ply)                                                                   \
    MESH(obj)                                                                                           \
    MESH(glb) TEXTURE(glb) LOCAL(glb)
/* Skips a kind of content in VKN_EXPORT_FORMATS. */
#define VKN_NO_FORMAT(extension)

/* Image pairs that vkn_prepare matches: all; or those close in the order of their names, and a few far apart. */
#define VKN_MATCHERS(X)                                                                                 \
    X(VKN_MATCHER_EXHAUSTIVE, exhaustive)                                                               \
    X(VKN_MATCHER_SEQUENTIAL, sequential)
/* COLMAP's camera models that vknerf reads. */
#define VKN_CAMERA_MODELS(X)                                                                            \
    X(VKN_CAMERA_MODEL_SIMPLE_PINHOLE, SIMPLE_PINHOLE)                                                  \
    X(VKN_CAMERA_MODEL_PINHOLE, PINHOLE)                                                                \
    X(VKN_CAMERA_MODEL_SIMPLE_RADIAL, SIMPLE_RADIAL)                                                    \
    X(VKN_CAMERA_MODEL_RADIAL, RADIAL)                                                                  \
    X(VKN_CAMERA_MODEL_OPENCV, OPENCV)                                                                  \
    X(VKN_CAMERA_MODEL_SIMPLE_RADIAL_FISHEYE, SIMPLE_RADIAL_FISHEYE)                                    \
    X(VKN_CAMERA_MODEL_OPENCV_FISHEYE, OPENCV_FISHEYE)

/* All enumerations enum vkn_NAME: X(NAME, ENUMERATOR of 0, its name, list of the others). */
#define VKN_ENUMERATIONS(X)                                                                             \
    X(model, VKN_MODEL_DEFAULT, default, VKN_MODELS)                                                    \
    X(canonical, VKN_CANONICAL_DEFAULT, default, VKN_CANONICALS)                                        \
    X(precision, VKN_PRECISION_AUTO, auto, VKN_PRECISIONS)                                              \
    X(gradient_sums, VKN_SUMS_DEFAULT, default, VKN_GRADIENT_SUMS)                                      \
    X(background, VKN_BACKGROUND_DEFAULT, default, VKN_BACKGROUNDS)                                     \
    X(switch, VKN_SWITCH_DEFAULT, default, VKN_SWITCHES)                                                \
    X(scene_format, VKN_SCENE_AUTO, auto, VKN_SCENE_FORMATS)                                            \
    X(contraction, VKN_CONTRACTION_DEFAULT, default, VKN_CONTRACTIONS)                                  \
    X(test_views, VKN_TEST_VIEWS_DEFAULT, default, VKN_TEST_VIEWS)                                      \
    X(refinement, VKN_REFINEMENT_DEFAULT, default, VKN_REFINEMENTS)                                     \
    X(appearance, VKN_APPEARANCE_DEFAULT, default, VKN_APPEARANCES)                                     \
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
    X(distortion_curve, VKN_DISTORTION_DEFAULT, default, VKN_DISTORTION_CURVES)                         \
    X(optimizer, VKN_OPTIMIZER_DEFAULT, default, VKN_OPTIMIZERS)                                        \
    X(moment_type, VKN_MOMENTS_DEFAULT, default, VKN_MOMENT_TYPES)                                      \
    X(rate_schedule, VKN_RATE_DEFAULT, default, VKN_RATE_SCHEDULES)                                     \
    X(loss_scale, VKN_LOSS_SCALE_DEFAULT, default, VKN_LOSS_SCALES)                                     \
    X(parallel_mode, VKN_PARALLEL_DEFAULT, default, VKN_PARALLEL_MODES)                                 \
    X(communication_type, VKN_COMMUNICATION_DEFAULT, default, VKN_COMMUNICATION_TYPES)                  \
    X(parallel_part, VKN_PART_DEFAULT, default, VKN_PARALLEL_PARTS)                                     \
    X(matcher, VKN_MATCHER_AUTO, auto, VKN_MATCHERS)                                                    \
    X(camera_model, VKN_CAMERA_MODEL_AUTO, auto, VKN_CAMERA_MODELS)

/* An element of an enumeration, and of an array of names. */
#define VKN_ENUMERATOR(enumerator, name) enumerator,
#define VKN_NAME(enumerator, name)       #name,

#define VKN_ENUM(name, zero, zero_name, others) enum vkn_##name { zero, others(VKN_ENUMERATOR) };

/* Defines enum vkn_model, vkn_precision and so on, one for each row of VKN_ENUMERATIONS. */
VKN_ENUMERATIONS(VKN_ENUM)

/* clang-format on */

#endif
