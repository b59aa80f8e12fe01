/* Trains a user's radiance field in plain C through parts of the library (vknerf/stepper.h): a
 * dense grid of raw rgb and density with trilinear interpolation. The field and its derivative are
 * computed here; rays, compositing, loss, occupancy grid and Adam are the library's.
 * cc voxel_field.c $(pkg-config --cflags --libs vknerf) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vknerf/vknerf.h>

#define POINTS     64 /* along an edge of the cube */
#define STEPS      512
#define GRID_STEPS 16 /* steps between updates of the occupancy grid */

struct voxels {
    float (*raw)[4]; /* the parameters: r, g, b before the sigmoid, logarithm of the density */
    float (*gradients)[4]; /* of the loss */
};

/* The eight grid points around a position in the unit cube, and their trilinear weights. */
struct corners {
    size_t points[8];
    float weights[8];
};

static struct corners find_corners(const float position[3])
{
    struct corners corners;
    size_t cell[3];
    float inside[3];
    for (int axis = 0; axis < 3; axis++) {
        float p = fminf(fmaxf(position[axis], 0.0f), 1.0f) * (POINTS - 1);
        cell[axis] = (size_t)fminf(p, POINTS - 2);
        inside[axis] = p - (float)cell[axis];
    }
    for (size_t i = 0; i < 8; i++) {
        size_t x = i & 1, y = i >> 1 & 1, z = i >> 2;
        corners.points[i] = cell[0] + x + POINTS * (cell[1] + y + POINTS * (cell[2] + z));
        corners.weights[i] = (x ? inside[0] : 1 - inside[0]) * (y ? inside[1] : 1 - inside[1]) *
                             (z ? inside[2] : 1 - inside[2]);
    }
    return corners;
}

/* Evaluates the field: r, g, b, density. */
static void evaluate(const struct voxels *voxels, const float position[3], float value[4])
{
    const struct corners corners = find_corners(position);
    float raw[4] = {0};
    for (size_t i = 0; i < 8; i++)
        for (size_t c = 0; c < 4; c++)
            raw[c] += corners.weights[i] * voxels->raw[corners.points[i]][c];
    for (size_t c = 0; c < 3; c++)
        value[c] = 1 / (1 + expf(-raw[c]));
    value[3] = expf(fminf(raw[3], 15.0f));
}

/* Adds gradients by the parameters for a gradient by a value, by the chain rule. */
static void add_gradients(const struct voxels *voxels, const float position[3],
                          const float value[4], const float by_value[4])
{
    const struct corners corners = find_corners(position);
    float by_raw[4];
    for (size_t c = 0; c < 3; c++)
        by_raw[c] = by_value[c] * value[c] * (1 - value[c]);
    by_raw[3] = by_value[3] * value[3];
    for (size_t i = 0; i < 8; i++)
        for (size_t c = 0; c < 4; c++)
            voxels->gradients[corners.points[i]][c] += corners.weights[i] * by_raw[c];
}

/* ---- callbacks of the library ---------------------------------------------------------------- */

static vkn_status fill_values(void *user, const struct vkn_samples *samples)
{
    const float(*positions)[3] = samples->positions.data;
    float(*values)[4] = samples->values.data;
    for (uint32_t i = 0; i < samples->count; i++)
        evaluate(user, positions[i], values[i]);
    return VKN_OK;
}

static vkn_status fill_densities(void *user, const struct vkn_samples *samples)
{
    const float(*positions)[3] = samples->positions.data;
    float *densities = samples->densities.data;
    for (uint32_t i = 0; i < samples->count; i++) {
        float value[4];
        evaluate(user, positions[i], value);
        densities[i] = value[3];
    }
    return VKN_OK;
}

/* ---- training -------------------------------------------------------------------------------- */

static void check(vkn_status status)
{
    if (status == VKN_OK)
        return;
    fprintf(stderr, "%s\n", vkn_last_error());
    exit(status);
}

