// The camera model; src/scene/camera.c is its definition in double precision.

layout(std430, set = 0, binding = BIND_CAMERAS) readonly buffer CameraBuffer { Camera cameras[]; };

// OpenCV's radial-tangential model, y down.
vec2 camera_distort(Camera camera, vec2 p)
{
    float r2 = dot(p, p);
    float radial = 1.0 + r2 * (camera.k1 + r2 * camera.k2);
    return p * radial + vec2(2.0 * camera.p1 * p.x * p.y + camera.p2 * (r2 + 2.0 * p.x * p.x),
                             camera.p1 * (r2 + 2.0 * p.y * p.y) + 2.0 * camera.p2 * p.x * p.y);
}

// Newton's method on the distortion; its Jacobian is symmetric.
vec2 camera_undistort(Camera camera, vec2 distorted)
{
    if (camera.k1 == 0.0 && camera.k2 == 0.0 && camera.p1 == 0.0 && camera.p2 == 0.0)
        return distorted;
    vec2 p = distorted;
    for (int i = 0; i < 8; i++) {
        float r2 = dot(p, p);
        float radial = 1.0 + r2 * (camera.k1 + r2 * camera.k2);
        float slope = 2.0 * (camera.k1 + 2.0 * camera.k2 * r2); // d radial / d p = slope * p
        float xx = radial + slope * p.x * p.x + 2.0 * camera.p1 * p.y + 6.0 * camera.p2 * p.x;
        float yy = radial + slope * p.y * p.y + 6.0 * camera.p1 * p.y + 2.0 * camera.p2 * p.x;
        float xy = slope * p.x * p.y + 2.0 * camera.p1 * p.x + 2.0 * camera.p2 * p.y;
        vec2 residual = camera_distort(camera, p) - distorted;
        float determinant = xx * yy - xy * xy;
        if (abs(determinant) < 1e-6)
            break; // folded over: outside of where the model means anything
        p -= vec2(yy * residual.x - xy * residual.y, xx * residual.y - xy * residual.x) / determinant;
    }
    return p;
}

// Ray through image position `pixel` (pixel units). The direction has unit length;
// `forward` is its component along the viewing axis.
void camera_ray(Camera camera, vec2 pixel, out vec3 origin, out vec3 direction, out float forward)
{
    vec2 distorted = (pixel - vec2(camera.center_x, camera.center_y)) /
                     vec2(camera.focal_x, camera.focal_y);
    vec2 p = camera_undistort(camera, distorted);
    vec3 local = normalize(vec3(p.x, -p.y, -1.0));
    forward = -local.z;
    float m[12] = camera.pose;
    origin = vec3(m[3], m[7], m[11]);
    direction = vec3(dot(vec3(m[0], m[1], m[2]), local), dot(vec3(m[4], m[5], m[6]), local),
                     dot(vec3(m[8], m[9], m[10]), local));
}

// Whether the camera has the point in its picture.
bool camera_sees(Camera camera, vec3 point)
{
    float m[12] = camera.pose;
    vec3 d = point - vec3(m[3], m[7], m[11]);
    vec3 local = vec3(m[0] * d.x + m[4] * d.y + m[8] * d.z, m[1] * d.x + m[5] * d.y + m[9] * d.z,
                      m[2] * d.x + m[6] * d.y + m[10] * d.z);
    if (local.z >= 0.0)
        return false;
    vec2 p = vec2(local.x, -local.y) / -local.z;
    vec2 distorted = camera_distort(camera, p);
    // Far outside of the picture the polynomial can fold back into it: the inverse must agree.
    if (distance(camera_undistort(camera, distorted), p) > 1e-2)
        return false;
    vec2 pixel = distorted * vec2(camera.focal_x, camera.focal_y) +
                 vec2(camera.center_x, camera.center_y);
    return all(greaterThanEqual(pixel, vec2(0.0))) &&
           all(lessThan(pixel, vec2(camera.width, camera.height)));
}
