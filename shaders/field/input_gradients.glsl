// Declares INPUT_GRADIENTS and computes gradients with respect to samples' directions.
// Passes: field_backward, input_gradients, direction_gradients. Writes INPUT_GRADIENTS [sample][2] vec4.

layout(std430, BINDING(INPUT_GRADIENTS)) writeonly buffer InputGradientBuffer {
    vec4 input_gradients[]; // [sample][position, direction]
};

// Converts the gradient g with respect to the spherical harmonics to the gradient with respect to the
// unit vector d, in the tangent plane of the sphere: off the sphere the polynomials have no meaning.
vec3 direction_gradient(vec3 d, float g[SH_SIZE])
{
    float xx = d.x * d.x, yy = d.y * d.y, zz = d.z * d.z;
    float xy = d.x * d.y, xz = d.x * d.z, yz = d.y * d.z;
    for (uint i = 0; i < SH_SIZE; i++)
        if (i >= SH_DEGREE * SH_DEGREE)
            g[i] = 0.0;
    vec3 slope = 0.48860251190291987 * vec3(-g[3], -g[1], g[2]);
    slope += 1.0925484305920792 * vec3(d.y * g[4] - d.z * g[7] + d.x * g[8],
                                       d.x * g[4] - d.z * g[5] - d.y * g[8],
                                       -d.y * g[5] - d.x * g[7]);
    slope.z += 1.8923493915151200 * d.z * g[6];
    slope += 1.7701307697799304 * vec3(-2.0 * xy * g[9] + (yy - xx) * g[15],
                                       (yy - xx) * g[9] + 2.0 * xy * g[15], 0.0);
    slope += 2.8906114426405538 * vec3(yz * g[10] + xz * g[14], xz * g[10] - yz * g[14],
                                       xy * g[10] + 0.5 * (xx - yy) * g[14]);
    slope += 0.45704579946446572 * vec3((1.0 - 5.0 * zz) * g[13], (1.0 - 5.0 * zz) * g[11],
                                        -10.0 * (yz * g[11] + xz * g[13]));
    slope.z += 0.3731763325901154 * (15.0 * zz - 3.0) * g[12];
    return slope - dot(slope, d) * d;
}
