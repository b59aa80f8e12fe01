/* Finds out whether the exposures of images differ: by EXIF data, or because the brightness jumps
 * from view to neighbouring view. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene/space.h"

#define MOST_PAIRS  16u  /* evenly spaced training views that are compared with a neighbour */
#define LEAST_VIEWS 8u   /* fewer images do not tell exposures from contents */
#define SMALL_IMAGE 128u /* smallest longer side of a reduced image, pixels */
#define LEAST_LIGHT 1e-3 /* of a mean colour, so that black images have a logarithm */
#define FILE_SHARE  0.75 /* least share of views whose files give an exposure */
#define SAME_FILES  0.3  /* stops: files whose exposures differ less count as equal */
/* Upper quartiles of the jumps, in stops. Captures with fixed exposure have up to 0.16 in
 * brightness and 0.08 in colour, a third of the images a stop brighter and a third darker 0.9. */
#define SAME_LIGHT  0.35
#define SAME_COLOR  0.35

double scene_linear_light(double value)
{
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

float scene_relative_exposure(const struct scene_split *split, const struct scene_camera *camera)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < split->camera_count && camera->has_exposure; i++) {
        sum += split->cameras[i].has_exposure ? (double)split->cameras[i].exposure : 0;
        count += split->cameras[i].has_exposure ? 1 : 0;
    }
    if (count == 0)
        return 0;
    float relative = (float)((double)camera->exposure - sum / count);
    return fminf(fmaxf(relative, -SCENE_MOST_EXPOSURE), SCENE_MOST_EXPOSURE);
}

/* ---- image files ----------------------------------------------------------------------------- */

/* Returns the range of the exposures that the files give; 0 if few files give one. */
static double range_of_files(const struct scene_split *train)
{
    float least = INFINITY, most = -INFINITY;
    size_t known = 0;
    for (size_t i = 0; i < train->camera_count; i++) {
        const struct scene_camera *camera = &train->cameras[i];
        if (!camera->has_exposure)
            continue;
        known++;
        least = fminf(least, camera->exposure);
        most = fmaxf(most, camera->exposure);
    }
    bool enough = known > 0 && (double)known >= FILE_SHARE * (double)train->camera_count;
    return enough ? (double)(most - least) : 0;
}

/* ---- brightness ------------------------------------------------------------------------------ */

/* A view and its neighbour: logarithms of their mean linear colours, to base 2. */
struct pair {
    size_t views[2];
    double light[2][3];
    bool is_known;
};

struct pairs {
    const struct vkn_scene *scene;
    struct pair list[MOST_PAIRS];
    size_t count;
};

/* Returns the distance of two poses in a column of their matrices: 2, direction; 3, position. */
static double pose_distance(const float a[12], const float b[12], int column)
{
    double squared = 0;
    for (int k = 0; k < 3; k++)
        squared += pow((double)a[4 * k + column] - (double)b[4 * k + column], 2);
    return sqrt(squared);
}

/* Returns the view that is nearest in position, in units of the views' mean distance, plus
 * direction. */
static size_t neighbour_of(const struct scene_split *train, size_t view)
{
    const float *pose = train->cameras[view].pose;
    size_t nearest = view;
    double least = HUGE_VAL, mean = 0;
    for (size_t i = 0; i < train->camera_count; i++)
        mean += pose_distance(pose, train->cameras[i].pose, 3) / (double)train->camera_count;
    for (size_t i = 0; i < train->camera_count; i++) {
        const float *other = train->cameras[i].pose;
        double distance =
            pose_distance(pose, other, 3) / fmax(mean, 1e-9) + pose_distance(pose, other, 2);
        if (i != view && distance < least) {
            least = distance;
            nearest = i;
        }
    }
    return nearest;
}

