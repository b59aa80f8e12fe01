// Computes rays through pixels, and pixels of points, by the camera models that src/scene/camera.c
// and lenses.c define in double precision.
// Passes: generate_rays, mark_outliers, mark_unseen_cells, mesh_hidden, mesh_seen, sum_errors,
// view_gradients. Reads CAMERAS [camera].

layout(std430, BINDING(CAMERAS)) readonly buffer CameraBuffer { Camera cameras[]; };

// ---- distortion -----------------------------------------------------------------------------------

bool camera_is_pinhole(Camera camera)
{
    return camera.k1 == 0.0 && camera.k2 == 0.0 && camera.p1 == 0.0 && camera.p2 == 0.0 &&
           camera.k3 == 0.0;
}

// Applies OpenCV's radial-tangential model, in which y points down.
vec2 camera_distort(Camera camera, vec2 p)
{
    float r2 = dot(p, p);
    float radial = 1.0 + r2 * (camera.k1 + r2 * (camera.k2 + r2 * camera.k3));
    return p * radial + vec2(2.0 * camera.p1 * p.x * p.y + camera.p2 * (r2 + 2.0 * p.x * p.x),
                             camera.p1 * (r2 + 2.0 * p.y * p.y) + 2.0 * camera.p2 * p.x * p.y);
}

// Adds the terms of COLMAP's THIN_PRISM_FISHEYE to OpenCV's model. A fisheye has a part of these terms.
vec2 lens_distort(Camera camera, vec2 p)
{
    vec2 distorted = camera_distort(camera, p);
    float r2 = dot(p, p);
    if (camera.lens != LENS_PERSPECTIVE)
        distorted += r2 * (camera.k4 * r2 * r2 * r2 * p + vec2(camera.sx1, camera.sy1));
    return distorted;
}

// Returns the derivatives of the distorted position: of x with respect to x and y, of y with respect to
// x and y.
vec4 lens_slopes(Camera camera, vec2 p)
{
    float r2 = dot(p, p);
    float radial = 1.0 + r2 * (camera.k1 + r2 * (camera.k2 + r2 * camera.k3));
    // d radial / d p = slope * p
    float slope = 2.0 * (camera.k1 + r2 * (2.0 * camera.k2 + r2 * 3.0 * camera.k3));
    float xx = radial + slope * p.x * p.x + 2.0 * camera.p1 * p.y + 6.0 * camera.p2 * p.x;
    float yy = radial + slope * p.y * p.y + 6.0 * camera.p1 * p.y + 2.0 * camera.p2 * p.x;
    float xy = slope * p.x * p.y + 2.0 * camera.p1 * p.x + 2.0 * camera.p2 * p.y;
    float yx = xy;
    if (camera.lens != LENS_PERSPECTIVE) {
        float k4 = camera.k4 * r2 * r2 * r2;
        vec2 by_x = 8.0 * k4 * p + 2.0 * vec2(camera.sx1, camera.sy1);
        xx += k4 * r2 + by_x.x * p.x;
        xy += by_x.x * p.y;
        yx += by_x.y * p.x;
        yy += k4 * r2 + by_x.y * p.y;
    }
    return vec4(xx, xy, yx, yy);
}

// Inverts the distortion by Newton's method. Returns false for positions without a ray.
bool camera_undistort(Camera camera, vec2 distorted, out vec2 p)
{
    p = distorted;
    if (camera.lens != LENS_THIN_PRISM_FISHEYE && camera_is_pinhole(camera))
        return true;
    for (int i = 0; i < 8; i++) {
        vec4 slopes = lens_slopes(camera, p);
        vec2 residual = lens_distort(camera, p) - distorted;
        float determinant = slopes.x * slopes.w - slopes.y * slopes.z;
        if (abs(determinant) < 1e-6)
            break; // folded over: outside of the model's range
        p -= vec2(slopes.w * residual.x - slopes.y * residual.y,
                  slopes.x * residual.y - slopes.z * residual.x) / determinant;
    }
    return length(p) <= camera.limit * 1.00001 &&
           distance(lens_distort(camera, p), distorted) < 1e-4;
}

// ---- fisheye --------------------------------------------------------------------------------------

