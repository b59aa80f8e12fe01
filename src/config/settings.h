/* clang-format off */

/* Lists all settings of a training run: key, type, range, default and help text, one row each. config.h makes the
 * members of struct vkn_config from the rows, table.c makes the table that --help, JSON and --set use. The rows are
 * in the order of config.json.
 *
 *     X(G, NAME, TYPE, RANGE, DEFAULT, "help")
 *
 * G is the group, NAME the name in the group: grid.levels. Settings of VKN_SETTINGS_RUN have no group.
 *
 * TYPE is one of
 *   U32, U64               whole numbers
 *   BYTES                  uint64_t
 *   FLOAT, FLOATS(n)       float, float[n]
 *   DOUBLE, DOUBLES(n)     double, double[n]
 *   SECONDS                double
 *   BOOL                   false by default
 *   ENUM(name)             enum vkn_name of <vknerf/choices.h>
 *   STEPS                  struct vkn_steps
 *   POINTS(value)          struct vkn_schedule_point[VKN_SCHEDULE_POINTS]; messages call its values `value`
 *
 * RANGE includes both ends; for POINTS it is the range of the values:
 *   RANGE(least, most)
 *   MULTIPLE(least, most, of)
 *   RANGE_OR_OFF(least, most)   also accepts 0, which turns something off. If the range has negative numbers, they
 *                               do the same as 0, and struct vkn_config holds -1 for 0 and all negative numbers
 *   ANY                         for types other than numbers
 *
 * DEFAULT replaces the zero of struct vkn_config when training begins. "words" are its text in --help:
 *   VALUE(value), VALUES(a, b, c)   constants
 *   DEVICE(gpu, cpu)                a constant by the type of the device
 *   RULE(rule, "words")             the result of a rule of src/config/defaults.c, from other settings, the scene and
 *                                   the device
 *   VALUE_RULE(rule, value, "words"), VALUES_RULE(rule, a, b, c, "words"),
 *   DEVICE_RULE(rule, gpu, "words", cpu, "words")
 *                                   the result of a rule that gets a constant; --help shows the constant first
 *   SCENE(fact, "words")            the value of the opened scene, which also replaces a value that was set
 *   OPEN("words")                   stays zero: the module that reads the setting chooses
 *   OPEN_VALUE("words", value, "words")   stays zero; the module that reads the setting starts from the constant
 *
 * A quotient (1/256) is computed in floating point. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

/* ---- limits ---------------------------------------------------------------------------------- */

/* Limits of the training space, whether measured or set: a run records it and reads it again. */
#define VKN_LEAST_SCENE_SCALE 1e-10
#define VKN_MOST_SCENE_SCALE  1e10
#define VKN_MOST_SCENE_OFFSET 1e18

#define VKN_MOST_LOSS_SCALE   8.5e37 /* the reciprocal must be a normal f32 */

/* ---- settings -------------------------------------------------------------------------------- */

/* Deterministic runs add gradients in fixed point. By default each checkpoint replaces the previous one; the newest
 * `keep` checkpoints have names of their own. */
#define VKN_SETTINGS_RUN(X, G)                                                                          \
    X(G, model, ENUM(model), ANY, RULE(model, "ngp, or layered"),                                       \
      "field: hash grid with MLPs, NeRF's MLP, deformed, any layers, GLSL")                             \
    X(G, precision, ENUM(precision), ANY, RULE(precision, "auto, the fastest one on the device"),       \
      "arithmetic of the field; coopmat: fp16 with cooperative matrices")                               \
    X(G, gradient_sums, ENUM(gradient_sums), ANY,                                                       \
      OPEN("f32 if possible, else fixed"),                                                              \
      "hash grid gradient atomics: f32, fixed point, compare-and-swap, f16x2")                          \
    X(G, background, ENUM(background), ANY, RULE(background, "random, or the images' plain one"),       \
      "colour behind transparent training pixels")                                                      \
    X(G, seed, U64, RANGE(0, UINT64_MAX), VALUE(0), "seed of the random number generators")             \
    X(G, deterministic, BOOL, ANY, VALUE(false),                                                        \
      "bit-identical results for the same seed and device (slower)")                                    \
    X(G, steps, U32, RANGE(1, UINT32_MAX), VALUE_RULE(steps, 20000, ", none with seconds"),             \
      "number of training steps")                                                                       \
    X(G, seconds, SECONDS, RANGE(0, 1e9), OPEN("0"),                                                    \
      "limit on the training time, which begins after 16 steps; 0: no limit")                           \
    X(G, eval_every, STEPS, RANGE_OR_OFF(1, UINT32_MAX), OPEN("at 10, 20, 40, 80 % of the run"),        \
      "steps between quick evaluations, or a list of steps; 0: none")                                   \
    X(G, save_every, U32, RANGE(0, UINT32_MAX), OPEN("0"),                                              \
      "steps between checkpoints; 0: by time")                                                          \
    X(G, save_seconds, SECONDS, RANGE_OR_OFF(-1, 1e6),                                                  \
      OPEN_VALUE("every ", 60, ", none with save_every"),                                               \
      "seconds between checkpoints; 0 or negative: only at the end")                                    \
    X(G, keep, U32, RANGE(1, 10000), OPEN("only the latest"),                                           \
      "number of newest checkpoints to keep, as checkpoint_STEP")                                       \
    X(G, eval_views, U32, RANGE(1, 64), VALUE(4), "number of test views in a quick evaluation")

