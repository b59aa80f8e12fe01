/* Computes axes and limits of crop boxes, which may be rotated. */
#include <math.h>

#include "scene/scene.h"

#define DEGREE (3.14159265358979323846 / 180)

struct scene_box scene_box_of(const double low[3], const double high[3], const double rotation[3])
{
    struct scene_box box;
    for (int i = 0; i < 3; i++) {
        box.low[i] = low[i];
        box.high[i] = high[i];
        box.rotation[i] = rotation[i];
    }
    return box;
}

bool scene_box_given(const struct scene_box *box)
{
    bool is_given = false;
    for (int i = 0; i < 3; i++)
        is_given = is_given || box->low[i] != 0.0 || box->high[i] != 0.0;
    return is_given;
}

vkn_status scene_box_check(const struct scene_box *box)
{
    const bool is_given = scene_box_given(box);
    for (int i = 0; i < 3; i++) {
        if (!(fabs(box->rotation[i]) <= SCENE_MOST_ROTATION))
            return base_fail(VKN_BAD_INPUT,
                             "crop_rotation: %.15g degrees about %c is not from -%g to %g",
                             box->rotation[i], "xyz"[i], SCENE_MOST_ROTATION, SCENE_MOST_ROTATION);
        if (!is_given && box->rotation[i] != 0.0)
            return base_fail(VKN_BAD_INPUT, "crop_rotation: only of use with a crop box");
        if (is_given &&
            (!(box->low[i] < box->high[i]) || isinf(box->low[i]) || isinf(box->high[i])))
            return base_fail(VKN_BAD_INPUT, "crop: %.15g to %.15g along %c is empty", box->low[i],
                             box->high[i], "xyz"[i]);
    }
    return VKN_OK;
}

void scene_box_axes(const struct scene_box *box, double axes[3][3])
{
    double c[3], s[3];
    for (int i = 0; i < 3; i++) {
        c[i] = cos(DEGREE * box->rotation[i]);
        s[i] = sin(DEGREE * box->rotation[i]);
    }
    const double made[3][3] = {
        {c[2] * c[1], s[2] * c[1], -s[1]},
        {c[2] * s[1] * s[0] - s[2] * c[0], s[2] * s[1] * s[0] + c[2] * c[0], c[1] * s[0]},
        {c[2] * s[1] * c[0] + s[2] * s[0], s[2] * s[1] * c[0] - c[2] * s[0], c[1] * c[0]}};
    for (int i = 0; i < 9; i++)
        axes[i / 3][i % 3] = made[i / 3][i % 3];
}

void scene_box_set_axes(const double axes[3][3], struct scene_box *box)
{
    double cosine = hypot(axes[1][2], axes[2][2]);
    /* Only the sum or the difference of the two other angles is known. */
    bool is_gimbal_locked = cosine < 1e-9;
    box->rotation[0] =
        (is_gimbal_locked ? atan2(-axes[2][1], axes[1][1]) : atan2(axes[1][2], axes[2][2])) /
        DEGREE;
    box->rotation[1] = atan2(-axes[0][2], cosine) / DEGREE;
    box->rotation[2] = is_gimbal_locked ? 0 : atan2(axes[0][1], axes[0][0]) / DEGREE;
}

struct scene_box_limits scene_box_limits(const struct scene_box *box)
{
    struct scene_box_limits limits;
    scene_box_axes(box, limits.axes);
    for (int k = 0; k < 3; k++) {
        double moved = 0; /* by the rotation, of the centre along the axis */
        for (int i = 0; i < 3; i++)
            moved += (limits.axes[k][i] - (i == k)) * (0.5 * box->low[i] + 0.5 * box->high[i]);
        limits.low[k] = box->low[k] + moved;
        limits.high[k] = box->high[k] + moved;
    }
    return limits;
}

bool scene_box_contains(const struct scene_box_limits *limits, const double position[3])
{
    bool is_inside = true;
    for (int k = 0; k < 3; k++) {
        const double *axis = limits->axes[k];
        double along = axis[0] * position[0] + axis[1] * position[1] + axis[2] * position[2];
        is_inside = is_inside && along >= limits->low[k] && along <= limits->high[k];
    }
    return is_inside;
}
