/* Declares the reference for tests: the passes of a training step in double precision. It is
 * written from the definitions that each file names, not from the shaders. Positions, directions
 * and colours are double[3]. */
#ifndef REFERENCE_REFERENCE_H
#define REFERENCE_REFERENCE_H

#include "field/field.h"
#include "scene/scene.h"
#include "shared/layout.h"

/* ---- random numbers (random.c) ------------------------------------------------------------- */

/* Computes pcg3d (Jarzynski and Olano 2020) of (index, step, seed mixed with the dimension). */
void reference_random_bits(uint32_t seed, uint32_t step, uint32_t index, uint32_t dimension,
                           uint32_t bits[3]);
/* Returns the upper 24 bits of each as a number in [0, 1). */
void reference_random_unit(uint32_t seed, uint32_t step, uint32_t index, uint32_t dimension,
                           double unit[3]);

/* ---- f16 and bf16 (f16.c) ------------------------------------------------------------------- */

/* Returns the nearest f16 number, ties to even; infinity beyond the largest. */
double reference_round_to_f16(double x);
/* Returns the nearest bf16 number, ties to even. */
double reference_round_to_bf16(double x);
/* Returns the value of an f16 number's bits. */
double reference_f16(uint16_t bits);
uint16_t reference_f16_bits(double x);

/* ---- lenses (lens.c) ----------------------------------------------------------------------- */

/* Projects a point to its pixel position, for a lens that sees the point. */
void reference_project(const struct scene_camera *camera, const double point[3], double pixel[2]);
/* Computes the direction of the ray through the same pixel after a change of the lens, as in struct
 * View: logarithms of the focal lengths, principal point in focal lengths, k1, k2, p1, p2. */
void reference_change_lens(const struct scene_camera *camera, const double change[8],
                           const double before[3], double after[3]);

/* ---- space (contraction.c) ----------------------------------------------------------------- */

/* A cube of this side around (0.5, 0.5, 0.5), or all of space contracted around it. */
struct reference_space {
    double side;
    bool contracted;
    bool ladder;              /* the distortion loss is computed on the power ladder */
    double nearest, farthest; /* distances of samples, for the ladder */
};
struct reference_space reference_space(const struct vkn_config *config);
/* Maps training space to the unit cube that stands for the cube or contracted space; and back. */
void reference_to_unit(const struct reference_space *space, const double position[3],
                       double unit[3]);
void reference_from_unit(const struct reference_space *space, const double unit[3],
                         double position[3]);
/* Returns the derivative of the contracted by the true radius; density is per contracted length. */
double reference_shrinking(const struct reference_space *space, const double position[3]);
/* Returns the distance from the camera in the distortion loss: in units of the cube's side and, in
 * contracted space, contracted like radii; or on the power ladder, 0 to 1. */
double reference_normalized(const struct reference_space *space, double t);

/* ---- steps along a ray (stepping.c) -------------------------------------------------------- */

/* A step at distance t has length clamp(t * cone, shortest, longest). In contracted space it grows
 * with t^2 from the distance at which it is `longest`. */
struct reference_stepping {
    double shortest, longest, cone;
    bool contracted;
    uint32_t spacing; /* SPACING_*: how "steps" are counted */
    double nearest;   /* where logarithm or inverse begin */
};
struct reference_stepping reference_stepping(const struct Config *config, bool contracted);
/* Returns where samples begin without a cube to enter: at the near distance, or at `nearest` with
 * spacings that cannot reach 0. */
double reference_nearest(const struct reference_stepping *stepping, double near_distance);
double reference_step_size(const struct reference_stepping *stepping, double t);
/* Return the number of steps from distance 0 to t, and its inverse. */
double reference_steps_to(const struct reference_stepping *stepping, double t);
double reference_distance_after(const struct reference_stepping *stepping, double steps);
/* Return distances and widths in NeRF's stratified bins (Mildenhall et al. 2020, section 4):
 * `count` bins with equally many steps between the distances of `span`; `position` (0..1) is in bin
 * number `bin`. */
double reference_in_bin(const struct reference_stepping *stepping, const double span[2],
                        uint32_t count, uint32_t bin, double position);
double reference_bin_width(const struct reference_stepping *stepping, const double span[2],
                           uint32_t count, uint32_t bin);
/* Hierarchical sampling (Mildenhall et al. 2020, section 5.2): a bin's share of the fine samples is
 * its weight plus a constant. Return the CDF of the shares at a position, counted in bins, and its
 * inverse. */