static void take_step(vkn_stepper *stepper, vkn_adam *adam, struct voxels *voxels, uint32_t step)
{
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    if (step % GRID_STEPS == 0)
        check(vkn_stepper_update_grid(stepper, fill_densities, voxels));
    check(vkn_stepper_sample(stepper, &samples));
    check(fill_values(voxels, samples));
    check(vkn_stepper_composite(stepper, &composited));
    const float(*positions)[3] = samples->positions.data, (*values)[4] = samples->values.data;
    const float(*gradients)[4] = composited->gradients.data;
    for (uint32_t i = 0; i < samples->count; i++)
        if (gradients[i][0] != 0 || gradients[i][1] != 0 || gradients[i][2] != 0 ||
            gradients[i][3] != 0)
            add_gradients(voxels, positions[i], values[i], gradients[i]);
    check(vkn_adam_step(adam, 0, NULL));
    if (step % 64 == 0)
        printf("step %u: %u rays, %u samples, %u live, training PSNR %.2f dB\n", step,
               samples->rays, samples->count, composited->live,
               -10 * log10((double)composited->mean_square));
}

static void train(vkn_stepper *stepper, vkn_adam *adam, struct voxels *voxels)
{
    for (size_t i = 0; i < (size_t)POINTS * POINTS * POINTS; i++)
        voxels->raw[i][3] = -1; /* grey, and thin everywhere */
    for (uint32_t step = 0; step < STEPS; step++)
        take_step(stepper, adam, voxels, step);
}

/* Returns the PSNR in dB of a view rendered on white, compared with its photograph. */
static double render(vkn_stepper *stepper, vkn_scene *scene, struct voxels *voxels, size_t view,
                     const char *file)
{
    const struct vkn_picture_params params = {.background = VKN_BACKGROUND_WHITE};
    struct vkn_camera camera = {.size = sizeof camera};
    struct vkn_picture *picture, *photograph;
    check(vkn_scene_camera(scene, VKN_SPLIT_DEFAULT, view, &camera));
    check(vkn_scene_image(scene, VKN_SPLIT_DEFAULT, view, params.background, &photograph));
    check(vkn_stepper_render(stepper, &camera, &params, fill_values, voxels, &picture));
    double psnr = vkn_psnr(picture->color, photograph->color, photograph->used, picture->width,
                           picture->height);
    if (file)
        check(vkn_picture_write(picture, VKN_MAP_COLOR, file));
    vkn_picture_free(&picture);
    vkn_picture_free(&photograph);
    return psnr;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: voxel_field SCENE PICTURE.png\n"), VKN_BAD_INPUT;
    const struct vkn_stepper_params in_host_memory = {.size = sizeof in_host_memory, .host = true};
    const struct vkn_adam_params adam_params = {.size = sizeof adam_params,
                                                .count = 4 * POINTS * POINTS * POINTS,
                                                .entry = 4,
                                                .sparse = true,
                                                .host = true,
                                                .learning_rate = 0.2f};
    vkn_context *context;
    vkn_scene *scene;
    vkn_stepper *stepper;
    vkn_adam *adam;
    check(vkn_context_create(NULL, &context));
    check(vkn_scene_open(argv[1], NULL, &scene));
    check(vkn_stepper_create(context, scene, NULL, &in_host_memory, &stepper));
    check(vkn_adam_create(context, &adam_params, &adam));
    struct voxels voxels = {vkn_adam_parameters(adam)->data, vkn_adam_gradients(adam)->data};
    train(stepper, adam, &voxels);

    double sum = 0;
    size_t views = vkn_scene_view_count(scene, VKN_SPLIT_DEFAULT);
    for (size_t view = 0; view < views; view++)
        sum += render(stepper, scene, &voxels, view, view == 0 ? argv[2] : NULL);
    printf("PSNR %.2f dB, mean of %zu test views\n", sum / (double)views, views);

    vkn_adam_destroy(&adam);
    vkn_stepper_destroy(&stepper);
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    return 0;
}
