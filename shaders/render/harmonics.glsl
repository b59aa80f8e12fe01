// Defines a quadrature over SPLAT_VIEWS directions for spherical harmonics coefficients of degrees 0
// to 3. A coefficient is the sum over the directions of weight times harmonic times value. Four
// Gauss-Legendre latitudes of seven directions each are exact up to degree 6, the degree of products
// of two harmonics.
// Passes: splat_samples, splat_colors.

const uint LATITUDE_VIEWS = SPLAT_VIEWS / 4u;

// Abramowitz and Stegun 1964, table 25.4.
const float LATITUDES[4] = float[4](-0.8611363116, -0.3399810436, 0.3399810436, 0.8611363116);
const float LATITUDE_WEIGHTS[4] = float[4](0.3478548451, 0.6521451549, 0.6521451549, 0.3478548451);

vec3 view_direction(uint view)
{
    float z = LATITUDES[min(view / LATITUDE_VIEWS, 3u)];
    float longitude = 6.2831853072 * float(view % LATITUDE_VIEWS) / float(LATITUDE_VIEWS);
    return vec3(sqrt(1.0 - z * z) * vec2(cos(longitude), sin(longitude)), z);
}

float view_weight(uint view)
{
    return LATITUDE_WEIGHTS[min(view / LATITUDE_VIEWS, 3u)] * 6.2831853072 / float(LATITUDE_VIEWS);
}

// Returns harmonic n, in the order and with the signs of Kerbl et al. 2023, 3D Gaussian Splatting.
float harmonic(uint n, vec3 d)
{
    vec3 s = d * d;
    switch (n) {
    case 0u: return 0.28209479177;
    case 1u: return -0.48860251190 * d.y;
    case 2u: return 0.48860251190 * d.z;
    case 3u: return -0.48860251190 * d.x;
    case 4u: return 1.09254843059 * d.x * d.y;
    case 5u: return -1.09254843059 * d.y * d.z;
    case 6u: return 0.31539156525 * (2.0 * s.z - s.x - s.y);
    case 7u: return -1.09254843059 * d.x * d.z;
    case 8u: return 0.54627421530 * (s.x - s.y);
    case 9u: return -0.59004358993 * d.y * (3.0 * s.x - s.y);
    case 10u: return 2.89061144264 * d.x * d.y * d.z;
    case 11u: return -0.45704579946 * d.y * (4.0 * s.z - s.x - s.y);
    case 12u: return 0.37317633259 * d.z * (2.0 * s.z - 3.0 * s.x - 3.0 * s.y);
    case 13u: return -0.45704579946 * d.x * (4.0 * s.z - s.x - s.y);
    case 14u: return 1.44530572132 * d.z * (s.x - s.y);
    default: return -0.59004358993 * d.x * (s.x - 3.0 * s.y);
    }
}
