// Reads the refinement of a training view (struct View), turns vectors and changes lenses by it.
// The including file defines VIEW_BUFFER, the qualifiers of the buffer.
// Passes: generate_rays, update_views, view_gradients. Reads STATE, [view] View from config.first_view_word on.

layout(constant_id = SPEC_REFINE) const uint REFINE = 0;

layout(std430, BINDING(STATE)) VIEW_BUFFER ViewBuffer { float view_words[]; };

// Returns the index in view_words of a member (VIEW_*) of a view.
uint view_word(uint view, uint member)
{
    return config.first_view_word + view * VIEW_WORDS + member;
}

vec3 view_vector(uint view, uint member)
{
    uint at = view_word(view, member);
    return vec3(view_words[at], view_words[at + 1u], view_words[at + 2u]);
}

// Returns sin(a) / a, (1 - cos(a)) / a^2 and (a - sin(a)) / a^3 for the squared angle a^2, at most 4, by
// Taylor series, because the built-in functions need not have single precision.
vec3 turn_factors(float a2)
{
    a2 = min(a2, 4.0);
    float e = 1.0 / 6.0 - a2 * (1.0 / 120.0 - a2 * (1.0 / 5040.0 - a2 * (1.0 / 362880.0 - a2 / 39916800.0)));
    float c = 0.5 - a2 * (1.0 / 24.0 - a2 * (1.0 / 720.0 - a2 * (1.0 / 40320.0 - a2 / 3628800.0)));
    return vec3(1.0 - a2 * e, c, e);
}

// Returns v, turned by the rotation vector w (Rodrigues' formula).
vec3 turned(vec3 v, vec3 w)
{
    vec3 factors = turn_factors(dot(w, w)), across = cross(w, v);
    return v + factors.x * across + factors.y * cross(w, across);
}

// Changes the lens of a camera. The camera may be of a reduced image, or of a part of its rows.
void refine_lens(inout Camera camera)
{
    uint at = view_word(camera.view, VIEW_LENS);
    camera.center_x += camera.focal_x * view_words[at + 2u];
    camera.center_y += camera.focal_y * view_words[at + 3u];
    camera.focal_x *= exp(view_words[at]);
    camera.focal_y *= exp(view_words[at + 1u]);
    camera.k1 += view_words[at + 4u];
    camera.k2 += view_words[at + 5u];
    camera.p1 += view_words[at + 6u];
    camera.p2 += view_words[at + 7u];
}
