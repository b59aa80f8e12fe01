/* Lists the passes of rays, samples and the occupancy grid, with a cost formula for each. */
#include <math.h>

#include "rays/rays.h"

/* Operations for one ray or cell, counted in the pass's shader; a square root, an exponential and a
 * division count as one operation each. */
#define GENERATE_RAY 91 /* random numbers 9, pixel 9, position 14, ray 29, cube 25, steps 5 */
#define PROBE        37 /* rays/march_rays.comp, probe() in the innermost cascade */
#define WIDTH        3  /* step length of a sample: clamp(t * cone_angle, step_min, step_max) */

#define RAY_BYTES 24 /* bytes of a ray's origin and direction */
#define BLOCK     ((double)OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK)

/* A ray drawn by error searches the sums of slots and cells. Its weight depends on the error of its
 * cell and on three sums. */
static struct cost cost_generate(const struct cost_model *m, const struct cost_counts *n)
{
    double ray = 4 + sizeof(struct Ray) + sizeof(struct RayResult); /* 4: the pixel */
    double slots = m->constants->slot_count, cells = m->constants->slot_cells;
    double share = m->constants->error_share, searched = 0;
    if (m->config->loss.robust == VKN_SWITCH_ON)
        searched = 4; /* the error of the pixel's cell */
    if (share > 0)
        searched += 4 * 4 + share * 4 * (2 + log2(fmax(slots, 1)) + log2(fmax(cells, 1)));
    if (m->config->loss.depth > 0.0F)
        searched += (double)m->config->batch.depth_share * sizeof(struct Depth);
    bool has_sky = m->config->scene.sky == VKN_SWITCH_ON;
    double sky = has_sky ? COST_SKY_BYTES : 0;
    return (struct cost){
        .flops = (GENERATE_RAY + (has_sky ? COST_SKY_FLOPS : 0)) * n->rays,
        .bytes = (ray + searched + sky + sizeof(struct Camera)) * n->rays,
        .memory =
            (ray + sky) * n->rays + sizeof(struct Camera) * fmin(m->constants->view_count, n->rays),
    };
}

/* Returns a lower bound: one probe for each sample. Probes of empty cells are not counted. */
static struct cost cost_probes(const struct cost_model *m, const struct cost_counts *n)
{
    double ray = RAY_BYTES + 8 + 8; /* start and end; offset and number of samples */
    double cells = (double)m->counts.cells, bits = cells / 8 + 4 * cells / BLOCK;
    return (struct cost){
        .flops = PROBE * n->marched,
        .bytes = ray * n->rays + 4 * n->marched,
        .memory = ray * n->rays + fmin(bits, 4 * n->marched),
    };
}

static struct cost cost_write(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost = cost_probes(m, n);
    cost.flops += WIDTH * n->marched;
    cost.bytes += sizeof(struct Sample) * n->marched;
    cost.memory += sizeof(struct Sample) * n->marched;
    return cost;
}

static struct cost cost_march(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost = cost_write(m, n);
    cost.atomics = n->rays;
    return cost;
}

static struct cost cost_scan(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m;
    return (struct cost){.bytes = 12 * n->rays, .memory = 8 * n->rays};
}

static struct cost cost_sums(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double cells = pow(m->config->march.resolution, 3) * rays_time_bins(m->config);
    return cost_streaming(cells, 4 * cells);
}

static struct cost cost_threshold(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double cells = (double)m->counts.cells / rays_time_bins(m->config);
    double groups = fmin(ceil(cells / 4 / m->local_size), REDUCE_GROUPS);
    return cost_streaming(groups, 4 * groups);
}

/* The formula omits the bits of the next finer cascade, which an outer cascade also reads. */
static struct cost cost_pack(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double cells = (double)m->counts.cells;
    return cost_streaming(cells, 4 * cells + cells / 8 + 4 * cells / BLOCK);
}

