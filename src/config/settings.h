/* clang-format off */

/* The settings of a training run, one row each. config.h makes struct vkn_config of them; the rows are all
 * that says how a setting is called, what it accepts, what it is by default, and what --help tells about
 * it. They stand in the order of the JSON that is written.
 *
 *     X(G, NAME, TYPE, RANGE, DEFAULT, "help")
 *
 * NAME is the member, in struct vkn_config inside of its group's (G): grid.levels.
 *
 * TYPE is one of
 *   U32, U64               whole numbers
 *   BYTES                  uint64_t
 *   FLOAT, FLOATS(n)       float, float[n]
 *   DOUBLE, DOUBLES(n)     double, double[n]
 *   SECONDS                double
 *   BOOL                   false by default
 *   ENUM(name)             enum vkn_name, of the enumerations of <vknerf/choices.h>
 *   STEPS                  struct vkn_steps
 *   POINTS(value)          struct vkn_schedule_point[VKN_SCHEDULE_POINTS]; what messages call their values
 *
 * RANGE, both ends accepted, of points that of their values:
 *   RANGE(least, most)
 *   MULTIPLE(least, most, of)
 *   RANGE_OR_OFF(least, most)   and 0, which turns something off, whatever the range; where that has
 *                               negative numbers, those do as well, and struct vkn_config has -1 for all
 *   ANY                         of what is no number
 *
 * DEFAULT is what the zero of struct vkn_config becomes when training begins:
 *   VALUE(value), VALUES(a, b, c)   that
 *   DEVICE(gpu, cpu)                what suits the device
 *   RULE(rule, "words")             what a rule of src/config/defaults.c makes of other settings, the
 *                                   scene and the device; the words tell --help
 *   VALUE_RULE(rule, value, "words"), DEVICE_RULE(rule, gpu, "words", cpu, "words")
 *                                   the same, where the rule begins with a number, and so does what
 *                                   --help says
 *   SCENE(fact, "words")            what the scene came to, even in the place of what was asked for
 *   OPEN("words")                   zero: what works with the setting chooses
 *   OPEN_VALUE("words", value, "words")   the same, around a number that it begins with
 *
 * A quotient (1/256) is one of real numbers. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

/* ---- limits ---------------------------------------------------------------------------------- */

/* What a training space may be, measured or given: a run records it and reads it again. */
#define VKN_LEAST_SCENE_SCALE 1e-10
#define VKN_MOST_SCENE_SCALE  1e10
#define VKN_MOST_SCENE_OFFSET 1e18

#define VKN_MOST_LOSS_SCALE   8.5e37 /* its reciprocal must be a normal number */

/* ---- settings -------------------------------------------------------------------------------- */

/* A run that repeats itself bit by bit adds gradients up in fixed point. By default each checkpoint
 * replaces the one before; those that `keep` counts have names of their own. */