// Returns sine and cosine of an angle from 0 to pi by Taylor series of the half angle, because the
// built-in functions need not have single precision.
vec2 sine_cosine(float angle)
{
    float h = 0.5 * angle, h2 = h * h;
    float s = h * (1.0 + h2 * (-1.0 / 6.0 + h2 * (1.0 / 120.0 + h2 * (-1.0 / 5040.0 +
              h2 * (1.0 / 362880.0 - h2 / 39916800.0)))));
    float c = 1.0 + h2 * (-0.5 + h2 * (1.0 / 24.0 + h2 * (-1.0 / 720.0 + h2 * (1.0 / 40320.0 +
              h2 * (-1.0 / 3628800.0 + h2 / 479001600.0)))));
    return vec2(2.0 * s * c, 1.0 - 2.0 * s * s);
}

// Returns the angle, 0 to pi, whose tangent is across / along; `across` is not negative.
float angle_of(float across, float along)
{
    float angle = atan(across, along);
    // Takes one step of Newton's method, because atan need not have single precision.
    vec2 turn = sine_cosine(angle);
    return angle + (across * turn.y - along * turn.x) / max(length(vec2(across, along)), 1e-20);
}

// Returns the distorted angle and its derivative.
vec2 fisheye_distort(Camera camera, float angle)
{
    float t2 = angle * angle;
    float value = 1.0 + t2 * (camera.k1 + t2 * (camera.k2 + t2 * (camera.k3 + t2 * camera.k4)));
    float slope = 1.0 + t2 * (3.0 * camera.k1 + t2 * (5.0 * camera.k2 + t2 * (7.0 * camera.k3 +
                  t2 * 9.0 * camera.k4)));
    return vec2(angle * value, slope);
}

// Inverts the distortion, which increases on 0..limit, by Newton's method, or by bisection where a
// step leaves the bracket.
float fisheye_undistort(Camera camera, float distorted)
{
    float low = 0.0, high = camera.limit, angle = min(distorted, high);
    for (int i = 0; i < 24; i++) {
        vec2 at = fisheye_distort(camera, angle);
        float error = at.x - distorted;
        if (error < 0.0)
            low = angle;
        else
            high = angle;
        float next = angle - error / at.y;
        bool in_bracket = next > low && next < high; // also false for NaN
        next = in_bracket ? next : 0.5 * (low + high);
        if (abs(next - angle) < 1e-7 || error == 0.0)
            break;
        angle = next;
    }
    return angle;
}

// Returns the direction at an angle to the optical axis, towards an image position whose length is
// `radius`.
vec3 direction_at(vec2 position, float radius, float angle)
{
    vec2 turn = sine_cosine(angle);
    vec2 p = position * (radius > 0.0 ? turn.x / radius : 1.0);
    return normalize(vec3(p.x, -p.y, -turn.y));
}

bool fisheye_ray(Camera camera, vec2 distorted, out vec3 local)
{
    float radius = length(distorted);
    bool in_range = radius <= fisheye_distort(camera, camera.limit).x;
    local = direction_at(distorted, radius, in_range ? fisheye_undistort(camera, radius) : camera.limit);
    return in_range;
}

bool fisheye_project(Camera camera, vec3 local, out vec2 distorted)
{
    float across = length(local.xy), angle = angle_of(across, -local.z);
    distorted = across > 0.0 ? vec2(local.x, -local.y) * (fisheye_distort(camera, angle).x / across)
                             : vec2(0.0);
    return angle <= camera.limit && (across > 0.0 || local.z < 0.0);
}

// ---- perspective and thin prism fisheye -----------------------------------------------------------

// The length of an undistorted position is the tangent of the angle to the optical axis or, for a thin
// prism fisheye, the angle.
bool polynomial_ray(Camera camera, vec2 distorted, out vec3 local)
{
    vec2 p;
    bool in_range = camera_undistort(camera, distorted, p);
    if (camera.lens == LENS_THIN_PRISM_FISHEYE)
        local = direction_at(p, length(p), min(length(p), camera.limit));
    else
        local = normalize(vec3(p.x, -p.y, -1.0));
    return in_range;
}