/* Measures the mean light of a view's pixels that are mostly opaque. Returns false without any. */
static bool measure_light(const struct vkn_scene *scene, size_t view, double light[3])
{
    struct scene_camera camera;
    uint32_t *pixels = scene_read_small(scene, view, SMALL_IMAGE, &camera);
    size_t count = pixels ? (size_t)camera.width * camera.height : 0, used = 0;
    double sums[3] = {0};
    for (size_t i = 0; i < count; i++) {
        uint32_t alpha = pixels[i] >> 24;
        if (pixels[i] == SCENE_IGNORED || alpha < 128)
            continue;
        used++;
        for (int c = 0; c < 3; c++)
            sums[c] += scene_linear_light((pixels[i] >> (8 * c) & 255) / (double)alpha);
    }
    free(pixels);
    for (int c = 0; c < 3 && used > 0; c++)
        light[c] = log2(fmax(sums[c] / (double)used, LEAST_LIGHT));
    return used > 0;
}

/* Measures a pair. Ignores errors, since loading reports broken images. */
static vkn_status measure_pair(void *context, size_t number)
{
    BASE_KEEP_ERROR;
    struct pairs *pairs = context;
    struct pair *pair = &pairs->list[number];
    const struct scene_split *train = &pairs->scene->splits[SCENE_TRAIN];
    pair->views[0] = number * train->camera_count / pairs->count;
    pair->views[1] = neighbour_of(train, pair->views[0]);
    pair->is_known = measure_light(pairs->scene, pair->views[0], pair->light[0]) &&
                     measure_light(pairs->scene, pair->views[1], pair->light[1]);
    return VKN_OK;
}

/* Sets the upper quartiles of the jumps of brightness and of colour. */
static void judge_pairs(const struct pairs *pairs, struct scene_exposures *exposures)
{
    double light[MOST_PAIRS], color[MOST_PAIRS];
    size_t known = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *pair = &pairs->list[i];
        double jump[3];
        if (!pair->is_known)
            continue;
        for (int c = 0; c < 3; c++)
            jump[c] = pair->light[1][c] - pair->light[0][c];
        light[known] = fabs(jump[0] + jump[1] + jump[2]) / 3;
        color[known++] = fmax(fabs(jump[0] - jump[1]), fabs(jump[2] - jump[1]));
    }
    if (2 * known < LEAST_VIEWS)
        return;
    exposures->light = space_quantile(light, known, 0.75);
    exposures->color = space_quantile(color, known, 0.75);
}

void scene_find_exposures(struct vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct pairs pairs = {.scene = scene, .count = train->camera_count};
    scene->exposures = (struct scene_exposures){.files = range_of_files(train)};
    if (pairs.count < LEAST_VIEWS) /* too few to compare brightness */
        return;
    pairs.count = pairs.count < MOST_PAIRS ? pairs.count : MOST_PAIRS;
    (void)base_parallel(pairs.count, measure_pair, &pairs, NULL);
    judge_pairs(&pairs, &scene->exposures);
}

enum vkn_appearance scene_default_appearance(const struct vkn_scene *scene)
{
    const struct scene_exposures *exposures = &scene->exposures;
    bool differ = exposures->files > SAME_FILES || exposures->light > SAME_LIGHT;
    return exposures->color > SAME_COLOR ? VKN_APPEARANCE_FULL
           : differ                      ? VKN_APPEARANCE_EXPOSURE
                                         : VKN_APPEARANCE_OFF;
}

bool scene_describe_exposures(const struct vkn_scene *scene, char text[128])
{
    const struct scene_exposures *exposures = &scene->exposures;
    if (exposures->color > SAME_COLOR)
        snprintf(text, 128, "white balance differs: colours of neighbouring images by %.2f stops",
                 exposures->color);
    else if (exposures->files > SAME_FILES)
        snprintf(text, 128, "exposures differ: by %.1f stops in the image files", exposures->files);
    else
        snprintf(text, 128, "exposures differ: brightness of neighbouring images by %.2f stops",
                 exposures->light);
    return scene_default_appearance(scene) != VKN_APPEARANCE_OFF;
}