/* Operations of sample_uniform. */
#define UNIFORM_SAMPLE 14 /* random number and position 7, ends of the bin 6, width 1 */
#define UNIFORM_RAY    27 /* cube 25, start and length of the bins 2 */

static struct cost cost_uniform_count(const struct cost_model *m, const struct cost_counts *n)
{
    (void)m;
    double ray = RAY_BYTES + 4 + 8; /* end; offset and number of samples */
    return cost_streaming(UNIFORM_RAY * n->rays, ray * n->rays);
}

static struct cost cost_uniform_write(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost = cost_uniform_count(m, n);
    cost.flops += UNIFORM_SAMPLE * n->marched;
    cost.bytes += sizeof(struct Sample) * n->marched;
    cost.memory = cost.bytes;
    return cost;
}

static struct cost cost_uniform(const struct cost_model *m, const struct cost_counts *n)
{
    struct cost cost = cost_uniform_write(m, n);
    cost.atomics = n->rays;
    return cost;
}

/* Operations of sample_fine per coarse, per fine and per any sample, without searches. */
#define FINE_COARSE 15 /* weight 13, cumulative sums 2 */
#define FINE_DRAWN  8  /* random number, inversion of the cumulative sums */
#define FINE_SAMPLE 20 /* position and width */

static struct cost cost_fine(const struct cost_model *m, const struct cost_counts *n)
{
    double ray = RAY_BYTES + 4 + 8 + 8; /* end; offset and number of coarse and fine samples */
    double total = m->constants->ray_samples + m->constants->fine_samples;
    double coarse = n->marched * m->constants->ray_samples / total, fine = n->marched - coarse;
    struct cost cost = cost_streaming(
        UNIFORM_RAY * n->rays + FINE_COARSE * coarse + FINE_DRAWN * fine + FINE_SAMPLE * n->marched,
        ray * n->rays + (4 + sizeof(struct Sample)) * coarse + sizeof(struct Sample) * n->marched);
    cost.atomics = n->rays;
    return cost;
}

static const struct pass generating[] = {
    {"generate_rays", .dispatch = DISPATCH_RAYS, .cost = cost_generate},
};
const struct pass_list rays_generating = PASS_LIST(generating);

/* Operations of sample_proposal, per bin of the proposal and per sample, without searches. */
#define PROPOSED_BIN    23 /* weight 13, annealed weight 8, cumulative sums 2 */
#define PROPOSED_SAMPLE 35 /* two edges, 16 each; midpoint and width 3 */

static struct cost cost_proposal(const struct cost_model *m, const struct cost_counts *n)
{
    double ray = RAY_BYTES + 4 + 8 + 8; /* end; offset and number of coarse and fine samples */
    double bins = n->rays * m->constants->ray_samples;
    struct cost cost = cost_streaming(
        UNIFORM_RAY * n->rays + PROPOSED_BIN * bins + PROPOSED_SAMPLE * n->marched,
        ray * n->rays + (4 + sizeof(struct Sample)) * bins + sizeof(struct Sample) * n->marched);
    cost.atomics = n->rays;
    return cost;
}

/* Deterministic runs assign offsets in BIND_SAMPLES by a scan, not by an atomic counter. */
static const struct pass sampling[] = {
    {"march_rays", .use = PASS_OCCUPANCY | PASS_NOT_DETERMINISTIC, .dispatch = DISPATCH_MARCH,
     .cost = cost_march},
    {"march_rays_count", .use = PASS_OCCUPANCY | PASS_DETERMINISTIC, .dispatch = DISPATCH_MARCH,
     .cost = cost_probes},
    {"sample_uniform", .use = PASS_UNIFORM | PASS_NOT_DETERMINISTIC, .dispatch = DISPATCH_MARCH,
     .cost = cost_uniform},
    {"sample_uniform_count", .use = PASS_UNIFORM | PASS_DETERMINISTIC, .dispatch = DISPATCH_MARCH,
     .cost = cost_uniform_count},
    {"scan_rays", .use = PASS_DETERMINISTIC, .dispatch = DISPATCH_SCAN, .cost = cost_scan},
    {"march_rays_write", .use = PASS_OCCUPANCY | PASS_DETERMINISTIC, .dispatch = DISPATCH_MARCH,
     .cost = cost_write},
    {"sample_uniform_write", .use = PASS_UNIFORM | PASS_DETERMINISTIC, .dispatch = DISPATCH_MARCH,
     .cost = cost_uniform_write},
};
const struct pass_list rays_sampling = PASS_LIST(sampling);