double reference_coarse_cdf(const double *weights, uint32_t bins, double position);
double reference_coarse_quantile(const double *weights, uint32_t bins, double probability);
/* Sampling by a proposal (proposal.c). Return the exponent of the weights in a step, counted from
 * 1; each bin's share of the samples, from blurred weights; and the CDF of the shares at a
 * position, counted in bins. */
double reference_annealed_slope(uint32_t step, uint32_t anneal_steps);
void reference_proposal_shares(const double *weights, uint32_t bins, double slope, double *shares);
double reference_proposal_cdf(const double *shares, uint32_t bins, double position);
/* Computes entry and exit of a cube around (0.5, 0.5, 0.5); returns false if the line misses it. */
bool reference_cube(const double origin[3], const double direction[3], double side, double span[2]);

/* ---- occupancy grid and marching (occupancy.c, march.c) ------------------------------------ */

/* Returns a cell's index in its cascade: the interleaved bits of x, y and z. */
uint32_t reference_morton(const uint32_t cell[3]);
/* Computes a cell from its index in its cascade. */
void reference_morton_cell(uint32_t index, uint32_t cell[3]);
/* Returns the number of cascades that are cubes; contracted space has one more cascade. */
uint32_t reference_cubes(const struct reference_space *space);
/* Computes the position in training space of a point at `inside` (0..1) of a cell. */
void reference_cell_position(const struct reference_space *space, uint32_t resolution,
                             uint32_t cascade, const uint32_t cell[3], const double inside[3],
                             double position[3]);

/* Whether cells count as occupied by their values and the threshold: bool[cascades][resolution^3]
 * in Morton order. A cell of an outer cube is also occupied if a finer cell in it is. */
struct reference_grid {
    uint32_t resolution, cascades;
    bool *occupied;
    struct reference_space space;
};
struct reference_grid reference_grid(const struct reference_space *space, uint32_t resolution,
                                     uint32_t cascades, const float *values, double threshold);
/* Return size and a cell's bit of the device's layout: words of 32 cells, then one per 8x8x8
 * cells. */
uint32_t reference_grid_words(const struct reference_grid *grid);
bool reference_grid_bit(const uint32_t *words, uint64_t cell);

enum reference_step { REFERENCE_EMPTY, REFERENCE_OCCUPIED, REFERENCE_EITHER };
/* Marches all steps of a ray from step number `first` to `last`. Steps are occupied, empty, or
 * either if rounding to float decides. Returns the number of steps, at most `capacity`. */
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
    uint32_t features_from; /* first output of the density MLP that the colour MLP reads */
    /* Of the dynamic model, else 0: layers of the deformation, after the others; octaves of its
     * inputs; values of the time after the grid's features. */
    uint32_t deformation_layers, deformation_octaves, time_octaves, time_inputs;
    double time; /* of the next evaluation */
    enum vkn_density_activation activation;
    /* Of the layered model; other models have ReLUs, and the encodings above. */
    enum vkn_activation hidden;
    enum vkn_position_encoding position_encoding;
    enum vkn_direction_encoding direction_encoding;
    struct reference_space space;
    /* Levels with more than `finest` cells per unit of the unit cube, unless it is 0, are encoded
     * at the position `held`: they do not move cameras. */
    double finest, held[3];
    double *params; /* as on the device */
    bool f16;       /* parameters and stored values are rounded to f16; products and sums are not */
};
/* Creates a field with a copy of the parameters; reference_field_destroy frees it. */
struct reference_field reference_field(const struct vkn_config *config,
                                       const struct field_model *model, const float *params);
void reference_field_destroy(struct reference_field *field);
/* Rounds parameters to f16, and from now on inputs and outputs of layers and their gradients. */
void reference_field_round(struct reference_field *field);
/* Returns the index of a layer's weight from an input to an output, as on the device. */
size_t reference_weight(const struct field_layer *layer, uint32_t input, uint32_t output);

/* Computes the features: double[levels * features]. */
void reference_encode(const struct reference_field *field, const double position[3],
                      double *features);
/* Adds the gradients by grid parameters to `gradients` (laid out like params). */
void reference_encode_backward(const struct reference_field *field, const double position[3],
                               const double *feature_gradient, double *gradients);
/* Returns whether features at a position depend on a parameter of the grid. */
bool reference_reads(const struct reference_field *field, const double position[3],
                     size_t parameter);