#define VKN_SETTINGS_RUN(X, G)                                                                          \
    X(G, model, ENUM(model), ANY, RULE(model, "ngp; layered where field.* is not ngp's"),               \
      "the field: hash grid and small MLPs, the MLP of NeRF, one of them that moves, --field, or layers of any kind") \
    X(G, precision, ENUM(precision), ANY, RULE(precision, "auto, the fastest here"),                    \
      "of the field; coopmat is fp16 in cooperative matrices")                                          \
    X(G, gradient_sums, ENUM(gradient_sums), ANY,                                                       \
      OPEN("float; fixed if deterministic or without f32 atomics"),                                     \
      "of the grid: f32 atomics, fixed point, compare-and-swap, pairs of f16")                          \
    X(G, background, ENUM(background), ANY, VALUE(VKN_BACKGROUND_RANDOM),                               \
      "behind transparent training pixels")                                                             \
    X(G, seed, U64, RANGE(0, UINT64_MAX), VALUE(0), "of all random numbers")                            \
    X(G, deterministic, BOOL, ANY, VALUE(false), "same seed and device, same bits (slower)")            \
    X(G, steps, U32, RANGE(1, UINT32_MAX), VALUE_RULE(steps, 20000, ", none with seconds"),             \
      "training ends after these")                                                                      \
    X(G, seconds, SECONDS, RANGE(0, 1e9), OPEN("no limit"), "training ends after these; 0: no limit")   \
    X(G, eval_every, STEPS, RANGE_OR_OFF(1, UINT32_MAX), OPEN("at the end"),                            \
      "steps between quick evaluations, or those after which there is one; 0: none")                    \
    X(G, save_every, U32, RANGE(0, UINT32_MAX), OPEN("by time"),                                        \
      "steps between checkpoints; 0: by time")                                                          \
    X(G, save_seconds, SECONDS, RANGE_OR_OFF(-1, 1e6),                                                  \
      OPEN_VALUE("every ", 60, ", none with save_every"),                                               \
      "between checkpoints; 0 or negative: only at the end")                                            \
    X(G, keep, U32, RANGE(1, 10000), OPEN("the last alone"),                                            \
      "newest checkpoints stay as checkpoint_STEP")                                                     \
    X(G, eval_views, U32, RANGE(1, 64), VALUE(4),                                                       \
      "test views of a quick evaluation, whose pictures are kept")

#define VKN_SETTINGS_LOG(X, G)                                                                          \
    X(G, tensorboard, ENUM(switch), ANY, VALUE(VKN_SWITCH_ON), "event files beside metrics.jsonl")

/* Training space is scale times the dataset's, plus offset. Images that do not fit on the device are
 * there in part at a time, those that do not fit in host memory are decoded again. */
#define VKN_SETTINGS_SCENE(X, G)                                                                        \
    X(G, format, ENUM(scene_format), ANY, SCENE(format, "what its files show"),                         \
      "that the scene is written in")                                                                   \
    X(G, downscale, U32, RANGE(1, 64), SCENE(downscale, "1"), "images are this much smaller")           \
    X(G, scale, DOUBLE, RANGE(VKN_LEAST_SCENE_SCALE, VKN_MOST_SCENE_SCALE),                             \
      SCENE(scale, "the file's or measured"), "dataset units to training space")                        \
    X(G, offset, DOUBLES(3), RANGE(-VKN_MOST_SCENE_OFFSET, VKN_MOST_SCENE_OFFSET),                      \
      SCENE(offset, "the file's or measured"), "added to those; only with scene.fixed_transform")       \
    X(G, aabb_scale, U32, RANGE(1, 128), SCENE(aabb_scale, "the file's or measured"),                   \
      "side of the reconstructed cube, a power of two")                                                 \
    X(G, fixed_transform, BOOL, ANY, SCENE(placed, "false"),                                                     \
      "take scale, offset and aabb_scale as they are: a run keeps those that it began with")            \
    X(G, contraction, ENUM(contraction), ANY, VALUE(VKN_CONTRACTION_NONE),                              \
      "cube: space beyond that cube is drawn in, to infinity")                                          \
    X(G, image_budget, BYTES, RANGE(1, 1125899906842624), OPEN("what the device has room for"),         \
      "of training images on the device; others are exchanged as training goes on")                     \
    X(G, host_budget, BYTES, RANGE(1, 1125899906842624), OPEN("a quarter of the machine's memory"),     \
      "of decoded images in host memory; beyond it files are decoded again and again")

/* The downscale is on top of the scene's. */
#define VKN_SETTINGS_PROGRESSIVE(X, G)                                                                  \
    X(G, enabled, BOOL, ANY, VALUE(false), "begin with small images")                                   \
    X(G, start_downscale, U32, MULTIPLE(2, 8, 2), VALUE(4), "2, 4 or 8 times smaller at first")         \
    X(G, milestones, FLOATS(3), RANGE(1e-6, 2), VALUES(0.1, 0.25, 0.5),                                 \
      "shares of the training at which that halves, until it is 1")