#define VKN_SETTINGS_LOG(X, G)                                                                          \
    X(G, tensorboard, ENUM(switch), ANY, VALUE(VKN_SWITCH_ON),                                          \
      "TensorBoard event files beside metrics.jsonl")

/* Training space = scale * dataset + offset. Images beyond image_budget are streamed to the device; images beyond
 * host_budget are decoded again whenever they are needed. */
#define VKN_SETTINGS_SCENE(X, G)                                                                        \
    X(G, format, ENUM(scene_format), ANY, SCENE(format, "detected from the files"),                     \
      "format of the scene's files")                                                                    \
    X(G, test_views, ENUM(test_views), ANY, VALUE(VKN_TEST_VIEWS_FILES),                                \
      "held out from training: as the files say, else every 8th; none; every 8th")                      \
    X(G, downscale, U32, RANGE(1, 64), SCENE(downscale, "1"), "factor by which images are reduced")     \
    X(G, appearance, ENUM(appearance), ANY, RULE(appearance, "what differs between the images"),        \
      "estimate exposures of images; full: also white balance, vignetting, response curve")             \
    X(G, sky, ENUM(switch), ANY, RULE(sky, "on if the images show a sky"),                              \
      "sky behind the field: a colour for each direction, found in the images")                         \
    X(G, scale, DOUBLE, RANGE(VKN_LEAST_SCENE_SCALE, VKN_MOST_SCENE_SCALE),                             \
      SCENE(scale, "from the file or measured"),                                                        \
      "factor from dataset units to training space")                                                    \
    X(G, offset, DOUBLES(3), RANGE(-VKN_MOST_SCENE_OFFSET, VKN_MOST_SCENE_OFFSET),                      \
      SCENE(offset, "from the file or measured"),                                                       \
      "translation in training space, after scale; needs fixed_transform")                              \
    X(G, aabb_scale, U32, RANGE(1, 128), SCENE(aabb_scale, "from the file or measured"),                \
      "side of the reconstructed cube in training space, a power of two")                               \
    X(G, fixed_transform, BOOL, ANY, SCENE(fixed_transform, "false"),                                   \
      "use scale, offset and aabb_scale as given: nothing is measured")                                 \
    X(G, unit_length, DOUBLE, RANGE(1e-9, 1e9), SCENE(unit_length, "from the file, else unknown"),      \
      "metres of a dataset unit: exported files are then in metres")                                    \
    X(G, contraction, ENUM(contraction), ANY, VALUE(VKN_CONTRACTION_NONE),                              \
      "contraction of unbounded space; cube: into a cube of twice the side")                            \
    X(G, refine, ENUM(refinement), ANY, VALUE(VKN_REFINEMENT_OFF),                                      \
      "camera parameters that training refines: none, poses, lenses of camera groups, or all")          \
    X(G, image_budget, BYTES, RANGE(1, 1125899906842624), OPEN("as much as the device has free"),       \
      "device memory for training images, in bytes; the rest is streamed")                              \
    X(G, host_budget, BYTES, RANGE(1, 1125899906842624), OPEN("a quarter of the machine's memory"),     \
      "host memory for decoded images, in bytes; the rest is decoded again")

/* Refinement of cameras (scene.refine), as shares of the mean of the training images' longer sides. Views move in
 * units of whitened parameters: a change by a pixel moves points of the view's frustum by at most about one pixel. */
#define VKN_SETTINGS_REFINE(X, G)                                                                       \
    X(G, initial_rate, FLOAT, RANGE(1e-8, 0.125), VALUE(0.005),                                         \
      "first change of a camera parameter in an update, every 16 steps; share of the image's size")     \
    X(G, final_rate, FLOAT, RANGE(1e-8, 0.125), VALUE(0.0005),                                          \
      "last change of a camera parameter in an update, as a share of the image's size")                 \
    X(G, start, FLOAT, RANGE_OR_OFF(-1, 1), VALUE(0.05),                                                \
      "share of the training after which cameras begin to move; 0: at once")                            \
    X(G, limit, FLOAT, RANGE(1e-5, 1), VALUE(0.2),                                                      \
      "most by which a pose, or a lens, moves a view in the image; share of the image's size")          \
    X(G, detail, FLOAT, RANGE_OR_OFF(-1, 1000), VALUE(2),                                               \
      "levels of the hash grid with more cells per pixel do not move cameras; 0: all levels do")