static const struct pass fine[] = {
    {"sample_fine", .use = PASS_HIERARCHICAL, .dispatch = DISPATCH_MARCH, .cost = cost_fine},
    {"sample_proposal", .use = PASS_PROPOSAL, .dispatch = DISPATCH_MARCH, .cost = cost_proposal},
};
const struct pass_list rays_fine = PASS_LIST(fine);

static const struct pass sums[] = {
    {"sum_cells", .dispatch = DISPATCH_OCCUPANCY, .cost = cost_sums},
};
const struct pass_list rays_sums = PASS_LIST(sums);

/* pack_occupancy goes outwards: a cascade also reads the bits of the cascade inside it. */
static const struct pass occupancy[] = {
    [RAYS_THRESHOLD] = {.name = "threshold_occupancy",
                        .dispatch = DISPATCH_THRESHOLD,
                        .cost = cost_threshold},
    [RAYS_PACK] = {.name = "pack_occupancy",
                   .dispatch = DISPATCH_PACK,
                   .loop = LOOP_CASCADES,
                   .cost = cost_pack},
};
const struct pass_list rays_occupancy = PASS_LIST(occupancy);

static struct cost cost_update_errors(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming(0, 2.0 * sizeof(struct ErrorCell) * m->constants->error_cells);
}

/* Operations of mark_outliers per cell: 25 cells around it 4 each, the decision 8. */
#define MARKED_CELL 108

static struct cost cost_outliers(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double cells = (double)m->constants->error_cells / OUTLIER_TURNS;
    return (struct cost){
        .flops = MARKED_CELL * cells,
        .bytes = 4 * 27 * cells,
        .memory = 2.0 * sizeof(struct ErrorCell) * cells,
    };
}

/* Leaves out the pixels, which are counted once per image. */
static struct cost cost_sum_errors(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double slots = m->constants->slot_count, cells = slots * m->constants->slot_cells;
    return cost_streaming(8 * cells, 12 * cells + (sizeof(struct Camera) + 12) * slots);
}

static struct cost cost_scan_errors(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming(3.0 * m->constants->slot_count, 24.0 * m->constants->slot_count);
}

static const struct pass errors[] = {
    {"update_errors", .dispatch = DISPATCH_OCCUPANCY, .cost = cost_update_errors},
    {"mark_outliers", .use = PASS_ROBUST, .dispatch = DISPATCH_OCCUPANCY, .cost = cost_outliers},
    {"sum_errors", .use = PASS_BY_ERROR, .dispatch = DISPATCH_MARCH, .cost = cost_sum_errors},
    {"scan_errors", .use = PASS_BY_ERROR, .dispatch = PASS_ONE_WORKGROUP, .cost = cost_scan_errors},
};
const struct pass_list rays_errors = PASS_LIST(errors);

/* Operations of view_gradients per sample, without subgroup sums. Pose: scale 6, rotation 15. Lens:
 * direction and gradient in the camera's axes 58, refined lens 14, distortion and its inverse
 * Jacobian 82, parameters 33; if poses change too, turning back 100. */
#define POSE_GRADIENT 21
#define LENS_GRADIENT 187
#define TURN_BACK     100

/* Returns whether the configuration refines lenses, or poses. */
static bool refines(const struct cost_model *m, uint32_t bit)
{
    return (rays_refine(m->config) & bit) != 0;
}