/* Of the layered model, also behind a deformation; other models have their own. */
#define VKN_SETTINGS_FIELD(X, G)                                                                        \
    X(G, position, ENUM(position_encoding), ANY, RULE(position, "hash, vanilla frequencies"),           \
      "what the density MLP is given of the position")                                                  \
    X(G, direction, ENUM(direction_encoding), ANY, RULE(direction, "harmonics, vanilla frequencies"),   \
      "what the colour MLP is given of the direction")                                                  \
    X(G, activation, ENUM(activation), ANY, VALUE(VKN_ACTIVATION_RELU), "of hidden layers")

/* instant-ngp's figures. A processor without a GPU gets a model of about a twelfth of the work and a
 * finest level that matches what it can train in minutes. */
#define VKN_SETTINGS_GRID(X, G)                                                                         \
    X(G, levels, U32, RANGE(1, 32), VALUE(16), "resolutions of the hash grid")                          \
    X(G, features, U32, MULTIPLE(2, 4, 2), VALUE(2), "per level")                                       \
    X(G, log2_entries, U32, RANGE(8, 24), DEVICE(19, 15), "of a level's table")                         \
    X(G, coarsest, U32, RANGE(2, 1024), VALUE(16), "grid points along the coarsest level")              \
    X(G, finest, U32, RANGE(2, 1048576),                                                                \
      DEVICE_RULE(finest, 2048, " x aabb_scale, CPU ", 512, " x, twice when contracted"),               \
      "grid points along the finest level")                                                             \
    X(G, initial, FLOAT, RANGE(1e-9, 1), VALUE(1e-4), "features begin evenly within +- this")

#define VKN_SETTINGS_MLP(X, G)                                                                          \
    X(G, density_width, U32, MULTIPLE(16, 256, 16), VALUE_RULE(density_width, 64, ", vanilla 256"),     \
      "of hidden layers")                                                                               \
    X(G, density_layers, U32, RANGE(1, 12), VALUE_RULE(density_layers, 1, ", vanilla 8"), "hidden layers") \
    X(G, geometry, U32, MULTIPLE(16, 256, 16), VALUE_RULE(geometry, 16, ", layered 32, vanilla 256"),               \
      "outputs of the density MLP")                                                                     \
    X(G, color_width, U32, MULTIPLE(16, 256, 16), VALUE_RULE(color_width, 64, ", vanilla 128"),         \
      "of hidden layers")                                                                               \
    X(G, color_layers, U32, RANGE(1, 8), VALUE_RULE(color_layers, 2, ", vanilla 1"), "hidden layers")   \
    X(G, sh_degree, U32, RANGE(1, 4), VALUE(4), "of the direction's spherical harmonics")          \
    X(G, position_octaves, U32, RANGE(1, 16), VALUE_RULE(position_octaves, 10, ", behind a deformation 5"), \
      "of the position's frequencies")                                                         \
    X(G, direction_octaves, U32, RANGE(1, 8), VALUE(4), "of the direction's frequencies")      \
    X(G, skip_layer, U32, RANGE(1, 16), VALUE(6),                                                       \
      "hidden layer of the density MLP, but ngp's, that reads the position again; beyond the last: none")     \
    X(G, density_activation, ENUM(density_activation), ANY, RULE(density_activation, "exp, vanilla, dynamic softplus"), \
      "density of the raw output x: e^x, softplus(x - 1) or max(x, 0)")                                 \
    X(G, activation_checkpointing, ENUM(checkpointing), ANY, VALUE(VKN_CHECKPOINTING_AUTO),                           \
      "vanilla, layered: whether the backward pass computes activations again; auto: where they do not fit")