/* Appearance of images (scene.appearance). */
#define VKN_SETTINGS_APPEARANCE(X, G)                                                                   \
    X(G, initial_rate, FLOAT, RANGE(1e-8, 10), VALUE(0.4),                                              \
      "first change of an exposure or other parameter in an update, every 16 steps, in stops")          \
    X(G, final_rate, FLOAT, RANGE(1e-8, 10), VALUE(0.005),                                              \
      "last change of an exposure or other parameter in an update, in stops")

#define VKN_SETTINGS_PROGRESSIVE(X, G)                                                                  \
    X(G, enabled, BOOL, ANY, VALUE(false), "coarse-to-fine training: begin with reduced images")        \
    X(G, start_downscale, U32, MULTIPLE(2, 8, 2), VALUE(4),                                             \
      "initial reduction: 2, 4 or 8, on top of scene.downscale")                                        \
    X(G, milestones, FLOATS(3), RANGE(1e-6, 2), VALUES(0.1, 0.25, 0.5),                                 \
      "fractions of the training at which the reduction is halved")

/* Encodings of the layered model, also as canonical field of the dynamic model. Others have fixed encodings. */
#define VKN_SETTINGS_FIELD(X, G)                                                                        \
    X(G, position, ENUM(position_encoding), ANY, RULE(position, "hash"),                                \
      "position encoding of the layered model")                                                         \
    X(G, direction, ENUM(direction_encoding), ANY, RULE(direction, "harmonics"),                        \
      "direction encoding of the layered model; without grid: frequencies")                             \
    X(G, activation, ENUM(activation), ANY, VALUE(VKN_ACTIVATION_RELU),                                 \
      "activation of hidden layers of the layered model")

/* Defaults of instant-ngp. CPU devices get smaller tables and narrower MLPs, and a finest level that suits a training
 * of minutes. */
#define VKN_SETTINGS_GRID(X, G)                                                                         \
    X(G, levels, U32, RANGE(1, 32), VALUE(16), "number of resolution levels of the hash grid")          \
    X(G, features, U32, MULTIPLE(2, 4, 2), VALUE(2), "number of features per level")                    \
    X(G, log2_entries, U32, RANGE(8, 24), DEVICE(19, 15),                                               \
      "log2 of the number of entries in a level's table")                                               \
    X(G, coarsest, U32, RANGE(2, 1024), VALUE(16),                                                      \
      "resolution of the coarsest level, in grid points per side")                                      \
    X(G, finest, U32, RANGE(2, 1048576),                                                                \
      DEVICE_RULE(finest, 2048, ", CPU ", 512,                                                          \
                  "; less for small images; x aabb_scale; x 2 if contracted"),                          \
      "resolution of the finest level, in grid points per side")                                        \
    X(G, initial, FLOAT, RANGE(1e-9, 1), VALUE(1e-4),                                                   \
      "bound of the initial features, which are uniform in +- this")                                    \
    X(G, decay, FLOAT, RANGE_OR_OFF(1e-6, 1e6), OPEN("0"),                                              \
      "weight of each level's mean square in the loss; 0: none")

#define VKN_SETTINGS_MLP(X, G)                                                                          \
    X(G, density_width, U32, MULTIPLE(16, 256, 16),                                                     \
      DEVICE_RULE(density_width, 64, ", CPU ", 32, "; vanilla 256, CPU 128"),                           \
      "width of the density MLP's hidden layers")                                                       \
    X(G, density_layers, U32, RANGE(1, 12), VALUE_RULE(density_layers, 1, ", vanilla 8"),               \
      "number of hidden layers of the density MLP")                                                     \
    X(G, geometry, U32, MULTIPLE(16, 256, 16),                                                          \
      VALUE_RULE(geometry, 16, ", layered 32, vanilla 256, CPU 128"),                                   \
      "number of outputs of the density MLP")                                                           \
    X(G, color_width, U32, MULTIPLE(16, 256, 16),                                                       \
      DEVICE_RULE(color_width, 64, ", CPU ", 32, "; vanilla 128, CPU 64"),                              \
      "width of the colour MLP's hidden layers")                                                        \
    X(G, color_layers, U32, RANGE(1, 8), VALUE_RULE(color_layers, 2, ", vanilla 1"),                    \
      "number of hidden layers of the colour MLP")                                                      \
    X(G, sh_degree, U32, RANGE(1, 4), VALUE_RULE(sh_degree, 4, "; 2 with at most 9 training views"),    \
      "degree of the direction's spherical harmonics; 1: colours do not depend on the direction")       \
    X(G, position_octaves, U32, RANGE(1, 16),                                                           \
      VALUE_RULE(position_octaves, 10, ", dynamic 5; less for small images"),                           \
      "number of octaves of the position's frequency encoding")                                         \
    X(G, direction_octaves, U32, RANGE(1, 8), VALUE(4),                                                 \
      "number of octaves of the direction's frequency encoding")                                        \
    X(G, skip_layer, U32, RANGE(1, 16), VALUE(6),                                                       \
      "density layer that reads the position again (not ngp); > last: none")                            \
    X(G, density_activation, ENUM(density_activation), ANY,                                             \
      RULE(density_activation, "exp; vanilla, dynamic: softplus"),                                      \
      "density from the raw output x: e^x, softplus(x - 1) or max(x, 0)")                               \
    X(G, activation_checkpointing, ENUM(checkpointing), ANY, VALUE(VKN_CHECKPOINTING_AUTO),             \
      "activation checkpointing (vanilla, layered); auto: if memory is short")

