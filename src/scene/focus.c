/* Computes the focus point of cameras: the point nearest to all optical axes. */
#include <math.h>

#include "scene/camera_path.h"

/* The squared distance of p to the line o + t d is |(I - d d^T) (p - o)|^2. The sum over the lines
 * is smallest where sum (I - d d^T) p = sum (I - d d^T) o. Positions are taken relative to the
 * first view: in georeferenced captures the sums would leave few digits for the differences. */
bool scene_focus_point(const double (*views)[6], size_t count, double point[3])
{
    double m[3][3] = {{0}}, b[3] = {0};
    for (size_t n = 0; n < count; n++) {
        const double *o = views[n], *d = views[n] + 3;
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                double projector = ((i == j ? 1.0 : 0.0) - d[i] * d[j]) / (double)count;
                m[i][j] += projector;
                b[i] += projector * (o[j] - views[0][j]);
            }
        }
    }
    /* The eigenvalues sum to 2 and none exceeds 1; parallel axes make one of them vanish. */
    if (count < 2 || !(pose_determinant(m) > 1e-3))
        return false;
    vector_solve((const double(*)[3])m, b, point);
    for (int i = 0; i < 3; i++)
        point[i] += views[0][i];

    size_t in_front = 0;
    for (size_t n = 0; n < count; n++) {
        double along = 0;
        for (int i = 0; i < 3; i++)
            along += (point[i] - views[n][i]) * views[n][3 + i];
        in_front += along > 0 ? 1 : 0;
    }
    return in_front * 5 >= count * 4;
}
