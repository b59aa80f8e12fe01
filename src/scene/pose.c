/* Reads camera poses from 4x4 or 3x4 matrices and converts them to training space. */
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/transforms.h"

#define LARGEST   1e9  /* largest coordinate; larger doubles have errors above 1e-7 */
#define TOLERANCE 0.02 /* largest deviation from orthonormality of a rotation in a file */

static vkn_status read_row(const cJSON *row, const char *name, const char *where, int index,
                           double values[4])
{
    if (!cJSON_IsArray(row) || cJSON_GetArraySize(row) != 4)
        return base_json_fail(where, name, "row %d is not 4 numbers", index);
    int column = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, row) {
        char element[128];
        snprintf(element, sizeof(element), "%s[%d][%d]", name, index, column);
        BASE_TRY(base_json_value(item, element, where, -LARGEST, LARGEST, &values[column]));
        column++;
    }
    return VKN_OK;
}

double pose_determinant(const double m[3][3])
{
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/* Computes the inverse transpose: cofactors over the determinant. */
static void inverse_transpose(const double m[3][3], double result[3][3])
{
    double d = pose_determinant(m);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, e = (j + 2) % 3;
            result[i][j] = (m[a][c] * m[b][e] - m[a][e] * m[b][c]) / d;
        }
    }
}

/* Returns the largest deviation of m^T m from the identity. */
static double skewness(const double m[3][3])
{
    double worst = 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            double dot = m[0][i] * m[0][j] + m[1][i] * m[1][j] + m[2][i] * m[2][j];
            worst = fmax(worst, fabs(dot - (i == j ? 1.0 : 0.0)));
        }
    }
    return worst;
}

/* Divides m by its scale and replaces it by the nearest rotation: Newton's iteration m <- (m +
 * m^-T) / 2 for the polar decomposition (Higham 1986), which starts near the result and converges
 * long before the last step. Returns NULL or the problem. */
static const char *make_rotation(double m[3][3])
{
    double d = pose_determinant(m);
    double scale = cbrt(d);
    if (!(fabs(scale) > 1e-12))
        return "the rotation part is degenerate";
    if (d < 0)
        return "the rotation part is a mirror image, not a rotation";
    for (int i = 0; i < 9; i++)
        m[i / 3][i % 3] /= scale;
    if (!(skewness(m) <= TOLERANCE))
        return "the rotation part is not a rotation (axes skewed or of different lengths)";
    for (int round = 0; round < 6; round++) {
        double other[3][3];
        inverse_transpose(m, other);
        for (int i = 0; i < 9; i++)
            m[i / 3][i % 3] = 0.5 * (m[i / 3][i % 3] + other[i / 3][i % 3]);
    }
    return NULL;
}

const char *scene_pose_from_rows(const double (*rows)[4], double pose[12])
{
    double rotation[3][3];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++)
            if (!(fabs(rows[i][j]) <= LARGEST))
                return "a number is not finite or beyond 1e9";
        memcpy(rotation[i], rows[i], sizeof(rotation[i]));
    }
    const char *problem = make_rotation(rotation);
    if (problem != NULL)
        return problem;
    for (int i = 0; i < 3; i++) {
        memcpy(pose + (ptrdiff_t)4 * i, rotation[i], sizeof(rotation[i]));
        pose[4 * i + 3] = rows[i][3];
    }
    return NULL;
}

const char *pose_from_matrix(const double (*rows)[4], double pose[12])
{
    double w = rows[3][3], divided[3][4];
    bool homogeneous = isfinite(w) && w != 0;
    for (int j = 0; j < 3; j++)
        homogeneous = homogeneous && fabs(rows[3][j]) <= 1e-6 * fabs(w);
    if (!homogeneous)
        return "the last row is not 0 0 0 1 (or 0 0 0 w, by which the matrix is divided)";
    for (int i = 0; i < 12; i++)
        divided[i / 4][i % 4] = rows[i / 4][i % 4] / w;
    return scene_pose_from_rows((const double(*)[4])divided, pose);
}

void pose_invert_matrix(double rows[4][4])
{
    double w = rows[3][3], linear[3][3], inverse[3][3], position[3];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            linear[i][j] = rows[i][j] / w;
        position[i] = rows[i][3] / w;
    }
    inverse_transpose((const double(*)[3])linear, inverse);
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            rows[i][j] = inverse[j][i];
        rows[i][3] = -(inverse[0][i] * position[0] + inverse[1][i] * position[1] +
                       inverse[2][i] * position[2]);
    }
    rows[3][3] = 1;
}