/* Dynamic model: a deformation MLP maps position and time to a position in the canonical field. */
#define VKN_SETTINGS_DYNAMIC(X, G)                                                                      \
    X(G, canonical, ENUM(canonical), ANY, VALUE(VKN_CANONICAL_NGP),                                     \
      "model of the canonical field")                                                                   \
    X(G, width, U32, MULTIPLE(32, 256, 32), VALUE(64), "width of the deformation MLP's hidden layers")  \
    X(G, layers, U32, RANGE(1, 8), VALUE(4), "number of hidden layers of the deformation MLP")          \
    X(G, position_octaves, U32, RANGE(1, 8), VALUE(2),                                                  \
      "number of octaves of the position's frequency encoding")                                         \
    X(G, time_octaves, U32, RANGE(1, 8), VALUE(2),                                                      \
      "number of octaves of the time's frequency encoding")                                             \
    X(G, learning_rate_factor, FLOAT, RANGE(1e-6, 10), VALUE(0.3),                                      \
      "learning rate factor of the deformation MLP")                                                    \
    X(G, curriculum, FLOAT, RANGE_OR_OFF(-1, 1), VALUE(0.5),                                            \
      "fraction of the training until all times are drawn; 0: at once")                                 \
    X(G, time_bins, U32, RANGE(1, 64), VALUE(1),                                                        \
      "number of time bins of the occupancy grid; 1: one grid for all times")                           \
    X(G, time_features, ENUM(switch), ANY, VALUE(VKN_SWITCH_OFF),                                       \
      "time as an additional input of the canonical field")

/* Fields in GLSL: see <vknerf/field.h>. */
#define VKN_SETTINGS_GLSL(X, G)                                                                         \
    X(G, source, U32, RANGE(1, UINT32_MAX), OPEN("none"),                                               \
      "number of the GLSL source that --field registers")

/* Cooperative matrices. */
#define VKN_SETTINGS_MATRIX(X, G)                                                                       \
    X(G, shape, ENUM(matrix_shape), ANY, OPEN("the largest"),                                           \
      "shape M x N x K of cooperative matrices, see vknerf info")                                       \
    X(G, accumulate, ENUM(accumulate), ANY, OPEN("f32"),                                                \
      "accumulation type of cooperative matrices; f16 is less exact")                                   \
    X(G, conversions, BOOL, ANY, VALUE(false),                                                          \
      "activations in registers, by VK_NV_cooperative_matrix2")

/* Types of single operations, for experiments; src/field/policy.c has their defaults. The first four follow from the
 * precision, except that fp16 also offers f32 products; the next two repeat other settings; the others are rounded
 * to f16 or bf16 where they are computed, in every precision. */
#define VKN_SETTINGS_POLICY(X, G)                                                                       \
    X(G, parameters, ENUM(policy), ANY, OPEN("that of the precision"),                                  \
      "type of the parameters as the field reads them")                                                 \
    X(G, activations, ENUM(policy), ANY, OPEN("that of the precision"), "storage type of activations")  \
    X(G, matmul, ENUM(policy), ANY, OPEN("that of the precision"),                                      \
      "input type of the MLPs' products; fp16 also offers f32")                                         \
    X(G, activation_gradients, ENUM(policy), ANY, OPEN("that of the precision"),                        \
      "storage type of activation gradients")                                                           \
    X(G, accumulators, ENUM(policy), ANY, OPEN("f32, or as matrix.accumulate"),                         \
      "accumulation type of the MLPs' products; fp32 does not offer f16")                               \
    X(G, grid_gradients, ENUM(policy), ANY, OPEN("as gradient_sums"),                                   \
      "accumulation type of hash grid gradients; f16: gradient_sums=f16")                               \
    X(G, weight_gradients, ENUM(policy), ANY, VALUE(VKN_POLICY_F32),                                    \
      "accumulation type of the MLPs' weight gradients")                                                \
    X(G, compositing, ENUM(policy), ANY, VALUE(VKN_POLICY_F32),                                         \
      "type of transmittance, colour and depth along rays")                                             \
    X(G, master_parameters, ENUM(policy), ANY, VALUE(VKN_POLICY_F32),                                   \
      "type of the master parameters, which the optimiser updates")                                     \
    X(G, moments, ENUM(policy), ANY, VALUE(VKN_POLICY_F32), "type of the optimiser's moments")

