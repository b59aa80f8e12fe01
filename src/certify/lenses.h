/* Lists cameras of every model that files name, for tests of projection and of rays on host and
 * device. */
#ifndef CERTIFY_LENSES_H
#define CERTIFY_LENSES_H

#include "scene/scene.h"

#define TEST_SENSOR                                                                   \
    .width = 1080, .height = 720, .focal_x = 850, .focal_y = 845, .center_x = 554.6F, \
    .center_y = 355.3F

/* Lenses that reach the corners of their pictures; tests set the poses. */
static const struct certify_lens {
    const char *name;
    struct scene_camera camera;
} certify_lenses[] = {
    {"PINHOLE", {TEST_SENSOR}},
    {"SIMPLE_RADIAL", {TEST_SENSOR, .k1 = 0.0578421F}},
    {"RADIAL", {TEST_SENSOR, .k1 = -0.3F, .k2 = 0.12F}},
    {"OPENCV",
     {TEST_SENSOR, .k1 = 0.0578421F, .k2 = -0.0805099F, .p1 = -0.000980296F, .p2 = 0.00015575F}},
    {"OPENCV, strong", {TEST_SENSOR, .k1 = 0.4F, .k2 = 0.1F, .p1 = 0.01F, .p2 = -0.01F}},
    {"OPENCV, tangential", {TEST_SENSOR, .k1 = -0.15F, .p1 = 0.02F, .p2 = 0.01F}},
    {"OPENCV with k3",
     {TEST_SENSOR, .k1 = -0.28F, .k2 = 0.11F, .p1 = 1e-3F, .p2 = -2e-3F, .k3 = -0.02F}},
    {"OPENCV_FISHEYE",
     {TEST_SENSOR, .lens = VKN_LENS_FISHEYE, .k1 = 0.035F, .k2 = 0.011F, .k3 = -0.009F,
      .k4 = 0.0012F}},
    /* The corners are 135 degrees off the axis. */
    {"OPENCV_FISHEYE, wide",
     {.lens = VKN_LENS_FISHEYE,
      .width = 1000,
      .height = 1000,
      .focal_x = 300,
      .focal_y = 302,
      .center_x = 498,
      .center_y = 503.5F,
      .k1 = -0.02F,
      .k2 = 0.008F,
      .k3 = -0.001F,
      .k4 = 0.0001F}},
    {"equidistant fisheye",
     {.lens = VKN_LENS_FISHEYE,
      .width = 900,
      .height = 900,
      .focal_x = 260,
      .focal_y = 260,
      .center_x = 450,
      .center_y = 450}},
    /* A camera of ETH3D (Schoeps et al. 2017), at another size. */
    {"THIN_PRISM_FISHEYE",
     {.lens = VKN_LENS_THIN_PRISM_FISHEYE,
      .width = 1080,
      .height = 720,
      .focal_x = 609.18F,
      .focal_y = 608.93F,
      .center_x = 543.1F,
      .center_y = 359.7F,
      .k1 = 0.21047F,
      .k2 = 0.21102F,
      .p1 = -5.36e-6F,
      .p2 = 5.154e-4F,
      .k3 = -0.158023F,
      .k4 = 0.406856F,
      .sx1 = -8.465e-5F,
      .sy1 = 8.613e-4F}},
    /* The corners are more than 120 degrees off the axis. */
    {"THIN_PRISM_FISHEYE, wide",
     {.lens = VKN_LENS_THIN_PRISM_FISHEYE,
      .width = 1000,
      .height = 1000,
      .focal_x = 300,
      .focal_y = 302,
      .center_x = 498,
      .center_y = 503.5F,
      .k1 = -0.02F,
      .k2 = 0.008F,
      .p1 = 0.004F,
      .p2 = -0.003F,
      .k3 = -0.001F,
      .k4 = 0.0001F,
      .sx1 = 0.006F,
      .sy1 = -0.005F}},
    /* More prism than fisheye: the inverse depends on every coefficient. */
    {"THIN_PRISM_FISHEYE, strong",
     {TEST_SENSOR, .lens = VKN_LENS_THIN_PRISM_FISHEYE, .k1 = 0.3F, .k4 = 20, .sx1 = 0.4F,
      .sy1 = -0.5F}},
    {"EQUIRECTANGULAR",
     {.lens = VKN_LENS_EQUIRECTANGULAR,
      .width = 1000,
      .height = 500,
      .focal_x = 159.1549431F,
      .focal_y = 159.1549431F,
      .center_x = 500,
      .center_y = 250}},
    {"EQUIRECTANGULAR, a part",
     {.lens = VKN_LENS_EQUIRECTANGULAR,
      .width = 900,
      .height = 400,
      .focal_x = 180,
      .focal_y = 170,
      .center_x = 420,
      .center_y = 240}},
};

/* Lenses that do not reach half of their pictures. */
static const struct scene_camera certify_short_lenses[] = {
    {TEST_SENSOR, .k1 = -1.2F},
    {TEST_SENSOR, .k1 = -1, .k2 = -0.3F, .p1 = 1e-3F},
    {TEST_SENSOR, .lens = VKN_LENS_FISHEYE, .k1 = -1.1F},
    {.lens = VKN_LENS_FISHEYE,
     .width = 1080,
     .height = 720,
     .focal_x = 100,
     .focal_y = 100,
     .center_x = 540,
     .center_y = 360},
    {TEST_SENSOR, .lens = VKN_LENS_THIN_PRISM_FISHEYE, .k1 = -1.1F, .p2 = 2e-3F, .sx1 = 1e-3F},
    /* The prism folds the left of the picture over. */
    {TEST_SENSOR, .lens = VKN_LENS_THIN_PRISM_FISHEYE, .sx1 = 1},
    /* The middle row ends a quarter before the picture's sides. */
    {.lens = VKN_LENS_EQUIRECTANGULAR,
     .width = 1080,
     .height = 720,
     .focal_x = 128.9F,
     .focal_y = 250,
     .center_x = 540,
     .center_y = 360},
    /* The first rows are beyond the pole. */
    {.lens = VKN_LENS_EQUIRECTANGULAR,
     .width = 1080,
     .height = 720,
     .focal_x = 190,
     .focal_y = 200,
     .center_x = 540,
     .center_y = 675.6F},
};

#endif
