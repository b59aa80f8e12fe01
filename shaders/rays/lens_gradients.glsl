// Computes the gradients with respect to the parameters of a lens (struct View) from the gradient with
// respect to turning the camera. A ray keeps its pixel: its undistorted position p follows from the
// distorted position d(p), so that with the Jacobian J of the distortion the gradient g with respect to
// p becomes -J^-T g with respect to d (implicit function theorem). The inverse of the distortion, which
// generate_rays computes by iterations, is not differentiated.
// The including file includes rays/camera.glsl and rays/refined_views.glsl.
// Pass: view_gradients.

// Gradients of a sample in the order of the sums: of the focal lengths and the principal point; of k1,
// k2, p1, p2; of the scene's scale, then its square; its products with those of the focal lengths, k1, k2.
struct LensGradients {
    vec4 focal_center, distortion;
    vec2 scale;
    vec4 products;
};

LensGradients no_lens_gradients()
{
    return LensGradients(vec4(0.0), vec4(0.0), vec2(0.0), vec4(0.0));
}

// Returns a vector of the world in the camera's axes.
vec3 to_camera(Camera camera, vec3 v)
{
    float m[12] = camera.pose;
    return vec3(m[0] * v.x + m[4] * v.y + m[8] * v.z, m[1] * v.x + m[5] * v.y + m[9] * v.z,
                m[2] * v.x + m[6] * v.y + m[10] * v.z);
}

// Converts the gradient with respect to a direction of unit length, which is perpendicular to it, to
// that with respect to the undistorted position p. Perspective lenses: p is the tangent of the angle to
// the optical axis, others: the angle.
vec2 undistorted_gradient(Camera camera, vec3 local, vec3 gradient, out vec2 p)
{
    vec2 image = vec2(local.x, -local.y), g = vec2(gradient.x, -gradient.y);
    p = image / -local.z;
    if (camera.lens == LENS_PERSPECTIVE)
        return g * -local.z;
    float sine = length(image);
    vec2 outwards = sine > 0.0 ? image / sine : vec2(1.0, 0.0);
    float angle = angle_of(sine, -local.z), along = dot(g, outwards);
    p = outwards * angle;
    return outwards * (-local.z * along + sine * gradient.z) +
           (g - outwards * along) * (angle > 0.0 ? sine / angle : 1.0);
}

// turn, shift: gradients with respect to turning the camera about its position and moving it, by a
// sample of the ray. The gradient with respect to the scale is that of moving all cameras away from the
// cube's centre in proportion; movements along the ray change no pixel.
LensGradients lens_gradients(Ray ray, vec3 turn, vec3 shift)
{
    Camera camera = cameras[ray.view];
    vec2 focal = vec2(camera.focal_x, camera.focal_y);
    refine_lens(camera);
    vec3 direction = vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
    vec3 offset = vec3(ray.origin[0], ray.origin[1], ray.origin[2]) - 0.5;
    float scale = dot(shift - dot(shift, direction) * direction, offset);
    vec3 gradient = cross(turn, direction);
    if ((REFINE & REFINE_POSES) != 0u) {
        vec3 back = -view_vector(camera.view, VIEW_TURN);
        direction = turned(direction, back);
        gradient = turned(gradient, back);
    }
    vec2 p;
    vec2 g = undistorted_gradient(camera, to_camera(camera, direction), to_camera(camera, gradient), p);
    vec4 slopes = lens_slopes(camera, p);
    float determinant = slopes.x * slopes.w - slopes.y * slopes.z;
    // A panorama has no such parameters. Where the distortion folds over, nothing is known.
    if (camera.lens == LENS_EQUIRECTANGULAR || !(determinant > 1e-3))
        return no_lens_gradients();
    vec2 by = -vec2(slopes.w * g.x - slopes.z * g.y, slopes.x * g.y - slopes.y * g.x) / determinant;
    vec2 by_focal = by * lens_distort(camera, p);
    float r2 = dot(p, p), radial = r2 * dot(by, p);
    vec2 tangential = vec2(2.0 * by.x * p.x * p.y + by.y * (r2 + 2.0 * p.y * p.y),
                           by.x * (r2 + 2.0 * p.x * p.x) + 2.0 * by.y * p.x * p.y);
    if (camera.lens == LENS_FISHEYE) // has no such distortion
        tangential = vec2(0.0);
    return LensGradients(vec4(by_focal, by * focal / vec2(camera.focal_x, camera.focal_y)),
                         vec4(radial, r2 * radial, tangential),
                         scale * vec2(1.0, scale), scale * vec4(by_focal, radial, r2 * radial));
}