/* Computes x, then sin(2^k pi x) and cos(2^k pi x) of each octave k, then zeros up to a multiple of
 * 32, which is returned. */
uint32_t reference_frequencies(uint32_t octaves, const double x[3], double *values);
/* Maps the unit cube to -1 .. 1, clamping positions outside. */
void reference_stretched(const struct reference_space *space, const double position[3],
                         double stretched[3]);
void reference_harmonics(uint32_t degree, const double direction[3],
                         double values[REFERENCE_HARMONICS]);
/* Computes the canonical position of a position at the field's time. */
void reference_canonical(const struct reference_field *field, const double position[3],
                         double canonical[3]);
/* Evaluates the field; output: red, green, blue, density. */
void reference_field_forward(const struct reference_field *field, const double position[3],
                             const double direction[3], double output[4]);
/* Adds gradients by parameters to `gradients`; gradient: by red, green, blue and density. */
void reference_field_backward(const struct reference_field *field, const double position[3],
                              const double direction[3], const double gradient[4],
                              double *gradients);
/* Returns the sum of `weights` times red, green, blue and density. */
double reference_field_weighted(const struct reference_field *field, const double position[3],
                                const double direction[3], const double weights[4]);
/* Computes gradients of the sum of `gradient` times red, green, blue and density, by position and,
 * along the sphere, by direction. Central differences: wrong near kinks within `reach` in training
 * space. */
void reference_field_input_gradients(const struct reference_field *field, const double position[3],
                                     const double direction[3], const double gradient[4],
                                     double reach, double by_position[3], double by_direction[3]);
/* Returns the distance, in cells, from the nearest face of a cell of any level. */
double reference_nearest_face(const struct reference_field *field, const double position[3]);
/* Returns the distance from the nearest ReLU's kink: the smallest input of a ReLU, relative to the
 * root mean square of its layer. Within rounding errors of a kink the gradient is undefined. */
double reference_field_kink(const struct reference_field *field, const double position[3],
                            const double direction[3]);
/* Return the activation of hidden layers, and its derivative. */
double reference_activation(enum vkn_activation activation, double x);
double reference_activation_slope(enum vkn_activation activation, double x);
/* Returns the density of a raw output: exp; softplus of raw - 1, as in mip-NeRF; ReLU. */
double reference_density_of(enum vkn_density_activation activation, double raw);
/* Returns its derivative; that of exp is clamped to exp(-15) .. exp(15), as in instant-ngp. */
double reference_density_slope(enum vkn_density_activation activation, double raw);
/* Computes derivatives of red, green, blue and density by the MLPs' raw outputs. */
void reference_field_slopes(const struct reference_field *field, const double position[3],
                            const double direction[3], double slopes[4]);
double reference_density(const struct reference_field *field, const double position[3]);
/* Returns the logarithm, for exp without limits, for others of at least 0.01. */
double reference_log_density(const struct reference_field *field, const double position[3]);

/* ---- compositing and loss (composite.c) ---------------------------------------------------- */

struct reference_sample {
    double t, width; /* distance, and length of the step */
    double color[3], density;
    double middle, extent; /* for the distortion loss: normalised distance and width */
    double length;         /* of the step in training space, for known depths */
};
struct reference_ray {
    double color[3], transmittance, depth;
    double closest; /* smallest relative distance of a transmittance from the early stop */
    size_t reached; /* samples before the early stop */
    size_t live;    /* reached samples with at least the alpha threshold */
    double current_alpha_threshold; /* samples below are empty and have no gradient */
    double (*round)(double); /* applied to every exponential, product and sum; NULL: no rounding */
};
extern const struct reference_ray reference_ray_start;
/* Returns whether the sample's alpha is at least the threshold. */
bool reference_alpha_test(const struct reference_ray *ray, const struct reference_sample *sample);
/* Composites samples, continuing from *ray, until the transmittance is below early_stop. */
void reference_composite(struct reference_ray *ray, const struct reference_sample *samples,
                         size_t count, double early_stop);
/* Returns the loss of one channel; *slope is its derivative. */
double reference_loss(enum vkn_loss kind, double delta, double difference, double *slope);
/* Computes gradients of a function of the composited colour, whose gradient by that colour is
 * color_gradient, by red, green, blue and density of each live sample of a whole ray. */