#define VKN_SETTINGS_BATCH(X, G)                                                                        \
    X(G, samples, U32, RANGE(1024, 16777216),                                                           \
      DEVICE_RULE(batch_samples, 262144, ", CPU ", 16384,                                               \
                  "; fewer with large models"),                                                         \
      "target number of live samples with gradients per step")                                          \
    X(G, keep, FLOAT, RANGE(0.01, 1), VALUE(1),                                                         \
      "share of live samples that get gradients, by the loss of their rays")                            \
    X(G, chunk, U32, MULTIPLE(64, 16777216, 64), DEVICE(65536, 4096),                                   \
      "number of samples that layers evaluate at a time")                                               \
    X(G, max_rays, U32, RANGE(64, 4194304), DEVICE(131072, 16384), "maximum number of rays per step")   \
    X(G, depth_share, FLOAT, RANGE(0.001, 1), VALUE(0.1),                                               \
      "share of rays drawn through known depths, with loss.depth")                                      \
    X(G, by_error, FLOAT, RANGE(0, 0.9), VALUE(0),                                                      \
      "share of rays drawn where the error is large, from an error map per image; 0: none")             \
    X(G, unbiased, BOOL, ANY, VALUE(false),                                                             \
      "weight rays drawn by error so that gradients are those of even drawing")

/* A ray has at most MAX_RAY_SAMPLES samples. */
#define VKN_SETTINGS_MARCH(X, G)                                                                        \
    X(G, sampling, ENUM(sampling), ANY,                                                                 \
      RULE(sampling, "by scene"),                                                                       \
      "placement of samples: occupancy grid, uniform, coarse field, proposal")                          \
    X(G, ray_samples, U32, RANGE(1, 1024), VALUE(192), "samples per ray with march.sampling=uniform")   \
    X(G, coarse_samples, U32, RANGE(1, 256),                                                            \
      DEVICE_RULE(coarse_samples, 64, ", proposal 256, CPU ", 64, ""),                                  \
      "samples per ray of the coarse field or the proposal")                                            \
    X(G, fine_samples, U32, RANGE(1, 512),                                                              \
      DEVICE_RULE(fine_samples, 128, ", proposal 48, CPU ", 128, ", proposal on CPU 24"),               \
      "samples per ray of the field, besides those of a coarse field")                                  \
    X(G, spacing, ENUM(spacing), ANY, VALUE(VKN_SPACING_STEPS),                                         \
      "spacing of samples that no occupancy grid places")                                               \
    X(G, resolution, U32, MULTIPLE(16, 512, 8),                                                         \
      DEVICE_RULE(resolution, 128, ", CPU ", 64, " (unfused layers 32)"),                               \
      "resolution of the occupancy grid in cells per side, a power of two")                             \
    X(G, occupancy_decay, FLOAT, RANGE(1e-3, 1), VALUE(0.95), "factor of occupancy values per update")  \
    X(G, occupancy_threshold, FLOAT, RANGE(1e-9, 1e3), VALUE(0.01),                                     \
      "least optical thickness of the smallest step in an occupied cell")                               \
    X(G, cone_angle, FLOAT, RANGE_OR_OFF(-1, 1),                                                        \
      DEVICE_RULE(cone_angle, 1/256, ", CPU ", 1/64, "; 0 if aabb_scale is 1, uncontracted"),           \
      "growth of the step length with distance; 0 or negative: none")                                   \
    X(G, steps_per_unit, U32, RANGE(16, 65536),                                                         \
      DEVICE_RULE(steps_per_unit, 1024, ", CPU ", 256, " (vanilla, dynamic 80)"),                       \
      "smallest step is sqrt(3) / steps_per_unit, in training units")                                   \
    X(G, early_stop, FLOAT, RANGE(1e-9, 1), VALUE(1e-4), "transmittance below which a ray ends")        \
    X(G, near_distance, FLOAT, RANGE(1e-6, 1e3),                                                        \
      VALUE_RULE(near_distance, 0.1, ", less for nearer content"),                                      \
      "distance from the camera to the first sample, training units")                                   \
    X(G, near_start, FLOAT, RANGE_OR_OFF(-1, 1e3), RULE(near_start, "by cameras, with surroundings"),   \
      "near distance of the first step, then less; <= near_distance: off")                              \
    X(G, near_steps, U32, RANGE(1, UINT32_MAX), VALUE(1000),                                            \
      "steps until rays begin at near_distance; at most 40 % of the training")                          \
    X(G, far_distance, FLOAT, RANGE_OR_OFF(1e-6, 1e9), OPEN("0"),                                       \
      "distance from the camera to the last sample, training units; 0: none")                           \
    X(G, alpha_threshold, FLOAT, RANGE_OR_OFF(1e-9, 1), OPEN("0"),                                      \
      "alpha below which samples are skipped; <= occupancy_threshold")                                  \
    X(G, visibility, ENUM(switch), ANY,                                                                 \
      RULE(visibility, "off; on if uniform with alpha_threshold, keep=1"),                              \
      "densities of all samples first, then colours of visible ones only")

