/* Provides vector operations, and the pose of a camera that looks in a direction. */
#include <math.h>

#include "scene/camera_path.h"

double vector_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

void vector_cross(const double a[3], const double b[3], double result[3])
{
    result[0] = a[1] * b[2] - a[2] * b[1];
    result[1] = a[2] * b[0] - a[0] * b[2];
    result[2] = a[0] * b[1] - a[1] * b[0];
}

double vector_normalize(double v[3])
{
    double length = sqrt(vector_dot(v, v));
    for (int i = 0; i < 3 && length > 0; i++)
        v[i] /= length;
    return length;
}

void vector_solve(const double m[3][3], const double b[3], double x[3])
{
    double d = pose_determinant(m);
    for (int column = 0; column < 3; column++) {
        double replaced[3][3];
        for (int i = 0; i < 9; i++)
            replaced[i / 3][i % 3] = i % 3 == column ? b[i / 3] : m[i / 3][i % 3];
        x[column] = pose_determinant(replaced) / d;
    }
}

void look_along(const double position[3], const double back[3], const double up[3], double pose[12])
{
    double axis[3] = {back[0], back[1], back[2]}, right[3], above[3];
    vector_normalize(axis);
    vector_cross(up, axis, right);
    if (vector_normalize(right) < 1e-6 * sqrt(vector_dot(up, up))) {
        const double other[3] = {fabs(axis[0]) < 0.5 ? 1.0 : 0.0, fabs(axis[0]) < 0.5 ? 0.0 : 1.0,
                                 0};
        vector_cross(other, axis, right);
        vector_normalize(right);
    }
    vector_cross(axis, right, above);
    for (int i = 0; i < 3; i++) {
        double *row = pose + (ptrdiff_t)4 * i;
        row[0] = right[i];
        row[1] = above[i];
        row[2] = axis[i];
        row[3] = position[i];
    }
}
