/* Tests the box of the object that cameras look at, on rings of cameras around a cube in a room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "scene/camera_path.h"

#define VIEWS  60u
#define OBJECT 3000u  /* points on the cube */
#define WALLS  7000u  /* points on the walls */
#define HALF   0.1037 /* half of the cube's edge */
#define ROOM   2.5    /* half of the room's edge */

static const double middle[3] = {0.55, 0.4, 0.5};

/* A ring of pinhole cameras at the distance 1 from the middle, over an angle, and points. */
struct room {
    struct scene_camera cameras[VIEWS];
    double points[OBJECT + WALLS][3];
    struct vkn_scene scene;
};

/* Puts point `index` of `count` onto a face of a cube around the middle; the corners of all faces
 * are points. */
static void put_on_cube(size_t index, size_t count, double half, double point[3])
{
    size_t axis = index % 3, on_face = index / 6, wide = (size_t)sqrt((double)count / 6);
    const double u = (double)(on_face % wide) / (double)(wide - 1) * 2 - 1,
                 v = (double)(on_face / wide % wide) / (double)(wide - 1) * 2 - 1;
    point[axis] = middle[axis] + (index / 3 % 2 ? half : -half);
    point[(axis + 1) % 3] = middle[(axis + 1) % 3] + u * half;
    point[(axis + 2) % 3] = middle[(axis + 2) % 3] + v * half;
}

static void set_camera(struct scene_camera *camera, double angle, double sign)
{
    static const double up[3] = {0, 0, 1};
    const double out[3] = {0.9 * cos(angle), 0.9 * sin(angle), sqrt(0.19)};
    double back[3], position[3], pose[12];
    for (int i = 0; i < 3; i++) {
        position[i] = middle[i] + out[i];
        back[i] = sign * out[i];
    }
    look_along(position, back, up, pose);
    *camera = (struct scene_camera){
        .width = 80, .height = 60, .focal_x = 100, .focal_y = 100, .center_x = 40, .center_y = 30};
    for (int i = 0; i < 12; i++)
        camera->pose[i] = (float)pose[i];
}

/* Cameras over `angle` radians that look at the middle, or outwards if `sign` is -1. */
static struct room *make_room(double angle, double sign)
{
    struct room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    for (unsigned n = 0; n < VIEWS; n++)
        set_camera(&room->cameras[n], angle * n / VIEWS, sign);
    for (size_t p = 0; p < OBJECT; p++)
        put_on_cube(p, OBJECT, HALF, room->points[p]);
    for (size_t p = 0; p < WALLS; p++)
        put_on_cube(p, WALLS, ROOM, room->points[OBJECT + p]);
    room->scene.scale = 0.5;
    room->scene.splits[SCENE_TRAIN].cameras = room->cameras;
    room->scene.splits[SCENE_TRAIN].camera_count = VIEWS;
    return room;
}

/* Finds the object on points `first` to `last` - 1. Returns the problem, or NULL. */
static const char *find(struct room *room, size_t first, size_t last, double low[3], double high[3])
{
    const char *problem = "unset";
    assert_int_equal(
        scene_find_object(&room->scene, room->points + first, last - first, low, high, &problem),
        VKN_OK);
    return problem;
}

/* Checks that the box is that of a cube with this half edge and its margin, in dataset units, and
 * rounded outwards to `step`. */
static void check_box(const struct room *room, double half, double step, const double low[3],
                      const double high[3])
{
    for (int i = 0; i < 3; i++) {
        double scale = room->scene.scale, center = (middle[i] - room->scene.offset[i]) / scale,
               reach = 1.1 * half / scale;
        assert_true(low[i] <= center - reach + 1e-9 && low[i] > center - reach - step - 1e-9);
        assert_true(high[i] >= center + reach - 1e-9 && high[i] < center + reach + step + 1e-9);
        assert_true(fabs(low[i] / step - round(low[i] / step)) < 1e-6);
        assert_true(fabs(high[i] / step - round(high[i] / step)) < 1e-6);
    }
}

