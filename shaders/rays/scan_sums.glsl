// Computes prefix sums over the invocations of a workgroup, in a fixed order.
// Passes: sum_errors, scan_errors.

shared vec3 scanned[LOCAL_SIZE];

// Returns `before` plus the values of the invocations up to this one (Hillis and Steele, Data Parallel
// Algorithms, 1986), and adds the values of all invocations to `before`. All invocations call this
// function.
vec3 scan_sums(vec3 value, inout vec3 before)
{
    uint lane = gl_LocalInvocationID.x;
    barrier();
    scanned[lane] = value;
    barrier();
    for (uint distance = 1u; distance < LOCAL_SIZE; distance *= 2u) {
        vec3 other = lane >= distance ? scanned[lane - distance] : vec3(0.0);
        barrier();
        scanned[lane] += other;
        barrier();
    }
    vec3 sums = before + scanned[lane];
    before += scanned[LOCAL_SIZE - 1u];
    return sums;
}