/* Of the dynamic model: a place and a moment become the place in one moment's scene, the canonical one. */
#define VKN_SETTINGS_DYNAMIC(X, G)                                                                      \
    X(G, canonical, ENUM(canonical), ANY, VALUE(VKN_CANONICAL_NGP), "model of the field that is deformed") \
    X(G, width, U32, MULTIPLE(32, 256, 32), VALUE(64), "of the deformation's hidden layers")            \
    X(G, layers, U32, RANGE(1, 8), VALUE(4), "hidden layers of the deformation")                        \
    X(G, position_octaves, U32, RANGE(1, 8), VALUE(2), "of the place's frequencies")                    \
    X(G, time_octaves, U32, RANGE(1, 8), VALUE(2), "of the moment's frequencies")                       \
    X(G, learning_rate_factor, FLOAT, RANGE(1e-6, 10), VALUE(0.3), "factor of the deformation's learning rate")         \
    X(G, curriculum, FLOAT, RANGE_OR_OFF(-1, 1), VALUE(0.5),                                            \
      "share of the training until views of all moments are drawn, the first ones first; 0 or negative: none") \
    X(G, time_bins, U32, RANGE(1, 64), VALUE(1),                                                        \
      "of the occupancy grid: each knows what is occupied in its part of the time; 1: one grid for all of it") \
    X(G, time_features, ENUM(switch), ANY, VALUE(VKN_SWITCH_OFF),                                       \
      "the moment is an input of the canonical field as well: for what changes its look")

/* Of a field in GLSL: <vknerf/field.h>. */
#define VKN_SETTINGS_GLSL(X, G)                                                                         \
    X(G, source, U32, RANGE(1, UINT32_MAX), OPEN("none"), "number of the GLSL that --field names")

/* Of cooperative matrices. */
#define VKN_SETTINGS_MATRIX(X, G)                                                                       \
    X(G, shape, ENUM(matrix_shape), ANY, OPEN("the device's largest"),                                  \
      "M x N x K of coopmat's products, see vknerf info")                                               \
    X(G, accumulate, ENUM(accumulate), ANY, OPEN("f32"), "in coopmat; f16 is less exact")               \
    X(G, conversions, BOOL, ANY, VALUE(false),                                                          \
      "coopmat keeps activations in registers (VK_NV_cooperative_matrix2)")

/* Of single operations, for experiments: what each is by default is the table of src/field/policy.c. The first
 * four follow from the precision and say no more than it does, but for products, which fp16 can have in f32; the
 * next two are other settings' f16; the rest is rounded to f16 where it is computed, in any precision. */
#define VKN_SETTINGS_POLICY(X, G)                                                                       \
    X(G, parameters, ENUM(policy), ANY, OPEN("the precision's"), "hash table and weights as read")      \
    X(G, activations, ENUM(policy), ANY, OPEN("the precision's"), "as kept")                            \
    X(G, matmul, ENUM(policy), ANY, OPEN("the precision's"), "of the MLPs; f32 also in fp16")                           \
    X(G, activation_gradients, ENUM(policy), ANY, OPEN("the precision's"), "as kept")                   \
    X(G, accumulators, ENUM(policy), ANY, OPEN("f32, or as matrix.accumulate"), "of the MLPs' products; f16 not in fp32") \
    X(G, grid_gradients, ENUM(policy), ANY, OPEN("as gradient_sums"), "of the grid's gradients; f16 is half") \
    X(G, weight_gradients, ENUM(policy), ANY, VALUE(VKN_POLICY_F32), "of the MLPs' gradients, over samples") \
    X(G, compositing, ENUM(policy), ANY, VALUE(VKN_POLICY_F32), "transmittance, colour, depth of rays") \
    X(G, master_parameters, ENUM(policy), ANY, VALUE(VKN_POLICY_F32), "parameters that the optimiser changes")    \
    X(G, moments, ENUM(policy), ANY, VALUE(VKN_POLICY_F32), "of gradients, which the optimiser keeps")

