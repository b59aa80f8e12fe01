// Returns the position, direction and time of a sample.
// Passes: all that evaluate positions, directions or times. Reads RAYS [ray], SAMPLES [sample].

layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };

vec3 sample_direction(uint index)
{
    Ray ray = rays[samples[index].ray];
    return vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
}

float sample_time(uint index)
{
    return rays[samples[index].ray].time;
}

vec3 sample_position(uint index, out vec3 direction)
{
    Ray ray = rays[samples[index].ray];
    direction = vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
    return vec3(ray.origin[0], ray.origin[1], ray.origin[2]) + samples[index].t * direction;
}
