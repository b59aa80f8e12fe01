/* The passes of a training step once more, in plain double precision: what the device is tested
 * against. Written from the definitions that each file names, not from the shaders. Positions,
 * directions and colours are double[3]. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "field/field.h"
#include "scene/scene.h"
#include "shared/layout.h"

/* ---- random numbers (random.c) ------------------------------------------------------------- */

/* pcg3d (Jarzynski and Olano 2020) of (index, step, seed with the dimension mixed in). */
void reference_random_bits(uint32_t seed, uint32_t step, uint32_t index, uint32_t dimension,
                           uint32_t bits[3]);
/* The upper 24 bits of each as a number in [0, 1). */
void reference_random_unit(uint32_t seed, uint32_t step, uint32_t index, uint32_t dimension,
                           double unit[3]);

/* ---- 16-bit numbers (f16.c) --------------------------------------------------------------- */

/* The one nearest to x, of two the even one; infinite where there is none so large. */
double reference_round_to_f16(double x);
double reference_round_to_bf16(double x);
double reference_f16(uint16_t bits);
/* Of the same number rounded. */
uint16_t reference_f16_bits(double x);

/* ---- lenses (lens.c) ----------------------------------------------------------------------- */

/* Image position, in pixels, of a point that the lens sees, off its axis. */
void reference_project(const struct scene_camera *camera, const double point[3], double pixel[2]);

/* ---- space (contraction.c) ----------------------------------------------------------------- */

/* The cube of that side around (0.5, 0.5, 0.5), or all of space contracted around it. */
struct reference_space {
    double side;
    bool contracted;
};
struct reference_space reference_space(const struct vkn_config *config);
/* Training space to where the cube, or contracted space, is the unit cube; and back. */
void reference_to_unit(const struct reference_space *space, const double position[3],
                       double unit[3]);
void reference_from_unit(const struct reference_space *space, const double unit[3],
                         double position[3]);
/* Growth of contracted radius with the radius: density is by unit of the former. */
double reference_shrinking(const struct reference_space *space, const double position[3]);
/* Distance from the camera as the distortion loss counts it: by the cube's side and, in contracted
 * space, contracted as radii are. */
double reference_normalized(const struct reference_space *space, double t);

/* ---- steps along a ray (stepping.c) -------------------------------------------------------- */

/* A step at distance t is clamp(t * cone, shortest, longest) long; in contracted space it grows
 * with t^2 from the distance on at which it is `longest`. */
struct reference_stepping {
    double shortest, longest, cone;
    bool contracted;
    uint32_t spacing; /* SPACING_*: in which space "steps" are counted; a test may choose another */
    double nearest;   /* where the logarithm, or the inverse, begins */
};
struct reference_stepping reference_stepping(const struct Config *config, bool contracted);
/* Where samples begin that have no cube to enter: at the near distance, but not nearer than those
 * spaces reach. */
double reference_nearest(const struct reference_stepping *stepping, double near_distance);
double reference_step_size(const struct reference_stepping *stepping, double t);
/* Number of steps from distance 0 to t, and its inverse. */
double reference_steps_to(const struct reference_stepping *stepping, double t);
double reference_distance_after(const struct reference_stepping *stepping, double steps);
/* The bins of NeRF's stratified samples (Mildenhall et al. 2020, section 4): `count` that take as
 * many steps each between the distances of `span`: the distance at `place` (0..1) of bin number
 * `bin`, and how long the bin is. */
double reference_in_bin(const struct reference_stepping *stepping, const double span[2],
                        uint32_t count, uint32_t bin, double place);
double reference_bin_width(const struct reference_stepping *stepping, const double span[2],
                           uint32_t count, uint32_t bin);
/* Hierarchical sampling (Mildenhall et al. 2020, section 5.2): each bin's share of the fine samples
 * is its weight and a little. The shares of all bins up to `place`, which counts in bins, as a part
 * of all; `place` where these are `part`. */
double reference_shares_to(const double *weights, uint32_t bins, double place);
double reference_place_of(const double *weights, uint32_t bins, double part);
/* Samples of a proposal (proposal.c). What its weights are raised to in a step, counted from 1;
 * what each bin has of the samples once the weights are blurred; the shares of all bins up to
 * `place`, which counts in bins, as a part of all. */
double reference_annealed_slope(uint32_t step, uint32_t anneal_steps);
void reference_proposal_shares(const double *weights, uint32_t bins, double slope, double *shares);
double reference_part_to(const double *shares, uint32_t bins, double place);
/* Entry and exit of the cube of that side around (0.5, 0.5, 0.5); false when the line misses it. */
bool reference_cube(const double origin[3], const double direction[3], double side, double span[2]);

/* ---- occupancy grid and marching (occupancy.c, march.c) ------------------------------------ */

/* Index of a cell among those of its cascade: the bits of x, y and z interleaved. */
uint32_t reference_morton(const uint32_t cell[3]);
void reference_morton_cell(uint32_t index, uint32_t cell[3]);
/* Number of cascades that are cubes; contracted space is one more. */
uint32_t reference_cubes(const struct reference_space *space);
/* Training-space position of a point of a cell given relative to its corner (0..1). */
void reference_cell_position(const struct reference_space *space, uint32_t resolution,
                             uint32_t cascade, const uint32_t cell[3], const double inside[3],
                             double position[3]);

