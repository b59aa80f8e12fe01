#include "view.h"

#include "exact.h"
#include "shade.h"

#define CAMERA_DISTANCE  4.0
#define RING_RADIUS      2.6
#define SAMPLES_PER_SIDE 4
#define SAMPLES          (SAMPLES_PER_SIDE * SAMPLES_PER_SIDE)
#define FIRST_SAMPLES    4

/* Camera that looks at the origin from an azimuth (radians) and sine of the elevation. */
static view look(double azimuth, double sine)
{
    double cosine = sqrt(1.0 - sine * sine);
    double ca = exact_cos(azimuth), sa = exact_sin(azimuth);
    view v;
    v.back = vec(cosine * ca, cosine * sa, sine);
    v.right = vec(-sa, ca, 0.0);
    v.up = vec_cross(v.back, v.right);
    v.position = vec_scale(v.back, CAMERA_DISTANCE);
    return v;
}

view view_train(int index, int count)
{
    /* Equal steps of height are equal areas on a sphere; azimuths differ by the golden angle. */
    const double golden_angle = EXACT_PI * (3.0 - sqrt(5.0));
    return look(golden_angle * index, mix(0.04, 0.97, (index + 0.5) / count));
}

view view_moving(int index, int count)
{
    /* The sequence R2 of Roberts (2018), "The unreasonable effectiveness of quasirandom sequences",
     * which together with the index is evenly distributed in three dimensions. */
    const double turn = 0.7548776662466927, rise = 0.5698402909980532;
    double height = 0.5 + rise * index;
    (void)count;
    return look(2.0 * EXACT_PI * turn * index, mix(0.04, 0.97, height - floor(height)));
}

view view_test(int index, int count)
{
    double t = (index + 0.5) / count;
    return look(2.0 * EXACT_PI * t - 2.0, mix(0.20, 0.75, t));
}

static view on_ring(double azimuth, int index, int count)
{
    static const double sines[] = {0.15, -0.2, -0.8}; /* of how far the camera looks down */
    view v = look(azimuth, sines[index % 3]);
    v.position = vec(RING_RADIUS * exact_cos(azimuth), RING_RADIUS * exact_sin(azimuth),
                     mix(-0.2, 0.5, (index + 0.5) / count));
    return v;
}

view view_outdoors(int index, int count)
{
    return on_ring(EXACT_PI * (3.0 - sqrt(5.0)) * index, index, count);
}

view view_outdoors_test(int index, int count)
{
    return on_ring(2.0 * EXACT_PI * (index + 0.5) / count, index, count);
}

double view_angle(const geometry_scene *scene)
{
    return scene->outdoors ? 1.2 : 0.6911;
}

double view_gain(int index)
{
    return 1.25 * exact_exp(-0.22 * (2.0 + exact_sin(0.23 * index) + exact_sin(1.9 * index)));
}

/* First four samples, one in each row and column of the 4x4 grid, then the other twelve. */
static const int sample_order[SAMPLES] = {1, 7, 8, 14, 0, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 15};

/* Parameters of an image. */
typedef struct shot {
    const geometry_scene *scene;
    const view *camera;
    double half_width; /* of the image at distance 1 */
    int size;
} shot;

static radiance sample(const shot *s, int x, int y, int which)
{
    int column = which % SAMPLES_PER_SIDE, row = which / SAMPLES_PER_SIDE;
    double u = x + (column + 0.5) / SAMPLES_PER_SIDE, v = y + (row + 0.5) / SAMPLES_PER_SIDE;
    vec3 d = vec_scale(s->camera->back, -1.0);
    d = vec_along(d, s->camera->right, s->half_width * (2.0 * u / s->size - 1.0));
    d = vec_along(d, s->camera->up, s->half_width * (1.0 - 2.0 * v / s->size));
    return shade_ray(s->scene, s->camera->position, vec_normalize(d));
}

static double difference(radiance a, radiance b)
{
    double color = max2(fabs(a.color.x - b.color.x),
                        max2(fabs(a.color.y - b.color.y), fabs(a.color.z - b.color.z)));
    return max2(color, fabs(a.alpha - b.alpha));
}

static void add(radiance *sum, radiance r)
{
    sum->color = vec_add(sum->color, r.color);
    sum->alpha += r.alpha;
}

/* Box filter over the pixel. Averages premultiplied sRGB values, not linear light: a radiance field
 * trained on the images composites in sRGB, so it can reproduce only this average at edges, where a
 * ray sees a blend of two surfaces. */
static radiance pixel(const shot *s, int x, int y)
{
    radiance first = sample(s, x, y, sample_order[0]), sum = first;
    double spread = 0.0;
    for (int i = 1; i < FIRST_SAMPLES; i++) {
        radiance r = sample(s, x, y, sample_order[i]);
        spread = max2(spread, difference(r, first));
        add(&sum, r);
    }
    int count = FIRST_SAMPLES;
    /* Most pixels are uniform and need no more samples. */
    if (spread > 8.0 / 255.0) {
        for (; count < SAMPLES; count++)
            add(&sum, sample(s, x, y, sample_order[count]));
    }
    sum.color = vec_scale(sum.color, 1.0 / count);
    sum.alpha /= count;
    return sum;
}

static unsigned char to_byte(double v)
{
    return (unsigned char)floor(clamp(v, 0.0, 1.0) * 255.0 + 0.5);
}

void view_render(const geometry_scene *scene, const view *camera, double gain, int size,
                 unsigned char *rgba)
{
    const shot s = {scene, camera, exact_tan(view_angle(scene) / 2.0), size};
    for (int y = 0; y < size; y++) {
        for (int x = 0; x < size; x++, rgba += 4) {
            radiance r = pixel(&s, x, y);
            unsigned char alpha = to_byte(r.alpha);
            /* Straight alpha: divides by the stored alpha, so that compositing is exact. */
            double scale = alpha > 0 ? gain * (255.0 / alpha) : 0.0;
            rgba[0] = to_byte(r.color.x * scale);
            rgba[1] = to_byte(r.color.y * scale);
            rgba[2] = to_byte(r.color.z * scale);
            rgba[3] = alpha;
        }
    }
}

void view_render_sky(int size, unsigned char *rgba)
{
    const geometry_scene empty = {.outdoors = 1};
    for (int y = 0; y < size; y++) {
        double angle = 0.5 * EXACT_PI * (y + 0.5) / size;
        for (int x = 0; x < size; x++, rgba += 4) {
            double azimuth = 2.0 * EXACT_PI * (x + 0.5) / size;
            vec3 d = vec(exact_sin(angle) * exact_cos(azimuth),
                         exact_sin(angle) * exact_sin(azimuth), exact_cos(angle));
            radiance r = shade_ray(&empty, vec(0.0, 0.0, 0.0), d);
            rgba[0] = to_byte(r.color.x);
            rgba[1] = to_byte(r.color.y);
            rgba[2] = to_byte(r.color.z);
            rgba[3] = 255;
        }
    }
}