/* Proposal field of march.sampling=proposal. */
#define VKN_SETTINGS_PROPOSAL(X, G)                                                                     \
    X(G, levels, U32, RANGE(1, 16), VALUE(5),                                                           \
      "number of levels of the proposal's hash grid, with two features each")                           \
    X(G, log2_entries, U32, RANGE(8, 24), DEVICE(17, 14),                                               \
      "log2 of the number of entries in a level's table")                                               \
    X(G, finest, U32, RANGE(16, 65536), VALUE_RULE(proposal_finest, 128, "; twice with contraction"),   \
      "resolution of the finest level, in grid points per side")                                        \
    X(G, width, U32, MULTIPLE(16, 128, 16), DEVICE(64, 16),                                             \
      "width of the proposal MLP's hidden layer")                                                       \
    X(G, anneal_steps, U32, RANGE(1, UINT32_MAX), VALUE(1000),                                          \
      "number of steps in which samples change from even to the proposal's")                            \
    X(G, interval, U32, RANGE(1, 1000), VALUE(5),                                                       \
      "steps between updates of the proposal, after anneal_steps")

#define VKN_SETTINGS_LOSS(X, G)                                                                         \
    X(G, kind, ENUM(loss), ANY, VALUE(VKN_LOSS_HUBER), "loss of a pixel's colour")                      \
    X(G, delta, FLOAT, RANGE(1e-6, 10), VALUE(0.1), "delta of the Huber and Charbonnier losses")        \
    X(G, distortion_curve, ENUM(distortion_curve), ANY,                                                 \
      RULE(distortion_curve, "ladder; with a weight of your own linear"),                               \
      "curve of distance that the distortion loss is computed on")                                      \
    X(G, distortion, FLOAT, RANGE_OR_OFF(-1, 10),                                                       \
      VALUE_RULE(distortion, 0.01,                                                                      \
                 ", at most 9 views 0.003; linear: 0, proposal 0.002, plain background 0.003"),         \
      "weight of the distortion loss; 0 or negative: none")                                             \
    X(G, depth, FLOAT, RANGE_OR_OFF(-1, 10),                                                            \
      RULE(loss_depth, "0; 0.003 with tracked points or depth pictures"),                               \
      "weight of known depths: sparse points, depth pictures; 0 or negative: none")                     \
    X(G, near_density, FLOAT, RANGE_OR_OFF(-1, 10),                                                     \
      VALUE_RULE(near_density, 0.003, ", at most 9 views 0.03"),                                        \
      "weight of density nearer to the camera than march.near_start; 0 or negative: none")              \
    X(G, interlevel, FLOAT, RANGE(1e-9, 1e3), VALUE(1),                                                 \
      "weight of the interlevel loss, which trains the proposal")                                       \
    X(G, robust, ENUM(switch), ANY, VALUE(VKN_SWITCH_OFF),                                              \
      "no weight for outliers: parts of images that other images contradict")

/* Exponential and cosine schedules reach final_rate when training ends, by steps or time. Milestones are fractions
 * of the training; a training without limits uses decay_start and decay_interval instead. */