/* bool[cascades][resolution^3], Morton order: whether a cell counts as occupied, given the values
 * and the threshold; a cell of an outer cube also when a finer one in it does. */
struct reference_grid {
    uint32_t resolution, cascades;
    bool *occupied;
    struct reference_space space;
};
struct reference_grid reference_grid(const struct reference_space *space, uint32_t resolution,
                                     uint32_t cascades, const float *values, double threshold);
/* The device's form: words of 32 cells, then a word for each block of 8x8x8 cells. */
uint32_t reference_grid_words(const struct reference_grid *grid);
bool reference_grid_bit(const uint32_t *words, uint64_t cell);

enum reference_step { REFERENCE_EMPTY, REFERENCE_OCCUPIED, REFERENCE_EITHER };
/* Every step of a ray from stepping-space position `first` to `last`, one after the other:
 * occupied or not, or either where rounding to float decides. Returns the number of steps;
 * `steps` has room for `capacity`. */
size_t reference_march(const struct reference_grid *grid, const struct reference_stepping *stepping,
                       const double origin[3], const double direction[3], double first, double last,
                       enum reference_step *steps, size_t capacity);

/* ---- the field (encoding.c, vanilla.c, field.c) -------------------------------------------- */

#define REFERENCE_HARMONICS 16

struct reference_field {
    const struct field_model *model;
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t density_layers, layer_count; /* output layers included */
    uint32_t geometry, sh_degree;
    uint32_t position_octaves, direction_octaves; /* of the vanilla model; else 0 */
    uint32_t features_from; /* output of the density MLP that the colour MLP's inputs begin with */
    /* Of the dynamic model, else 0: layers of the deformation, behind the others; octaves of what
     * it reads; values of the time behind the grid's features. */
    uint32_t deformation_layers, deformation_octaves, time_octaves, time_inputs;
    double time; /* of what is asked next */
    enum vkn_density_activation activation;
    /* Of the layered model; others have ReLUs, and encodings as the numbers above say. */
    enum vkn_activation hidden;
    enum vkn_position_encoding place;
    enum vkn_direction_encoding view;
    struct reference_space space;
    double *params; /* as on the device */
    bool half;      /* what is kept is rounded to f16; products and sums are not */
};
/* Copies the parameters; reference_field_destroy frees them. */
struct reference_field reference_field(const struct vkn_config *config,
                                       const struct field_model *model, const float *params);
void reference_field_destroy(struct reference_field *field);
/* Keeps parameters, inputs and outputs of layers and their gradients in f16 from here on. */
void reference_field_halve(struct reference_field *field);
/* Where the device keeps a layer's weight from an input to an output: the one place that knows. */
size_t reference_weight(const struct field_layer *layer, uint32_t input, uint32_t output);

/* features: double[levels * features]. */
void reference_encode(const struct reference_field *field, const double position[3],
                      double *features);
/* gradients (like params) += feature_gradient spread over the grid. */
void reference_encode_backward(const struct reference_field *field, const double position[3],
                               const double *feature_gradient, double *gradients);
/* Whether the grid's features at a position depend on that parameter of the grid. */
bool reference_reads(const struct reference_field *field, const double position[3],
                     size_t parameter);
/* x, then sin(2^k pi x) and cos(2^k pi x) of each octave k, then zeros up to a multiple of 32,
 * which is returned. */
uint32_t reference_frequencies(uint32_t octaves, const double x[3], double *values);
/* The unit cube, and what lies outside at its faces, as -1 .. 1. */
void reference_stretched(const struct reference_space *space, const double position[3],
                         double stretched[3]);
void reference_harmonics(uint32_t degree, const double direction[3],
                         double values[REFERENCE_HARMONICS]);
/* Where the deformation takes a position at the field's time. */
void reference_canonical(const struct reference_field *field, const double position[3],
                         double canonical[3]);
/* output: red, green, blue, density. */
void reference_field_forward(const struct reference_field *field, const double position[3],
                             const double direction[3], double output[4]);
/* gradient: with respect to red, green, blue and density; gradients (like params) grow. */
void reference_field_backward(const struct reference_field *field, const double position[3],
                              const double direction[3], const double gradient[4],
                              double *gradients);
/* The sum of `weights` times red, green, blue and density. */
double reference_field_weighted(const struct reference_field *field, const double position[3],
                                const double direction[3], const double weights[4]);
/* Of the sum of `gradient` times red, green, blue and density: its gradient by position and, along
 * the sphere, by direction. Central differences, so right where nothing has a kink
 * within `reach` in training space. */
void reference_field_input_gradients(const struct reference_field *field, const double position[3],
                                     const double direction[3], const double gradient[4],
                                     double reach, double by_position[3], double by_direction[3]);