void pose_quaternion(const double m[3][3], double q[4])
{
    double trace = m[0][0] + m[1][1] + m[2][2];
    int k = m[1][1] > m[0][0] ? 1 : 0;
    k = m[2][2] > m[k][k] ? 2 : k;
    int i = (k + 1) % 3, j = (k + 2) % 3;
    if (trace > m[k][k]) {
        q[0] = 1 + trace;
        q[1] = m[2][1] - m[1][2];
        q[2] = m[0][2] - m[2][0];
        q[3] = m[1][0] - m[0][1];
    } else {
        q[0] = m[j][i] - m[i][j];
        q[1 + k] = 1 + m[k][k] - m[i][i] - m[j][j];
        q[1 + i] = m[i][k] + m[k][i];
        q[1 + j] = m[j][k] + m[k][j];
    }
    double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int n = 0; n < 4; n++)
        q[n] /= length;
}

static vkn_status make_pose(double values[4][4], const char *name, const char *where,
                            double pose[12])
{
    const char *problem = pose_from_matrix((const double(*)[4])values, pose);
    return problem == NULL ? VKN_OK : base_json_fail(where, name, "%s", problem);
}

vkn_status pose_read(const struct cJSON *matrix, const char *name, const char *where,
                     double pose[12])
{
    int rows = cJSON_IsArray(matrix) ? cJSON_GetArraySize(matrix) : 0;
    if (rows != 3 && rows != 4)
        return base_json_fail(where, name, "not a matrix of 3 or 4 rows");
    double values[4][4] = {[3] = {0, 0, 0, 1}};
    int index = 0;
    const cJSON *row = NULL;
    cJSON_ArrayForEach (row, matrix) {
        BASE_TRY(read_row(row, name, where, index, values[index]));
        index++;
    }
    return make_pose(values, name, where, pose);
}

vkn_status pose_read_numbers(const struct cJSON *array, const char *name, const char *where,
                             int count, double *values)
{
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != count)
        return base_json_fail(where, name, "not %d numbers", count);
    const cJSON *item = array->child;
    for (int i = 0; i < count; i++, item = item->next) {
        char element[128];
        snprintf(element, sizeof(element), "%s[%d]", name, i);
        BASE_TRY(base_json_value(item, element, where, -LARGEST, LARGEST, &values[i]));
    }
    return VKN_OK;
}

vkn_status pose_read_flat(const struct cJSON *matrix, const char *name, const char *where,
                          double pose[12])
{
    double values[4][4];
    BASE_TRY(pose_read_numbers(matrix, name, where, 16, values[0]));
    return make_pose(values, name, where, pose);
}

/* ---- training space -------------------------------------------------------------------------- */

#define FAR_OFFSET 16.0

bool scene_needs_double(const double offset[3])
{
    return !(fabs(offset[0]) < FAR_OFFSET && fabs(offset[1]) < FAR_OFFSET &&
             fabs(offset[2]) < FAR_OFFSET);
}

double scene_round_number(double number, const double offset[3])
{
    return scene_needs_double(offset) ? number : (double)(float)number;
}

void scene_position_from_public(const double position[3], double scale, const double offset[3],
                                double result[3])
{
    for (int i = 0; i < 3; i++)
        result[i] =
            position[i] * scene_round_number(scale, offset) + scene_round_number(offset[i], offset);
}

void scene_to_training(const struct vkn_scene *scene, const double position[3], double result[3])
{
    scene_position_from_public(position, scene->scale, scene->offset, result);
}

void camera_set_pose(const struct vkn_scene *scene, const double pose[12],
                     struct scene_camera *camera)
{
    const double position[3] = {pose[3], pose[7], pose[11]};
    double converted[3];
    scene_to_training(scene, position, converted);
    for (int i = 0; i < 12; i++)
        camera->pose[i] = (float)(i % 4 < 3 ? pose[i] : converted[i / 4]);
}

void camera_set_frame(const struct vkn_scene *scene, const struct transforms_frame *frame,
                      struct scene_camera *camera)
{
    camera->time = (float)frame->time;
    camera_set_pose(scene, frame->pose, camera);
}