#define VKN_SETTINGS_BATCH(X, G)                                                                        \
    X(G, samples, U32, RANGE(1024, 16777216),                                                           \
      DEVICE_RULE(batch_samples, 262144, ", CPU ", 16384, ", vanilla a quarter, there 1024, dynamic, layered there 4096"),            \
      "live samples per step")                                                                          \
    X(G, chunk, U32, MULTIPLE(64, 16777216, 64), DEVICE(65536, 4096),                                   \
      "samples that go through layers at a time")                                             \
    X(G, max_rays, U32, RANGE(64, 4194304), DEVICE(131072, 16384), "per step")

/* MAX_RAY_SAMPLES is the most that a ray takes. */
#define VKN_SETTINGS_MARCH(X, G)                                                                        \
    X(G, sampling, ENUM(sampling), ANY, RULE(sampling, "occupancy, of ngp in surroundings proposal"),   \
      "samples lie in occupied cells, evenly along the ray, or where a coarse field or a proposal finds more") \
    X(G, ray_samples, U32, RANGE(1, 1024), VALUE(192), "of each ray, where sampling is uniform")        \
    X(G, coarse_samples, U32, RANGE(1, 256),                                                            \
      DEVICE_RULE(coarse_samples, 64, ", of a proposal 256, CPU ", 64, ""), "of a coarse field or a proposal")               \
    X(G, fine_samples, U32, RANGE(1, 512),                                                              \
      DEVICE_RULE(fine_samples, 128, ", with a proposal 48, CPU ", 128, ", there 24"),                                       \
      "that the fine field takes besides those of the coarse, or where a proposal has found something") \
    X(G, spacing, ENUM(spacing), ANY, VALUE(VKN_SPACING_STEPS), "of samples that no occupancy grid places") \
    X(G, resolution, U32, MULTIPLE(16, 512, 8),                                                         \
      DEVICE_RULE(resolution, 128, ", CPU ", 64, ", there vanilla, dynamic, layered 32"), "of the occupancy grid, a power of two") \
    X(G, occupancy_decay, FLOAT, RANGE(1e-3, 1), VALUE(0.95), "of occupancy per update")                          \
    X(G, occupancy_threshold, FLOAT, RANGE(1e-9, 1e3), VALUE(0.01),                                               \
      "optical thickness of an occupied smallest step")                                                 \
    X(G, cone_angle, FLOAT, RANGE_OR_OFF(-1, 1),                                                        \
      DEVICE_RULE(cone_angle, 1/256, ", CPU ", 1/64, ", 0 when aabb_scale is 1 and not contracted"),    \
      "growth of steps with distance; 0 or negative: none")                                             \
    X(G, steps_per_unit, U32, RANGE(16, 65536),                                                         \
      DEVICE_RULE(steps_per_unit, 1024, ", CPU ", 256, ", there vanilla 40, dynamic, layered 64"), "smallest step is sqrt(3) / this") \
    X(G, early_stop, FLOAT, RANGE(1e-9, 1), VALUE(1e-4), "transmittance that ends a ray")               \
    X(G, near_distance, FLOAT, RANGE(1e-6, 1e3),                                                        \
      VALUE_RULE(near_distance, 0.1, ", less for nearer content"),                                      \
      "first sample in front of the camera, training units")                                            \
    X(G, far_distance, FLOAT, RANGE_OR_OFF(1e-6, 1e9), OPEN("0, none"),                                 \
      "no samples further from the camera, training units")                                             \
    X(G, alpha_threshold, FLOAT, RANGE_OR_OFF(1e-9, 1), OPEN("0, none"),                                \
      "opacity below which a sample counts as empty, up to threshold")                                  \
    X(G, visibility, ENUM(switch), ANY, RULE(visibility, "off, on where uniform samples have an alpha_threshold"), \
      "densities first, colours of the samples that light comes to")