static void test_ring(void **state)
{
    (void)state;
    double low[3], high[3];
    struct room *room = make_room(2 * acos(-1), 1);
    assert_null(find(room, 0, OBJECT + WALLS, low, high));
    check_box(room, HALF, 1e-3, low, high);
    assert_true(low[0] == 0.871);
    free(room);
}

/* Large units and a dataset far from its origin. */
static void test_units(void **state)
{
    (void)state;
    double low[3], high[3];
    struct room *room = make_room(2 * acos(-1), 1);
    room->scene.scale = 0.5e-4;
    room->scene.offset[1] = -250;
    assert_null(find(room, 0, OBJECT + WALLS, low, high));
    check_box(room, HALF, 10, low, high);
    assert_true(low[1] == 5005710);
    free(room);
}

/* Most views over a third of a circle have a wall behind the object in their pictures. */
static void test_arc(void **state)
{
    (void)state;
    double low[3], high[3];
    struct room *room = make_room(2, 1);
    for (size_t p = 0; p < WALLS; p++)
        for (int i = 0; i < 3; i++)
            room->points[OBJECT + p][i] =
                middle[i] - 1.2 * ((const double[3]){0.9 * cos(1), 0.9 * sin(1), sqrt(0.19)})[i];
    assert_null(find(room, 0, OBJECT + WALLS, low, high));
    check_box(room, HALF, 1e-3, low, high);
    free(room);
}

/* The top of a larger cube counts if two thirds of the views have it in their pictures. */
static void test_view_share(void **state)
{
    (void)state;
    double low[3], high[3];
    for (unsigned wide = VIEWS * 2 / 3 - 1; wide <= VIEWS * 2 / 3; wide++) {
        struct room *room = make_room(2 * acos(-1), 1);
        bool all = wide == VIEWS * 2 / 3;
        for (size_t p = 0; p < OBJECT; p += 2)
            put_on_cube(p / 2, OBJECT / 2, 4 * HALF, room->points[p]);
        for (unsigned n = 0; n < VIEWS; n++)
            if (n * 7 % VIEWS < wide)
                room->cameras[n].focal_x = room->cameras[n].focal_y = 30;
        assert_null(find(room, 0, OBJECT + WALLS, low, high));
        assert_true(all == (high[2] * room->scene.scale > middle[2] + 4 * HALF));
        free(room);
    }
}

static void test_problems(void **state)
{
    (void)state;
    double low[3], high[3];
    struct room *room = make_room(2 * acos(-1), 1);
    assert_string_equal(find(room, 0, OBJECT + WALLS / 14, low, high),
                        "most views have almost all surfaces in common");
    assert_string_equal(find(room, OBJECT, OBJECT + WALLS, low, high),
                        "most views have no surface in common");
    assert_string_equal(find(room, 0, 0, low, high), "the field has no surface");
    room->scene.splits[SCENE_TRAIN].camera_count = 0;
    assert_string_equal(find(room, 0, OBJECT, low, high), "the views look at no common point");
    free(room);
    room = make_room(2 * acos(-1), -1);
    assert_string_equal(find(room, 0, OBJECT + WALLS, low, high),
                        "the views look at no common point");
    free(room);
    room = make_room(0.9, 1);
    assert_string_equal(find(room, 0, OBJECT + WALLS, low, high),
                        "the views look in one direction");
    free(room);
    /* A single point has a box too. */
    room = make_room(2 * acos(-1), 1);
    for (size_t p = 0; p < OBJECT; p++)
        for (int i = 0; i < 3; i++)
            room->points[p][i] = middle[i];
    assert_null(find(room, 0, OBJECT + WALLS, low, high));
    for (int i = 0; i < 3; i++)
        assert_true(low[i] < high[i]);
    free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),     cmocka_unit_test(test_units),
        cmocka_unit_test(test_arc),      cmocka_unit_test(test_view_share),
        cmocka_unit_test(test_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