void reference_composite_backward(const struct reference_ray *ray,
                                  const struct reference_sample *samples,
                                  const double background[3], const double color_gradient[3],
                                  double (*gradients)[4]);

/* Returns the distortion loss of a whole composited ray by the O(n^2) definition. Adds `weight`
 * times its gradients by density to `gradients`, unless NULL. */
double reference_distortion(const struct reference_ray *ray, const struct reference_sample *samples,
                            double weight, double (*gradients)[4]);
/* Returns the optical thickness of a ray's live samples nearer than `range`, times 1 at the camera
 * to 0 at the range. Adds `weight` times its gradients by density to `gradients`, unless NULL. */
double reference_near_density(const struct reference_ray *ray,
                              const struct reference_sample *samples, double range, double weight,
                              double (*gradients)[4]);
/* Returns the loss of a known distance t with the standard deviation `sigma`: -log((P + 0.05) /
 * 1.05), P the sum of weight times 1 / (1 + x^2), x the distance of a sample from t, in units of
 * sigma and half the sample's length. Adds `weight` times its gradients by density to `gradients`,
 * unless NULL. */
double reference_known_depth(const struct reference_ray *ray,
                             const struct reference_sample *samples, double t, double sigma,
                             double weight, double (*gradients)[4]);
/* Returns the probability with which a ray of this loss is kept; keep_gain and mean_loss are those
 * of the state (arXiv 2408.03193). */
double reference_keep_probability(const struct Config *config, const struct State *state,
                                  double loss);
/* Returns 1 / probability if the step keeps the ray, else 0. */
double reference_keep_weight(const struct Config *config, const struct State *state, uint32_t ray,
                             double probability);
/* Fills middle and extent of a sample of length `width` in training space. */
void reference_normalize(const struct reference_space *space, double width,
                         struct reference_sample *sample);

/* ---- loss of a proposal (interlevel.c) -------------------------------------------------- */

/* An interval of a ray; `width` is its length in the unit of density. */
struct reference_interval {
    double begin, end, width, density;
};
struct reference_ray_bins {
    const struct reference_interval *bins; /* of the proposal */
    size_t count;
};
/* Single-precision error of the difference between a sample's weight and the bins'. */
#define REFERENCE_INTERLEVEL_ERROR 5e-7
/* Returns the loss of a ray whose samples' weights exceed those of the bins, by the O(n^2)
 * definition. Unless NULL, computes its gradients by the bins' densities, and tolerances for single
 * precision. */
double reference_interlevel(const struct reference_ray_bins *ray,
                            const struct reference_interval *samples, size_t count,
                            double *gradients, double *tolerances);

/* ---- optimisation (optim.c) ---------------------------------------------------------------- */

struct reference_optimizer {
    double rate, beta1, beta2, epsilon, decay;
    bool f16_moments, f16_weights; /* rounded to f16 */
};
/* Updates a weight in its step number `count` (from 1); kinds without moment2 ignore it. */
typedef void reference_update(const struct reference_optimizer *optimizer, uint32_t count,
                              double gradient, double *weight, double *moment1, double *moment2);
extern reference_update *const reference_updates[]; /* by enum vkn_optimizer */
/* Returns the share of the training that `step` steps, or the time, are. */
double reference_progress(const struct Config *config, uint32_t step, double time_progress);
/* Returns the learning rate after `step` steps, without the loss scale's rate cuts. */
double reference_learning_rate(const struct Config *config, uint32_t step, double time_progress);
/* Returns the scheduled loss scale; `initial` before the first point. */
double reference_scheduled_scale(const struct Config *config, uint32_t step, double initial);
/* Returns the number of rays of the next step. */
uint32_t reference_ray_count(const struct Config *config, const struct State *last);
/* Returns the keep_gain after a good step whose state was `last`. */
double reference_keep_gain(const struct Config *config, const struct State *last);
/* Updates loss_scale, good_steps, tolerated, skipped_steps, updates, settled, backoffs, rate_cuts.
 */
void reference_loss_scale(const struct Config *config, bool finite, struct State *state);

/* ---- drawing by error ---------------------------------------------------------------------- */

/* A view or strip whose pixels are drawn: its position in the whole image and in the error map. */
struct reference_drawn {
    uint32_t width, height, first_row, shrink, first_cell, columns, cell_edge;
    bool is_panorama;
    double center_y, focal_y, strip_share;
    const bool *used; /* [pixel] */
};
/* Returns the cell of the error map that contains a pixel. */
uint32_t reference_error_cell(const struct reference_drawn *view, uint32_t x, uint32_t y);
/* Computes the density with which each pixel is drawn, and as the pixel's weight the density of
 * even drawing divided by it. Returns the mean error in even drawing. */
