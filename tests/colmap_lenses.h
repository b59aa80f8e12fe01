/* Lenses of COLMAP with their projections, for tests. Include after cmocka.h. */
#ifndef TESTS_COLMAP_LENSES_H
#define TESTS_COLMAP_LENSES_H

#include <math.h>
#include <string.h>

#include "base/base.h"

#define WIDTH  400
#define HEIGHT 300

/* A lens in an image of WIDTH x HEIGHT pixels. */
struct lens {
    int model;
    const char *name;
    unsigned count;
    double parameters[12];
    /* The parameters by name: focal lengths, centre, radial k1 to k4, tangential p1 p2 and those of
     * a thin prism sx1 sy1. */
    bool fisheye;
    double f[2], c[2], k[4], p[4];
};

static const struct lens lenses[] = {
    {10,
     "THIN_PRISM_FISHEYE",
     12,
     {350, 340, 201, 149, 0.03, -0.02, 0.003, -0.004, 0.004, -0.001, 0.02, -0.03},
     true,
     {350, 340},
     {201, 149},
     {0.03, -0.02, 0.004, -0.001},
     {0.003, -0.004, 0.02, -0.03}},
    {1, "PINHOLE", 4, {350, 340, 201, 149}, false, {350, 340}, {201, 149}, {0}, {0}},
    {2, "SIMPLE_RADIAL", 4, {350, 201, 149, 0.1}, false, {350, 350}, {201, 149}, {0.1}, {0}},
    {3, "RADIAL", 5, {350, 201, 149, -0.2, 0.05}, false, {350, 350}, {201, 149}, {-0.2, 0.05}, {0}},
    {4,
     "OPENCV",
     8,
     {350, 340, 201, 149, -0.2, 0.05, 0.003, -0.004},
     false,
     {350, 340},
     {201, 149},
     {-0.2, 0.05},
     {0.003, -0.004}},
    {5,
     "OPENCV_FISHEYE",
     8,
     {350, 340, 201, 149, 0.03, -0.02, 0.004, -0.001},
     true,
     {350, 340},
     {201, 149},
     {0.03, -0.02, 0.004, -0.001},
     {0}},
    {8,
     "SIMPLE_RADIAL_FISHEYE",
     4,
     {350, 201, 149, 0.03},
     true,
     {350, 350},
     {201, 149},
     {0.03},
     {0}},
    {9,
     "RADIAL_FISHEYE",
     5,
     {350, 201, 149, 0.03, -0.02},
     true,
     {350, 350},
     {201, 149},
     {0.03, -0.02},
     {0}},
};
#define IMAGES BASE_COUNT(lenses)

/* Projects a point by COLMAP's documented equations. */
static inline void pixel_of(const struct lens *lens, const double ideal[2], double pixel[2])
{
    double u = ideal[0], v = ideal[1], r2 = u * u + v * v, du, dv;
    if (strcmp(lens->name, "THIN_PRISM_FISHEYE") == 0) {
        double ratio = atan(sqrt(r2)) / sqrt(r2);
        u *= ratio;
        v *= ratio;
        r2 *= ratio * ratio;
        double radial = r2 * (lens->k[0] + r2 * (lens->k[1] + r2 * (lens->k[2] + r2 * lens->k[3])));
        du = u * radial + 2 * lens->p[0] * u * v + lens->p[1] * (r2 + 2 * u * u) + lens->p[2] * r2;
        dv = v * radial + 2 * lens->p[1] * u * v + lens->p[0] * (r2 + 2 * v * v) + lens->p[3] * r2;
    } else if (lens->fisheye) {
        double r = sqrt(r2), theta = atan(r), t2 = theta * theta;
        double bent =
            theta *
            (1 + t2 * (lens->k[0] + t2 * (lens->k[1] + t2 * (lens->k[2] + t2 * lens->k[3]))));
        du = u * bent / r - u;
        dv = v * bent / r - v;
    } else {
        double radial = lens->k[0] * r2 + lens->k[1] * r2 * r2;
        du = u * radial + 2 * lens->p[0] * u * v + lens->p[1] * (r2 + 2 * u * u);
        dv = v * radial + 2 * lens->p[1] * u * v + lens->p[0] * (r2 + 2 * v * v);
    }
    pixel[0] = lens->f[0] * (u + du) + lens->c[0];
    pixel[1] = lens->f[1] * (v + dv) + lens->c[1];
}

/* Converts a rotation matrix to a quaternion (w, x, y, z) (Shepperd 1978). */
static inline void quaternion_of(double r[3][3], double q[4])
{
    double trace = r[0][0] + r[1][1] + r[2][2];
    int largest = 0;
    for (int i = 0; i < 3; i++)
        if (r[i][i] > (largest == 0 ? trace : r[largest - 1][largest - 1]))
            largest = i + 1;
    if (largest == 0) {
        q[0] = 0.5 * sqrt(1 + trace);
        for (int i = 0; i < 3; i++)
            q[1 + i] = (r[(i + 2) % 3][(i + 1) % 3] - r[(i + 1) % 3][(i + 2) % 3]) / (4 * q[0]);
        return;
    }
    int i = largest - 1, j = (i + 1) % 3, k = (i + 2) % 3;
    q[1 + i] = 0.5 * sqrt(1 + r[i][i] - r[j][j] - r[k][k]);
    q[0] = (r[k][j] - r[j][k]) / (4 * q[1 + i]);
    q[1 + j] = (r[j][i] + r[i][j]) / (4 * q[1 + i]);
    q[1 + k] = (r[k][i] + r[i][k]) / (4 * q[1 + i]);
}

#endif
