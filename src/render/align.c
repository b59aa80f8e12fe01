/* Aligns the pose of a view with the field on one half of its image, and measures the PSNR on the
 * other half.
 *
 * Direct image alignment (Baker and Matthews, Lucas-Kanade 20 years on, 2004; Engel, Koltun and
 * Cremers, Direct sparse odometry, 2018) takes Gauss-Newton steps, from coarse to fine, whose
 * derivatives follow from the rendered picture's gradient and depth. It only renders pictures, so
 * that the field cannot change, and works with every model, sampling and precision. */
#include "render/internal.h"

#include <math.h>
#include <string.h>

#include "report/report.h"

/* The halves are the two colours of a chessboard: both have pixels all over the image, so that each
 * half determines all six parameters of the pose. With a left and a right half, a rotation could
 * stand in for a translation. Blocks are large, because errors of neighbouring pixels correlate. */
#define BLOCKS 8u /* along each edge of the image */
#define HALVES 2u

#define LEAST_SIDE 16u /* pixels of the shorter side of the coarsest image */
#define MOST_STEPS 12  /* on each level, including steps that were taken back */

/* In pixels of the level. On coarse levels shorter steps than LEAST_COARSE are left to finer ones.
 */
#define LONGEST_STEP 2.0
#define LEAST_COARSE 0.25
#define LEAST_STEP   0.01

#define LEAST_GAIN 2e-3 /* part of the error that a step has to take away: 0.01 dB */
#define MOST_MORE                                                                            \
    4               /* times as much as expected is taken away: pictures have detail between \
                       pixels, of which their gradient knows nothing */
#define RIDGE  1e-3 /* part of the parameters' mean stiffness that is added to each one's */
#define MARGIN 2    /* pixels at the borders, where the picture's gradient is unknown */
#define BANDS  64u  /* of rows, whose equations are summed in parallel */

/* Sums over pixels and channels, with respect to the latent parameters: products of derivatives,
 * and of derivatives and differences. */
struct equations {
    double products[SCENE_POSE][SCENE_POSE], differences[SCENE_POSE];
};

/* A picture at a pose, and its error on the half that aligns the pose. */
struct trial {
    struct scene_camera camera; /* of the level's size */
    struct vkn_picture picture;
    double error; /* sum of squared differences */
};

/* A view whose pose is being aligned on one half of its image. */
struct alignment {
    const struct render_evaluation *request;
    const struct scene_whitening *whitening; /* of the view's pose as given */
    struct vkn_picture image;
    unsigned half;
    uint32_t shrink;           /* of the current level */
    struct vkn_picture target; /* the level's image; `used` is 0 outside of the half */
    struct trial current, next;
    struct equations bands[BANDS];
};