/* Of march.sampling=proposal. */
#define VKN_SETTINGS_PROPOSAL(X, G)                                                                     \
    X(G, levels, U32, RANGE(1, 16), VALUE(5), "resolutions of its hash grid, of two features each")     \
    X(G, log2_entries, U32, RANGE(8, 24), DEVICE(17, 14), "of a level's table")                         \
    X(G, finest, U32, RANGE(16, 65536), VALUE_RULE(proposal_finest, 128, ", twice when contracted"), "grid points along the finest level") \
    X(G, width, U32, MULTIPLE(16, 128, 16), DEVICE(64, 16), "of its MLP's layer")                       \
    X(G, anneal_steps, U32, RANGE(1, UINT32_MAX), VALUE(1000),                                          \
      "in which samples come to follow it entirely; it learns in all of these")                         \
    X(G, interval, U32, RANGE(1, 1000), VALUE(5), "steps from there on of which it learns in one")

#define VKN_SETTINGS_LOSS(X, G)                                                                         \
    X(G, kind, ENUM(loss), ANY, VALUE(VKN_LOSS_HUBER), "of the pixel's error")                          \
    X(G, delta, FLOAT, RANGE(1e-6, 10), VALUE(0.1), "Huber's and Charbonnier's")                         \
    X(G, distortion, FLOAT, RANGE_OR_OFF(-1, 10), RULE(distortion, "0, none; with a proposal 0.002"),    \
      "weight of the distortion loss, which draws together what takes a ray's light")                   \
    X(G, interlevel, FLOAT, RANGE(1e-9, 1e3), VALUE(1), "weight of the loss that a proposal learns by")

/* Exponential and cosine schedules reach final_rate when training ends, by steps or time. Milestones are
 * shares of the training; decay_start and decay_interval take their place where it has no limit. */
#define VKN_SETTINGS_OPTIMIZER(X, G)                                                                    \
    X(G, kind, ENUM(optimizer), ANY, VALUE(VKN_OPTIMIZER_ADAM), "how parameters follow from gradients") \
    X(G, learning_rate, FLOAT, RANGE(1e-9, 10), VALUE_RULE(learning_rate, 1e-2, ", vanilla 1e-3, CPU 4e-3; with lion times 0.3"), "learning rate before warm-up and schedule") \
    X(G, beta1, FLOAT, RANGE(1e-6, 0.999999), VALUE(0.9), "decay of the first moment; with lion its share of a step") \
    X(G, beta2, FLOAT, RANGE(1e-6, 0.999999), VALUE(0.99), "decay of the second moment; with lion of the only one") \
    X(G, epsilon, FLOAT, RANGE(1e-30, 1), VALUE(1e-15), "of Adam")                                      \
    X(G, weight_decay, FLOAT, RANGE_OR_OFF(-1, 1), VALUE(1e-6),                                         \
      "L2 on MLP weights, decoupled with lion; 0 or negative: none")                                    \
    X(G, warmup_steps, U32, RANGE(1, UINT32_MAX),                                                       \
      VALUE_RULE(warmup_steps, 100, ", fewer in short runs, none with rates"),                          \
      "linear rise of the learning rate")                                                               \
    X(G, schedule, ENUM(rate_schedule), ANY, RULE(rate_schedule, "step, file with optimizer.rates"),    \
      "of the learning rate: at milestones, or to the final rate at the end")                           \
    X(G, final_rate, FLOAT, RANGE(1e-12, 10), RULE(final_rate, "a hundredth of learning_rate"),         \
      "that exponential and cosine reach")                                                              \
    X(G, rates, POINTS(rate), RANGE(1e-12, 10), OPEN("none"),                                           \
      "learning rate after a step, straight between; in files [[step, rate], ...]")                     \
    X(G, decay_factor, FLOAT, RANGE(1e-6, 1), VALUE(0.33), "of the learning rate at each milestone")    \
    X(G, milestones, FLOATS(3), RANGE(1e-6, 2), VALUES(0.5, 0.75, 0.9), "shares of the training")       \
    X(G, decay_start, U32, RANGE(1, UINT32_MAX), VALUE(20000), "first decay of a run without limits")   \
    X(G, decay_interval, U32, RANGE(1, UINT32_MAX), VALUE(10000), "steps between the next ones")        \
    X(G, ema_decay, FLOAT, RANGE(1e-6, 0.999999), VALUE(0.95),                                      \
      "of the weights' moving average, per step")                                                       \
    X(G, clip_norm, FLOAT, RANGE_OR_OFF(1e-9, 1e9), OPEN("0, no clipping"), "largest gradient norm, weight decay not included")