double reference_draw(const struct reference_drawn *views, uint32_t count, const float *errors,
                      double share, double *drawn, double *weights);
/* Returns a cell's error after `rays` rays with this sum of losses. */
float reference_error(float before, double losses, uint32_t rays);

/* ---- refinement of cameras (views.c) ------------------------------------------------------- */

/* Computes the matrix that turns by the rotation vector w. */
void reference_rotation(const double w[3], double rotation[3][3]);
/* A sample of a ray, and the gradients of the loss with respect to its position, its direction and
 * the logarithm of its width in the density's unit. */
struct reference_moving_sample {
    double origin[3], direction[3], t;
    double by_position[3], by_direction[3], by_log_width;
    const struct scene_camera *camera; /* with the current pose and lens; NULL: no lens changes */
};
/* Computes the gradients in the order of a view's sums in BIND_STATE: with respect to turning the
 * camera about its position and moving it, to changing its lens, and to the scene's scale. */
void reference_view_gradient(const struct reference_space *space,
                             const struct reference_moving_sample *sample,
                             double gradient[VIEW_SUMS]);
/* A training view as in struct View; pose: turn and shift. */
struct reference_view {
    double pose[6], latent[6], moment1[6], moment2[6], whitening[6][6], gauge[VIEW_GAUGES][6];
    double lens[8], lens_latent[8], lens_moment1[8], lens_moment2[8], lens_whitening[8][8];
    uint32_t updates, lens_updates, group;
    bool has_rays;
    /* The view's sums: of the camera at its current pose, of its lens, of the scene's scale. */
    double gradient[VIEW_SUMS];
};
/* Takes a step with `count` latent parameters, after `updates` steps with this one: Adam, times the
 * share of the step that is no noise. */
void reference_significant_steps(const struct reference_optimizer *adam, uint32_t updates,
                                 int count, const double *gradient, const double *whitening,
                                 double *latent, double *moment1, double *moment2);
/* Updates the poses and lenses after `step` steps of the training: Adam on the latent parameters of
 * views and of camera groups, removal of the gauges, the limit. refine: REFINE_*. */
void reference_update_views(uint32_t refine, const struct Config *config, uint32_t step,
                            double time_progress, struct reference_view *views);

/* ---- appearance of images (appearance.c) ----------------------------------------------------- */

/* Computes the colour that a camera with the parameters of struct Appearance makes of a colour at a
 * position, which is relative to the image's middle in units of its longer side. */
void reference_photograph(const double p[APPEARANCE_PARAMETERS], bool is_full,
                          const double position[2], const double scene[3], double color[3]);
/* Computes the colour of the pixel of a ray, whose background is added to what is photographed. */
void reference_pixel(const double p[APPEARANCE_PARAMETERS], bool is_full, const double position[2],
                     const double color[3], double transmittance, const double background[3],
                     double pixel[3]);
/* A training view as in struct Appearance. */
struct reference_appearance {
    double values[APPEARANCE_PARAMETERS], moment1[APPEARANCE_PARAMETERS],
        moment2[APPEARANCE_PARAMETERS], gradient[APPEARANCE_PARAMETERS];
    double axis[3]; /* third column of the pose */
    double given;
    uint32_t updates, camera_updates, group;
    bool has_rays;
};
/* Updates the appearances after `step` steps of the training. */
void reference_update_appearance(bool is_full, const struct Config *config, uint32_t step,
                                 double time_progress, struct reference_appearance *views);

/* ---- the sky (sky.c) ------------------------------------------------------------------------- */

/* Returns the number of the texel that a direction goes through in the map of a level, 0..3. */
uint32_t reference_sky_texel(int level, const double direction[3]);
/* Computes the colour of the sky, texels [SKY_TEXELS][red, green, blue, weight], in a direction. */
void reference_sky(const struct ErrorCell (*texels)[4], const double direction[3], double color[3]);
/* Returns the difference within which a pixel may show the sky. */
double reference_sky_tolerance(uint32_t step);
/* Returns the weight of a pixel that differs from the sky. */
double reference_sky_weight(const double difference[3], double transmittance, uint32_t step);

#endif