/* Assumes that each ray's samples are added together. */
static struct cost cost_view_gradients(const struct cost_model *m, const struct cost_counts *n)
{
    double read = 4 + sizeof(struct Sample) + 32, turned = refines(m, REFINE_POSES) ? TURN_BACK : 0;
    double lens = refines(m, REFINE_LENSES) ? sizeof(struct Camera) + 4.0 * LENS_PARAMETERS : 0;
    double sums = (refines(m, REFINE_POSES) ? 2 * VIEW_PARAMETERS + 1 : 0) +
                  (refines(m, REFINE_LENSES) ? 2 * LENS_SUMS + 1 : 0);
    if (m->config->scene.contraction == VKN_CONTRACTION_CUBE)
        read += 32; /* the field's values and their gradients */
    return (struct cost){
        .flops = (POSE_GRADIENT + (lens > 0 ? LENS_GRADIENT + turned : 0)) * n->live,
        .bytes = (read + sizeof(struct Ray) + lens) * n->live,
        .memory = read * n->live + sizeof(struct Ray) * n->rays +
                  lens * fmin(m->constants->view_count, n->rays),
        .atomics = sums * n->rays,
    };
}

/* Counts every view as a camera group of its own. */
static struct cost cost_update_views(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    double products = 0, bytes = 0;
    if (refines(m, REFINE_POSES)) {
        products += 2.0 * VIEW_PARAMETERS * (VIEW_PARAMETERS + VIEW_GAUGES);
        bytes += VIEW_PARAMETERS * sizeof(struct ErrorCell) + 4 * VIEW_GROUP;
    }
    if (refines(m, REFINE_LENSES)) {
        products += 2.0 * LENS_PARAMETERS * LENS_PARAMETERS;
        bytes += LENS_SUMS * sizeof(struct ErrorCell) + 4 * (VIEW_WORDS - VIEW_GROUP);
    }
    return cost_streaming(2 * products * m->constants->camera_count,
                          2 * bytes * m->constants->camera_count);
}

static const struct pass view_gradients[] = {
    {"view_gradients", .dispatch = DISPATCH_FORWARD, .cost = cost_view_gradients},
};
const struct pass_list rays_view_gradients = PASS_LIST(view_gradients);

static const struct pass views[] = {
    {"update_views", .dispatch = DISPATCH_THRESHOLD, .cost = cost_update_views},
};
const struct pass_list rays_views = PASS_LIST(views);

/* These passes have no cost formulas, because pictures are not profiled. */
static const struct pass viewing[] = {
    [RAYS_GENERATE_VIEW] = {.name = "generate_view_rays", .dispatch = DISPATCH_RAYS},
    [RAYS_MARCH_VIEW] = {.name = "march_view_rays", .dispatch = DISPATCH_MARCH},
    [RAYS_UNIFORM_VIEW] = {.name = "sample_view_uniform", .dispatch = DISPATCH_MARCH},
    [RAYS_FINE_VIEW] = {.name = "sample_view_fine", .dispatch = DISPATCH_MARCH},
    [RAYS_PROPOSAL_VIEW] = {.name = "sample_view_proposal", .dispatch = DISPATCH_MARCH},
};
const struct pass_list rays_viewing = PASS_LIST(viewing);

const struct pass *rays_view_samples(const struct vkn_config *config)
{
    return &viewing[rays_are_hierarchical(config) ? RAYS_FINE_VIEW
                    : rays_have_proposal(config)  ? RAYS_PROPOSAL_VIEW
                    : rays_use_grid(config)       ? RAYS_MARCH_VIEW
                                                  : RAYS_UNIFORM_VIEW];
}

const struct pass *rays_view_coarse(const struct vkn_config *config)
{
    return rays_have_coarse(config) ? &viewing[RAYS_UNIFORM_VIEW] : NULL;
}

const char rays_unseen_pass[] = "mark_unseen_cells";