/* Distance, in cells, of a position from the nearest face of a cell of any level. */
double reference_nearest_face(const struct reference_field *field, const double position[3]);
/* How far the nearest ReLU is from turning: the smallest input of one, relative to the root mean
 * square of its layer's. Within the error of an arithmetic its gradient there is anybody's. */
double reference_field_kink(const struct reference_field *field, const double position[3],
                            const double direction[3]);
/* Of what hidden layers add up, and its derivative. */
double reference_activation(enum vkn_activation activation, double x);
double reference_activation_slope(enum vkn_activation activation, double x);
/* Of a raw output: exp; softplus of one less, as in mip-NeRF; ReLU. */
double reference_density_of(enum vkn_density_activation activation, double raw);
/* Its derivative; exp's is held between exp(-15) and exp(15), as in instant-ngp. */
double reference_density_slope(enum vkn_density_activation activation, double raw);
/* Derivatives of red, green, blue and density by the MLPs' outputs behind them. */
void reference_field_slopes(const struct reference_field *field, const double position[3],
                            const double direction[3], double slopes[4]);
double reference_density(const struct reference_field *field, const double position[3]);
/* Without limits for exp; of others, which may have none, that of 0.01 at least. */
double reference_log_density(const struct reference_field *field, const double position[3]);

/* ---- compositing and loss (composite.c) ---------------------------------------------------- */

struct reference_sample {
    double t, width; /* distance and length of the step there */
    double color[3], density;
    double middle, extent; /* where there is a distortion loss: normalised distance and width */
};
struct reference_ray {
    double color[3], transmittance, depth;
    double closest; /* distance of a decisive transmittance from the early stop, relative to it */
    size_t reached; /* samples that light came to */
    size_t live;    /* of these so many count */
    double current_alpha_threshold; /* more transparent samples are empty and have no gradient */
    double (*round)(double); /* of every exponential, product and sum; NULL: none is rounded */
};
extern const struct reference_ray reference_ray_start;
bool reference_counts(const struct reference_ray *ray, const struct reference_sample *sample);
/* Goes on from *ray through the samples until the transmittance is below early_stop. */
void reference_composite(struct reference_ray *ray, const struct reference_sample *samples,
                         size_t count, double early_stop);
/* Loss of one channel; *slope is its derivative. */
double reference_loss(enum vkn_loss kind, double delta, double difference, double *slope);
/* Gradient of a function of the composited colour (its gradient there: color_gradient) with respect
 * to red, green, blue and density of each live sample of a ray begun at its start. */
void reference_composite_backward(const struct reference_ray *ray,
                                  const struct reference_sample *samples,
                                  const double background[3], const double color_gradient[3],
                                  double (*gradients)[4]);

/* The distortion loss of a composited ray begun at its start: the O(n^2) definition. Adds `weight`
 * times its gradient by density to those of its samples, unless they are NULL. */
double reference_distortion(const struct reference_ray *ray, const struct reference_sample *samples,
                            double weight, double (*gradients)[4]);
/* Fills middle and extent of a sample that is `width` long in training space. */
void reference_normalize(const struct reference_space *space, double width,
                         struct reference_sample *sample);

/* ---- what a proposal learns by (interlevel.c) ---------------------------------------------- */

/* Of a ray: from one distance to another, as long as `width` where density is counted. */
struct reference_interval {
    double begin, end, width, density;
};
struct reference_ray_bins {
    const struct reference_interval *bins; /* of the proposal */
    size_t count;
};
/* How exactly single precision knows the difference of a sample's weight and the bins'. */
#define REFERENCE_INTERLEVEL_ERROR 5e-7
/* The loss of a ray whose samples have taken more light than its bins: the O(n^2) definition.
 * Unless they are NULL, its gradient by the bins' densities, and how far single precision may be
 * off. */
double reference_interlevel(const struct reference_ray_bins *ray,
                            const struct reference_interval *samples, size_t count,
                            double *gradients, double *tolerances);

/* ---- optimisation (optim.c) ---------------------------------------------------------------- */

struct reference_optimizer {
    double rate, beta1, beta2, epsilon, decay;
    bool f16_moments, f16_weights; /* rounded to f16 */
};
/* Takes one weight's step number `count` (from 1); moment2 is left alone where a kind has none. */
typedef void reference_update(const struct reference_optimizer *optimizer, uint32_t count,
                              double gradient, double *weight, double *moment1, double *moment2);
extern reference_update *const reference_updates[]; /* by enum vkn_optimizer */
/* Learning rate of the step that follows `step` finished ones, before a falling loss scale cuts it.
 */
double reference_learning_rate(const struct Config *config, uint32_t step, double time_progress);
/* Loss scale of that step by the schedule; `initial` before its first point. */
double reference_scheduled_scale(const struct Config *config, uint32_t step, double initial);
/* Rays for the next step by the last one's figures. */
uint32_t reference_ray_count(const struct Config *config, const struct State *last);
/* State after a step: loss_scale, good_steps, tolerated, skipped_steps, updates, settled, falls,
 * rate_cuts. */
void reference_loss_scale(const struct Config *config, bool finite, struct State *state);

#endif