/* Growth, backoff, interval, hysteresis and falls are of dynamic scaling. */
#define VKN_SETTINGS_LOSS_SCALE(X, G)                                                                   \
    X(G, kind, ENUM(loss_scale), ANY,                                                                   \
      RULE(loss_scale, "static in fp32, else dynamic, as with parallel.communication_type=f16; schedule with one"), \
      "of the gradients")                                                                               \
    X(G, initial, FLOAT, RANGE(1e-6, VKN_MOST_LOSS_SCALE),                                              \
      VALUE_RULE(initial_scale, 65536, " when dynamic, a schedule's first, else 1; within the limits"), \
      "loss scale at the start")                                                                        \
    X(G, minimum, FLOAT, RANGE_OR_OFF(1e-6, VKN_MOST_LOSS_SCALE), OPEN("0, none"),            \
      "least loss scale, dynamic or not")                                                               \
    X(G, maximum, FLOAT, RANGE_OR_OFF(1e-6, VKN_MOST_LOSS_SCALE), OPEN("0, none"),            \
      "largest loss scale, dynamic or not")                                                              \
    X(G, growth, FLOAT, RANGE(1, 1024), VALUE(2), "after an interval of good steps")                    \
    X(G, backoff, FLOAT, RANGE(1e-3, 1), VALUE(0.5), "after an overflow")                               \
    X(G, interval, U32, RANGE(1, UINT32_MAX), VALUE(2000), "good steps before growth")                  \
    X(G, hysteresis, U32, RANGE(1, UINT32_MAX), VALUE(1),                                               \
      "overflows up to the first back-off since the loss scale last grew; 1: back-off at once")         \
    X(G, max_backoffs, U32, RANGE(1, UINT32_MAX), VALUE(12),                                                \
      "back-offs without an interval between that lower the learning rate for good")                    \
    X(G, rate_cut_factor, FLOAT, RANGE(1e-3, 1), VALUE(0.5), "by this factor; 1: never")                \
    X(G, schedule, POINTS(scale), RANGE(1e-6, VKN_MOST_LOSS_SCALE), OPEN("none"),                       \
      "loss scale from a step on; in files [[step, scale], ...]")

#define VKN_SETTINGS_PARALLEL(X, G)                                                                     \
    X(G, mode, ENUM(parallel_mode), ANY, VALUE(VKN_PARALLEL_SYNCHRONOUS),                               \
      "of several ranks: gradients are exchanged every step, or weights every 16")                      \
    X(G, ranks_per_device, U32, RANGE(1, 16), VALUE(1), "ranks that each device plays, one after the other")     \
    X(G, communication_type, ENUM(communication_type), ANY, RULE(communication_type, "f16 with gradient_sums=f16, else f32"),                     \
      "what the hash grid's gradients are exchanged as")                                                \
    X(G, buckets, U32, RANGE(1, 8), DEVICE(4, 1),                                                        \
      "that gradients are exchanged in, each while the next ones are computed")                         \
    X(G, images, ENUM(parallel_part), ANY, VALUE(VKN_PART_ALL),                                         \
      "training images that each rank holds: all, or a share of its own")                               \
    X(G, cells, ENUM(parallel_part), ANY, RULE(cells, "share on CPU devices, else all"),                \
      "cells of the occupancy grid that each device updates")

/* Those of VKN_SETTINGS_RUN are in no group. */
#define VKN_SETTING_GROUPS(GROUP)                                                                       \
    GROUP(log, VKN_SETTINGS_LOG)                                                                        \
    GROUP(scene, VKN_SETTINGS_SCENE)                                                                    \
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

/* ---- their members --------------------------------------------------------------------------- */

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