#define VKN_SETTINGS_OPTIMIZER(X, G)                                                                    \
    X(G, kind, ENUM(optimizer), ANY, VALUE(VKN_OPTIMIZER_ADAM), "optimiser of the parameters")          \
    X(G, learning_rate, FLOAT, RANGE(1e-9, 10),                                                         \
      VALUE_RULE(learning_rate, 1e-2, ", vanilla 1e-3, CPU 4e-3; lion: times 0.3"),                     \
      "learning rate before warm-up and schedule")                                                      \
    X(G, beta1, FLOAT, RANGE(1e-6, 0.999999), VALUE(0.9),                                               \
      "decay of the first moment; lion: weight of the momentum in a step")                              \
    X(G, beta2, FLOAT, RANGE(1e-6, 0.999999), VALUE(0.99),                                              \
      "decay of the second moment; lion: of the momentum")                                              \
    X(G, epsilon, FLOAT, RANGE(1e-30, 1), VALUE(1e-15), "epsilon of Adam")                              \
    X(G, moments, ENUM(moment_type), ANY, VALUE(VKN_MOMENTS_F32),                                       \
      "storage type of Adam's moments; bf16: half the memory")                                          \
    X(G, weight_decay, FLOAT, RANGE_OR_OFF(-1, 1), VALUE(1e-6),                                         \
      "L2 weight decay of the MLPs, decoupled with lion; 0 or negative: none")                          \
    X(G, warmup_steps, U32, RANGE(1, UINT32_MAX),                                                       \
      VALUE_RULE(warmup_steps, 100, ", fewer in short runs, none with rates"),                          \
      "number of steps of linear learning rate warm-up")                                                \
    X(G, schedule, ENUM(rate_schedule), ANY, RULE(rate_schedule, "step, file with rates"),              \
      "schedule of the learning rate; exponential, cosine: to final_rate")                              \
    X(G, final_rate, FLOAT, RANGE(1e-12, 10), RULE(final_rate, "learning_rate / 100"),                  \
      "learning rate at the end of an exponential or cosine schedule")                                  \
    X(G, rates, POINTS(rate), RANGE(1e-12, 10), OPEN("none"),                                           \
      "learning rates by step, linear between; JSON: [[step, rate], ...]")                              \
    X(G, decay_factor, FLOAT, RANGE(1e-6, 1), VALUE(0.33), "learning rate factor at each milestone")    \
    X(G, milestones, FLOATS(3), RANGE(1e-6, 2),                                                         \
      VALUES_RULE(milestones, 0.5, 0.75, 0.9, "; with seconds and in short runs 0.8,0.9,0.96"),         \
      "fractions of the training at which the learning rate is lowered")                                \
    X(G, decay_start, U32, RANGE(1, UINT32_MAX), VALUE(20000),                                          \
      "step of the first milestone of a run without limits")                                            \
    X(G, decay_interval, U32, RANGE(1, UINT32_MAX), VALUE(10000),                                       \
      "steps between milestones of a run without limits")                                               \
    X(G, ema_decay, FLOAT, RANGE(1e-6, 0.999999), VALUE(0.95),                                          \
      "decay of the parameters' moving average, per step")                                              \
    X(G, clip_norm, FLOAT, RANGE_OR_OFF(1e-9, 1e9), OPEN("0"),                                          \
      "maximum gradient norm, without weight decay; 0: no clipping")

/* growth, backoff, interval, underflow, hysteresis, max_backoffs and rate_cut_factor apply to dynamic loss scaling
 * only. */
#define VKN_SETTINGS_LOSS_SCALE(X, G)                                                                   \
    X(G, kind, ENUM(loss_scale), ANY,                                                                   \
      RULE(loss_scale,                                                                                  \
           "dynamic; static in fp32"),                                                                  \
      "kind of loss scaling of the gradients")                                                          \
    X(G, initial, FLOAT, RANGE(1e-6, VKN_MOST_LOSS_SCALE),                                              \
      VALUE_RULE(initial_scale, 65536,                                                                  \
                 " if dynamic, schedule's first, else 1"),                                              \
      "initial loss scale")                                                                             \
    X(G, minimum, FLOAT, RANGE_OR_OFF(1e-6, VKN_MOST_LOSS_SCALE), OPEN("0"),                            \
      "minimum loss scale, of every kind; 0: none")                                                     \
    X(G, maximum, FLOAT, RANGE_OR_OFF(1e-6, VKN_MOST_LOSS_SCALE), OPEN("0"),                            \
      "maximum loss scale, of every kind; 0: none")                                                     \
    X(G, growth, FLOAT, RANGE(1, 1024), VALUE(2),                                                       \
      "growth factor after loss_scale.interval steps without overflow")                                 \
    X(G, backoff, FLOAT, RANGE(1e-3, 1), VALUE(0.5), "back-off factor after an overflow")               \
    X(G, interval, U32, RANGE(1, UINT32_MAX), VALUE(2000),                                              \
      "number of steps without overflow before the loss scale grows")                                   \
    X(G, underflow, FLOAT, RANGE(1e-6, 1), VALUE(0.01),                                                 \
      "share of underflowed gradients above which the scale grows every 16 steps")                      \
    X(G, hysteresis, U32, RANGE(1, UINT32_MAX), VALUE(1),                                               \
      "overflows since the last growth up to the first back-off; 1: at once")                           \
    X(G, max_backoffs, U32, RANGE(1, UINT32_MAX), VALUE(12),                                            \
      "number of back-offs without growth that lower the learning rate")                                \
    X(G, rate_cut_factor, FLOAT, RANGE(1e-3, 1), VALUE(0.5),                                            \
      "learning rate factor after max_backoffs back-offs; 1: unchanged")                                \
    X(G, schedule, POINTS(scale), RANGE(1e-6, VKN_MOST_LOSS_SCALE), OPEN("none"),                       \
      "loss scales from steps on; JSON: [[step, scale], ...]")