static unsigned half_of(const struct vkn_picture *image, size_t x, size_t y)
{
    return (x * BLOCKS / image->width + y * BLOCKS / image->height) % HALVES;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Averages `shrink` x `shrink` pixels of the image; they count if all are used and in the half. */
static void shrink_pixel(struct alignment *a, size_t index)
{
    const struct vkn_picture *image = &a->image;
    const float weight = 1.0F / (float)(a->shrink * a->shrink);
    size_t x0 = index % a->target.width * a->shrink, y0 = index / a->target.width * a->shrink;
    a->target.used[index] = 1;
    for (size_t y = y0; y < y0 + a->shrink; y++)
        for (size_t x = x0; x < x0 + a->shrink; x++) {
            size_t pixel = y * image->width + x;
            if (!image->used[pixel] || half_of(image, x, y) != a->half)
                a->target.used[index] = 0;
            for (size_t c = 0; c < 3; c++)
                a->target.color[3 * index + c] += weight * image->color[3 * pixel + c];
        }
}

static vkn_status shrink_target(struct alignment *a)
{
    struct vkn_picture *target = &a->target;
    render_picture_free(target);
    target->width = a->image.width / a->shrink;
    target->height = a->image.height / a->shrink;
    size_t count = (size_t)target->width * target->height;
    target->color = base_alloc(count, 3 * sizeof *target->color);
    target->used = base_alloc(count, 1);
    for (size_t i = 0; i < count && target->color && target->used; i++)
        shrink_pixel(a, i);
    return target->color && target->used ? VKN_OK : VKN_ERROR;
}

/* Returns the squared difference of a pixel, summed over the channels. */
static double squared_difference(const struct vkn_picture *picture,
                                 const struct vkn_picture *target, size_t pixel)
{
    double sum = 0;
    for (size_t c = 3 * pixel; c < 3 * pixel + 3; c++) {
        double difference = (double)picture->color[c] - (double)target->color[c];
        sum += difference * difference;
    }
    return sum;
}

static vkn_status render_trial(const struct alignment *a, struct trial *trial)
{
    if (base_stop_asked(a->request->stop))
        return base_fail(VKN_INTERRUPTED, "interrupted while views were aligned");
    render_picture_free(&trial->picture);
    BASE_TRY(render_picture(a->request->renderer, &trial->camera, a->request->background, 1,
                            &trial->picture));
    trial->error = 0;
    for (size_t i = 0; i < (size_t)a->target.width * a->target.height; i++)
        trial->error += a->target.used[i] ? squared_difference(&trial->picture, &a->target, i) : 0;
    return VKN_OK;
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* Returns how much of a ray's light comes from its depth, divided by the distance: how fast the
 * pixel moves with the camera. 0 for the empty background. */
static double nearness(const struct alignment *a, size_t pixel, double along_axis)
{
    const struct trial *trial = &a->current;
    double depth = (double)trial->picture.depth[pixel] *
                   vkn_renderer_config(a->request->renderer)->scene.scale;
    if (scene_is_perspective(trial->camera.lens))
        depth /= along_axis;
    return depth > 0 ? (double)trial->picture.opacity[pixel] / depth : 0;
}

/* The geometry of a pixel. */
struct pixel {
    size_t index;
    double direction[3];  /* of its ray */
    double inverse[2][3]; /* derivatives of the pixel's position with respect to the direction */
    double nearness;      /* the largest of the pixel and its neighbours: edges move with what is in
                             front */
};

/* Computes the derivatives of a direction with respect to the pixel's position, and inverts them in
 * the plane across the direction. Returns false where the lens has no rays. */
static bool find_directions(const struct scene_camera *camera, size_t column, size_t row,
                            struct pixel *pixel)
{
    double x = (double)column, y = (double)row, origin[3], edges[4][3], by[2][3], products[3] = {0};
    if (!scene_camera_ray(camera, x + 0.5, y + 0.5, origin, pixel->direction) ||
        !scene_camera_ray(camera, x, y + 0.5, origin, edges[0]) ||
        !scene_camera_ray(camera, x + 1, y + 0.5, origin, edges[1]) ||
        !scene_camera_ray(camera, x + 0.5, y, origin, edges[2]) ||
        !scene_camera_ray(camera, x + 0.5, y + 1, origin, edges[3]))
        return false;
    for (int i = 0; i < 3; i++) {
        by[0][i] = edges[1][i] - edges[0][i];
        by[1][i] = edges[3][i] - edges[2][i];
        products[0] += by[0][i] * by[0][i];
        products[1] += by[0][i] * by[1][i];
        products[2] += by[1][i] * by[1][i];
    }
    double determinant = products[0] * products[2] - products[1] * products[1];
    if (!(determinant > 1e-12 * products[0] * products[2]))
        return false;
    for (int i = 0; i < 3; i++) {
        pixel->inverse[0][i] = (products[2] * by[0][i] - products[1] * by[1][i]) / determinant;
        pixel->inverse[1][i] = (products[0] * by[1][i] - products[1] * by[0][i]) / determinant;
    }
    return true;
}

static bool find_pixel(const struct alignment *a, size_t column, size_t row, struct pixel *pixel)
{
    const struct trial *trial = &a->current;
    const size_t width = trial->camera.width, index = row * width + column;
    const size_t neighbours[] = {index, index - 1, index + 1, index - width, index + width};
    double along_axis = 0;
    if (!a->target.used[index] || !find_directions(&trial->camera, column, row, pixel))
        return false;
    for (int i = 0; i < 3; i++)
        along_axis -= pixel->direction[i] * (double)trial->camera.pose[4 * i + 2];
    pixel->index = index;
    pixel->nearness = 0;
    for (size_t n = 0; n < BASE_COUNT(neighbours); n++)
        pixel->nearness = fmax(pixel->nearness, nearness(a, neighbours[n], along_axis));
    return true;
}

/* Returns the derivative of a channel along a row or column, to fourth order: central differences
 * alone underestimate the derivative of fine detail, and steps would be too long. */
static double derivative(const float *value, ptrdiff_t stride)
{
    return (8 * ((double)value[stride] - (double)value[-stride]) -
            ((double)value[2 * stride] - (double)value[-2 * stride])) /
           12;
}

/* Adds the pixel's three channels. A camera that turns by w and moves by s changes the colour of
 * direction d by q . (w x d + s / t), where q is the picture's gradient with respect to d. */
static void add_pixel(const struct alignment *a, const struct pixel *pixel, struct equations *sums)
{
    const struct vkn_picture *picture = &a->current.picture;
    const double *d = pixel->direction;
    for (size_t c = 3 * pixel->index; c < 3 * pixel->index + 3; c++) {
        double u = derivative(&picture->color[c], 3);
        double v = derivative(&picture->color[c], 3 * (ptrdiff_t)picture->width), q[3];
        for (int i = 0; i < 3; i++)
            q[i] = u * pixel->inverse[0][i] + v * pixel->inverse[1][i];
        const double by_pose[SCENE_POSE] = {d[1] * q[2] - d[2] * q[1], d[2] * q[0] - d[0] * q[2],
                                            d[0] * q[1] - d[1] * q[0], pixel->nearness * q[0],
                                            pixel->nearness * q[1],    pixel->nearness * q[2]};
        double by[SCENE_POSE] = {0};
        for (int i = 0; i < SCENE_POSE; i++)
            for (int p = 0; p < SCENE_POSE; p++)
                by[i] += a->whitening->whitening[p][i] * by_pose[p];
        double difference = (double)a->target.color[c] - (double)picture->color[c];
        for (int i = 0; i < SCENE_POSE; i++) {
            sums->differences[i] += by[i] * difference;
            for (int k = 0; k < SCENE_POSE; k++)
                sums->products[i][k] += by[i] * by[k];
        }
    }
}

/* Sums the equations of a band of rows; called by base_parallel. */
static vkn_status add_band(void *context, size_t band)
{
    struct alignment *a = context;
    const size_t width = a->target.width, rows = a->target.height - 2 * MARGIN;
    struct equations *sums = &a->bands[band];
    *sums = (struct equations){0};
    for (size_t y = MARGIN + band * rows / BANDS; y < MARGIN + (band + 1) * rows / BANDS; y++)
        for (size_t x = MARGIN; x + MARGIN < width; x++) {
            struct pixel pixel;
            if (find_pixel(a, x, y, &pixel))
                add_pixel(a, &pixel, sums);
        }
    return VKN_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Solves positive definite equations by elimination. */
static void solve(struct equations *e, double solution[SCENE_POSE])
{
    for (int p = 0; p < SCENE_POSE; p++)
        for (int i = p + 1; i < SCENE_POSE; i++) {
            double factor = e->products[i][p] / e->products[p][p];
            e->differences[i] -= factor * e->differences[p];
            for (int k = p; k < SCENE_POSE; k++)
                e->products[i][k] -= factor * e->products[p][k];
        }
    for (int p = SCENE_POSE - 1; p >= 0; p--) {
        double rest = e->differences[p];
        for (int k = p + 1; k < SCENE_POSE; k++)
            rest -= e->products[p][k] * solution[k];
        solution[p] = rest / e->products[p][p];
    }
}

/* Sums the equations of all pixels, with the ridge. */
static struct equations sum_equations(const struct alignment *a)
{
    struct equations sums = {0};
    double trace = 0;
    for (size_t band = 0; band < BANDS; band++)
        for (int i = 0; i < SCENE_POSE; i++) {
            sums.differences[i] += a->bands[band].differences[i];
            for (int k = 0; k < SCENE_POSE; k++)
                sums.products[i][k] += a->bands[band].products[i][k];
        }
    for (int i = 0; i < SCENE_POSE; i++)
        trace += sums.products[i][i];
    for (int i = 0; i < SCENE_POSE; i++)
        sums.products[i][i] += RIDGE / SCENE_POSE * trace;
    return sums;
}

/* A change of the latent parameters. */
struct pose_step {
    double latent[SCENE_POSE];
    double length; /* in pixels of the level, at most LONGEST_STEP */
    double gain;   /* part of the error that the step takes away by the linear equations */
};

/* Computes the next step. It is 0 where nothing in the half determines the pose. */
static vkn_status find_step(struct alignment *a, struct pose_step *step)
{
    double squared = 0, gain = 0;
    *step = (struct pose_step){0};
    if (a->target.width <= 2 * MARGIN || a->target.height <= 2 * MARGIN)
        return VKN_OK;
    BASE_TRY(base_parallel(BANDS, add_band, a, NULL));
    struct equations sums = sum_equations(a), reduced = sums;
    solve(&reduced, step->latent);
    for (int i = 0; i < SCENE_POSE; i++) {
        squared += step->latent[i] * step->latent[i];
        gain += step->latent[i] * sums.differences[i];
    }
    double length = sqrt(squared) / a->shrink;
    if (!(length > 0 && length < HUGE_VAL))
        return VKN_OK;
    step->length = fmin(length, LONGEST_STEP);
    step->gain = gain / a->current.error;
    for (int i = 0; i < SCENE_POSE; i++)
        step->latent[i] *= step->length / length;
    return VKN_OK;
}

/* Renders a->next after a step from a->current. */
static vkn_status try_step(struct alignment *a, const struct pose_step *step, double factor)
{
    float pose[SCENE_POSE];
    for (int p = 0; p < SCENE_POSE; p++) {
        double sum = 0;
        for (int k = 0; k < SCENE_POSE; k++)
            sum += a->whitening->whitening[p][k] * step->latent[k];
        pose[p] = (float)(factor * sum);
    }
    a->next.camera = a->current.camera;
    scene_move_camera(&a->next.camera, pose, pose + 3);
    return render_trial(a, &a->next);
}

/* Replaces a->current by a->next if its error is lower. Returns the part of the error that is gone.
 */
static double keep_better(struct alignment *a)
{
    struct trial before = a->current;
    if (!(a->next.error < before.error))
        return 0;
    a->current = a->next;
    a->next = before;
    return 1 - a->current.error / before.error;
}

/* Moves a->current until its error falls no more. Steps that raise the error are shortened. */
static vkn_status take_steps(struct alignment *a)
{
    const double least = a->shrink > 1 ? LEAST_COARSE : LEAST_STEP;
    struct pose_step step;
    double factor = 1;
    for (int i = 0; i < MOST_STEPS; i++) {
        BASE_TRY(find_step(a, &step));
        if (factor * step.length < least || factor * step.gain * MOST_MORE < LEAST_GAIN)
            break;
        BASE_TRY(try_step(a, &step, factor));
        double gain = keep_better(a);
        if (gain > 0 && gain < LEAST_GAIN)
            break;
        factor = gain > 0 ? 1 : factor / 4;
    }
    return VKN_OK;
}

static bool have_same_pose(const struct scene_camera *a, const struct scene_camera *b)
{
    bool same = true;
    for (size_t i = 0; i < BASE_COUNT(a->pose); i++)
        same = same && a->pose[i] == b->pose[i];
    return same;
}

/* Begins a level with the image and the picture at the camera's pose. */
static vkn_status begin_level(struct alignment *a, uint32_t shrink,
                              const struct scene_camera *camera)
{
    a->shrink = shrink;
    a->current.camera = scene_shrink_camera(camera, shrink);
    BASE_TRY(shrink_target(a));
    return render_trial(a, &a->current);
}

/* Aligns the pose from coarse to fine. a->current ends at the aligned pose, in full size. There the
 * error is no higher than at the given pose: coarse pictures may mislead. */
static vkn_status align_half(struct alignment *a, const struct scene_camera *given)
{
    uint32_t side = given->width < given->height ? given->width : given->height, shrink = 1;
    struct scene_camera camera = *given;
    while (side / (2 * shrink) >= LEAST_SIDE)
        shrink *= 2;
    for (; shrink > 1; shrink /= 2) {
        BASE_TRY(begin_level(a, shrink, &camera));
        BASE_TRY(take_steps(a));
        memcpy(camera.pose, a->current.camera.pose, sizeof camera.pose);
    }
    BASE_TRY(begin_level(a, 1, given));
    if (!have_same_pose(&camera, given)) {
        a->next.camera = camera;
        BASE_TRY(render_trial(a, &a->next));
        keep_better(a);
    }
    return take_steps(a);
}

/* Adds the squared differences of the pixels that did not align the pose. */
static void measure_rest(const struct alignment *a, double *sum, size_t *count)
{
    const struct vkn_picture *image = &a->image;
    for (size_t i = 0; i < (size_t)image->width * image->height; i++)
        if (image->used[i] && half_of(image, i % image->width, i / image->width) != a->half) {
            *sum += squared_difference(&a->current.picture, image, i);
            *count += 1;
        }
}

vkn_status render_align_view(const struct render_evaluation *request, size_t view,
                             const struct scene_camera *camera,
                             const struct scene_whitening *whitening,
                             struct render_aligned *aligned)
{
    struct alignment a = {.request = request, .whitening = whitening};
    double sum = 0;
    size_t count = 0;
    vkn_status status = render_read_photograph(request->scene, request->split, view,
                                               render_background_grey(request), &a.image);
    for (a.half = 0; a.half < HALVES && status == VKN_OK; a.half++) {
        status = align_half(&a, camera);
        if (status == VKN_OK)
            measure_rest(&a, &sum, &count);
        aligned->cameras[a.half] = a.current.camera;
    }
    aligned->psnr = count > 0 ? report_psnr(sum / (3.0 * (double)count)) : (double)NAN;
    render_picture_free(&a.image);
    render_picture_free(&a.target);
    render_picture_free(&a.current.picture);
    render_picture_free(&a.next.picture);
    return status;
}