bool polynomial_project(Camera camera, vec3 local, out vec2 distorted)
{
    vec2 p, back;
    if (camera.lens == LENS_THIN_PRISM_FISHEYE) {
        float across = length(local.xy);
        if (across == 0.0 && local.z >= 0.0)
            return false;
        p = vec2(local.x, -local.y) * (angle_of(across, -local.z) / max(across, 1e-20));
    } else {
        if (local.z >= 0.0)
            return false;
        p = vec2(local.x, -local.y) / -local.z;
    }
    distorted = lens_distort(camera, p);
    // The polynomial can map points far outside into the image, so the inverse must agree.
    return length(p) <= camera.limit && camera_undistort(camera, distorted, back) &&
           distance(back, p) <= 1e-2;
}

// ---- equirectangular ------------------------------------------------------------------------------

const float HALF_TURN = 3.14159265;

bool equirectangular_ray(vec2 angles, out vec3 local)
{
    vec2 magnitude = abs(angles);
    vec2 around = sine_cosine(min(magnitude.x, HALF_TURN)), upwards = sine_cosine(min(magnitude.y, 0.5 * HALF_TURN));
    local = normalize(vec3(around.x * upwards.y, upwards.x, -around.y * upwards.y));
    local.x = angles.x < 0.0 ? -local.x : local.x;
    local.y = angles.y > 0.0 ? -local.y : local.y;
    return magnitude.x <= HALF_TURN * 1.00001 && magnitude.y <= 0.5 * HALF_TURN * 1.00001;
}

// Projects points exactly behind the camera just inside of the image's left and right edges.
bool equirectangular_project(vec3 local, out vec2 angles)
{
    float around = length(local.xz);
    float longitude = around > 0.0 ? min(angle_of(abs(local.x), -local.z), 3.141592) : 0.0;
    float latitude = angle_of(abs(local.y), around);
    angles = vec2(local.x < 0.0 ? -longitude : longitude, local.y > 0.0 ? -latitude : latitude);
    return around > 0.0 || local.y != 0.0;
}

// ---- any lens -------------------------------------------------------------------------------------

bool lens_ray(Camera camera, vec2 distorted, out vec3 local)
{
    if (camera.lens == LENS_FISHEYE)
        return fisheye_ray(camera, distorted, local);
    if (camera.lens == LENS_EQUIRECTANGULAR)
        return equirectangular_ray(distorted, local);
    return polynomial_ray(camera, distorted, local);
}

bool lens_project(Camera camera, vec3 local, out vec2 distorted)
{
    if (camera.lens == LENS_FISHEYE)
        return fisheye_project(camera, local, distorted);
    if (camera.lens == LENS_EQUIRECTANGULAR)
        return equirectangular_project(local, distorted);
    return polynomial_project(camera, local, distorted);
}

// Computes the ray through image position `pixel` (in pixels). The direction has unit length. A
// distance along the ray times `depth_scale` is a depth: along the optical axis for perspective
// lenses, along the ray for others. Returns false beyond the range of the lens.
bool camera_ray(Camera camera, vec2 pixel, out vec3 origin, out vec3 direction,
                out float depth_scale)
{
    vec2 distorted = (pixel - vec2(camera.center_x, camera.center_y)) /
                     vec2(camera.focal_x, camera.focal_y);
    vec3 local;
    bool in_range = lens_ray(camera, distorted, local);
    depth_scale = camera.lens == LENS_PERSPECTIVE ? -local.z : 1.0;
    float m[12] = camera.pose;
    origin = vec3(m[3], m[7], m[11]);
    direction = vec3(dot(vec3(m[0], m[1], m[2]), local), dot(vec3(m[4], m[5], m[6]), local),
                     dot(vec3(m[8], m[9], m[10]), local));
    return in_range;
}

// Returns whether the camera's image contains the point; `pixel` becomes the point's image position.
bool camera_sees(Camera camera, vec3 point, out vec2 pixel)
{
    float m[12] = camera.pose;
    vec3 d = point - vec3(m[3], m[7], m[11]);
    vec3 local = vec3(m[0] * d.x + m[4] * d.y + m[8] * d.z, m[1] * d.x + m[5] * d.y + m[9] * d.z,
                      m[2] * d.x + m[6] * d.y + m[10] * d.z);
    vec2 distorted = vec2(0.0);
    bool seen = lens_project(camera, local, distorted);
    pixel = distorted * vec2(camera.focal_x, camera.focal_y) +
            vec2(camera.center_x, camera.center_y);
    return seen && all(greaterThanEqual(pixel, vec2(0.0))) &&
           all(lessThan(pixel, vec2(camera.width, camera.height)));
}