#define VKN_SETTINGS_PARALLEL(X, G)                                                                     \
    X(G, mode, ENUM(parallel_mode), ANY, VALUE(VKN_PARALLEL_SYNCHRONOUS),                               \
      "all-reduce of gradients, or average of parameters every 16 steps")                               \
    X(G, ranks_per_device, U32, RANGE(1, 16), VALUE(1),                                                 \
      "number of ranks that each device runs, one after the other")                                     \
    X(G, communication_type, ENUM(communication_type), ANY,                                             \
      RULE(communication_type, "f32; f16 with gradient_sums=f16"),                                      \
      "communication type of the hash grid's gradients")                                                \
    X(G, buckets, U32, RANGE(1, 8), DEVICE(4, 1),                                                       \
      "number of gradient buckets; one is sent while the next is computed")                             \
    X(G, images, ENUM(parallel_part), ANY, VALUE(VKN_PART_ALL),                                         \
      "training images of each rank: all, or a share of its own")                                       \
    X(G, cells, ENUM(parallel_part), ANY, RULE(cells, "all, CPU share"),                                \
      "occupancy cells that each device updates: all, or a share of its own")

/* Groups of settings, and the list of each. */
#define VKN_SETTING_GROUPS(GROUP)                                                                       \
    GROUP(log, VKN_SETTINGS_LOG)                                                                        \
    GROUP(scene, VKN_SETTINGS_SCENE)                                                                    \
    GROUP(refine, VKN_SETTINGS_REFINE)                                                                  \
    GROUP(appearance, VKN_SETTINGS_APPEARANCE)                                                          \
    GROUP(progressive, VKN_SETTINGS_PROGRESSIVE)                                                        \
    GROUP(field, VKN_SETTINGS_FIELD)                                                                    \
    GROUP(grid, VKN_SETTINGS_GRID)                                                                      \
    GROUP(mlp, VKN_SETTINGS_MLP)                                                                        \
    GROUP(dynamic, VKN_SETTINGS_DYNAMIC)                                                                \
    GROUP(glsl, VKN_SETTINGS_GLSL)                                                                      \
    GROUP(matrix, VKN_SETTINGS_MATRIX)                                                                  \
    GROUP(policy, VKN_SETTINGS_POLICY)                                                                  \
    GROUP(batch, VKN_SETTINGS_BATCH)                                                                    \
    GROUP(march, VKN_SETTINGS_MARCH)                                                                    \
    GROUP(proposal, VKN_SETTINGS_PROPOSAL)                                                              \
    GROUP(loss, VKN_SETTINGS_LOSS)                                                                      \
    GROUP(optimizer, VKN_SETTINGS_OPTIMIZER)                                                            \
    GROUP(loss_scale, VKN_SETTINGS_LOSS_SCALE)                                                          \
    GROUP(parallel, VKN_SETTINGS_PARALLEL)

/* ---- members of struct vkn_config ------------------------------------------------------------ */

#define VKN_TYPE_U32          uint32_t
#define VKN_TYPE_U64          uint64_t
#define VKN_TYPE_BYTES        uint64_t
#define VKN_TYPE_FLOAT        float
#define VKN_TYPE_FLOATS(n)    float
#define VKN_TYPE_DOUBLE       double
#define VKN_TYPE_DOUBLES(n)   double
#define VKN_TYPE_SECONDS      double
#define VKN_TYPE_BOOL         bool
#define VKN_TYPE_ENUM(name)   enum vkn_##name
#define VKN_TYPE_STEPS        struct vkn_steps
#define VKN_TYPE_POINTS(word) struct vkn_schedule_point

#define VKN_COUNT_U32
#define VKN_COUNT_U64
#define VKN_COUNT_BYTES
#define VKN_COUNT_FLOAT
#define VKN_COUNT_FLOATS(n)   [n]
#define VKN_COUNT_DOUBLE
#define VKN_COUNT_DOUBLES(n)  [n]
#define VKN_COUNT_SECONDS
#define VKN_COUNT_BOOL
#define VKN_COUNT_ENUM(name)
#define VKN_COUNT_STEPS
#define VKN_COUNT_POINTS(word) [VKN_SCHEDULE_POINTS]

#define VKN_MEMBER(group, name, type, range, standard, help) VKN_TYPE_##type name VKN_COUNT_##type;
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define VKN_GROUP(group, settings)                           struct { settings(VKN_MEMBER, group) } group;

/* clang-format on */

#endif
