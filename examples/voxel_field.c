/* voxel_field SCENE [PICTURE.ppm]: a radiance field of one's own in plain C, trained through the parts of
 * the library (vknerf/stepper.h). The field is a dense grid of raw rgb and density with trilinear interpolation
 * between its points; it and its derivative are written here, rays, compositing, loss, occupancy grid and
 * Adam are the library's. Prints the PSNR of the test views, and writes a picture of the first.
 *
 *     cc voxel_field.c -o voxel_field $(pkg-config --cflags --libs vknerf) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vknerf/vknerf.h>

#define POINTS     64 /* along an edge of the cube */
#define STEPS      512
#define GRID_STEPS 16 /* from one update of the occupancy grid to the next */

struct voxels {
    float (*raw)[4];       /* the parameters: r, g, b before the sigmoid, logarithm of the density */
    float (*gradients)[4]; /* of the loss */
};

/* Where a place of the unit cube lies: the eight points around it, and the share that each has. */
struct corners {
    size_t points[8];
    float shares[8];
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
        corners.shares[i] = (x ? inside[0] : 1 - inside[0]) * (y ? inside[1] : 1 - inside[1]) *
                            (z ? inside[2] : 1 - inside[2]);
    }
    return corners;
}

/* r, g, b, density. */
static void evaluate(const struct voxels *voxels, const float position[3], float value[4])
{
    const struct corners corners = find_corners(position);
    float raw[4] = {0};
    for (size_t i = 0; i < 8; i++)
        for (size_t c = 0; c < 4; c++)
            raw[c] += corners.shares[i] * voxels->raw[corners.points[i]][c];
    for (size_t c = 0; c < 3; c++)
        value[c] = 1 / (1 + expf(-raw[c]));
    value[3] = expf(fminf(raw[3], 15.0f));
}

/* The chain rule from a value to the parameters behind it. */
static void add_gradients(const struct voxels *voxels, const float position[3], const float value[4],
                          const float by_value[4])
{
    const struct corners corners = find_corners(position);
    float by_raw[4];
    for (size_t c = 0; c < 3; c++)
        by_raw[c] = by_value[c] * value[c] * (1 - value[c]);
    by_raw[3] = by_value[3] * value[3];
    for (size_t i = 0; i < 8; i++)
        for (size_t c = 0; c < 4; c++)
            voxels->gradients[corners.points[i]][c] += corners.shares[i] * by_raw[c];
}

/* ---- what the library asks for ----------------------------------------------------------------- */

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

/* ---- training ------------------------------------------------------------------------------------ */

static vkn_status take_step(vkn_stepper *stepper, vkn_adam *adam, const struct voxels *voxels, uint32_t step)
{
    const struct vkn_samples *samples;
    const struct vkn_composited *composited;
    vkn_status status = step % GRID_STEPS == 0
                            ? vkn_stepper_update_grid(stepper, fill_densities, (void *)voxels)
                            : VKN_OK;
    if (status == VKN_OK)
        status = vkn_stepper_sample(stepper, &samples);
    if (status == VKN_OK)
        status = fill_values((void *)voxels, samples);
    if (status == VKN_OK)
        status = vkn_stepper_composite(stepper, &composited);
    if (status != VKN_OK)
        return status;
    const float(*positions)[3] = samples->positions.data;
    const float(*values)[4] = samples->values.data;
    const float(*gradients)[4] = composited->gradients.data;
    for (uint32_t i = 0; i < samples->count; i++)
        if (gradients[i][0] != 0 || gradients[i][1] != 0 || gradients[i][2] != 0 || gradients[i][3] != 0)
            add_gradients(voxels, positions[i], values[i], gradients[i]);
    if (step % 64 == 0)
        printf("step %4u  %5u rays  %5u samples  %5u live  training PSNR %.2f dB\n", step, samples->rays,
               samples->count, composited->live, -10 * log10((double)composited->square));
    return vkn_adam_step(adam, 0, NULL);
}

static vkn_status train(vkn_stepper *stepper, vkn_adam *adam, const struct voxels *voxels)
{
    vkn_status status = VKN_OK;
    for (size_t i = 0; i < (size_t)POINTS * POINTS * POINTS; i++)
        voxels->raw[i][3] = -1; /* grey, and thin everywhere */
    for (uint32_t step = 0; step < STEPS && status == VKN_OK; step++)
        status = take_step(stepper, adam, voxels, step);
    return status;
}

/* ---- what has become of it ----------------------------------------------------------------------- */

static vkn_status write_picture(const char *path, const struct vkn_picture *picture)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        fprintf(stderr, "%s: cannot be written\n", path);
        return VKN_ERROR;
    }
    fprintf(file, "P6 %u %u 255\n", picture->width, picture->height);
    for (size_t i = 0; i < (size_t)3 * picture->width * picture->height; i++)
        fputc((int)(picture->color[i] * 255 + 0.5f), file);
    return fclose(file) == 0 ? VKN_OK : VKN_ERROR;
}

#define VIEWS 10 /* of the test split */

static vkn_status evaluate_views(vkn_stepper *stepper, const struct voxels *voxels, const char *path)
{
    double sum = 0;
    for (uint32_t i = 0; i < VIEWS; i++) {
        const struct vkn_stepper_view view = {.size = sizeof view, .split = VKN_SPLIT_TEST, .view = i};
        struct vkn_picture picture;
        double psnr;
        vkn_status status = vkn_stepper_render(stepper, &view, fill_values, (void *)voxels, &picture, &psnr);
        if (status == VKN_OK && i == 0 && path)
            status = write_picture(path, &picture);
        vkn_picture_free(&picture);
        if (status != VKN_OK)
            return status;
        sum += psnr;
    }
    printf("PSNR %.2f dB, mean of %d test views\n", sum / VIEWS, VIEWS);
    return VKN_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: voxel_field SCENE [PICTURE.ppm]\n");
        return VKN_BAD_INPUT;
    }
    const struct vkn_stepper_params host = {.size = sizeof host, .host = true};
    const struct vkn_adam_params adam_params = {.size = sizeof adam_params,
                                                .count = 4 * POINTS * POINTS * POINTS,
                                                .entry = 4,
                                                .sparse = true,
                                                .host = true,
                                                .learning_rate = 0.2f};
    vkn_context *context = NULL;
    vkn_scene *scene = NULL;
    vkn_stepper *stepper = NULL;
    vkn_adam *adam = NULL;
    vkn_status status = vkn_context_create(NULL, &context);
    if (status == VKN_OK)
        status = vkn_scene_open(argv[1], NULL, &scene);
    if (status == VKN_OK)
        status = vkn_stepper_create(context, scene, NULL, &host, &stepper);
    if (status == VKN_OK)
        status = vkn_adam_create(context, &adam_params, &adam);
    if (status == VKN_OK) {
        const struct voxels voxels = {vkn_adam_parameters(adam)->data, vkn_adam_gradients(adam)->data};
        status = train(stepper, adam, &voxels);
        if (status == VKN_OK)
            status = evaluate_views(stepper, &voxels, argc > 2 ? argv[2] : NULL);
    }
    if (status != VKN_OK)
        fprintf(stderr, "voxel_field: %s\n", vkn_last_error());
    vkn_adam_destroy(&adam);
    vkn_stepper_destroy(&stepper);
    vkn_scene_close(&scene);
    vkn_context_destroy(&context);
    return (int)status;
}
