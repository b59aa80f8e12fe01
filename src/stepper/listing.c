/* Copies samples and rays to the arrays of struct vkn_samples. */
#include <stddef.h>
#include <string.h>

#include "stepper/internal.h"

#define UNBOUND GPU_BINDINGS

static const struct {
    const char *name;
    size_t member;   /* of struct vkn_samples */
    uint32_t number; /* of its binding */
    uint32_t bytes;  /* of an element */
    bool by_ray;     /* an element for each ray, else for each sample */
} table[LISTING_ARRAYS] = {
#define ARRAY(member, number, bytes, by_ray) \
    {"sample " #member, offsetof(struct vkn_samples, member), number, bytes, by_ray}
    ARRAY(positions, BIND_LISTED_POSITIONS, 12, false),
    ARRAY(directions, BIND_LISTED_DIRECTIONS, 12, false),
    ARRAY(distances, BIND_LISTED_DISTANCES, 4, false),
    ARRAY(widths, BIND_LISTED_WIDTHS, 4, false),
    ARRAY(times, BIND_LISTED_TIMES, 4, false),
    ARRAY(ray_indices, BIND_LISTED_RAYS, 4, false),
    ARRAY(values, UNBOUND, 16, false),
    ARRAY(densities, BIND_LISTED_DENSITIES, 4, false),
    ARRAY(ranges, BIND_LISTED_RANGES, 8, true),
    ARRAY(targets, BIND_LISTED_TARGETS, 16, true),
    ARRAY(backgrounds, BIND_LISTED_BACKGROUNDS, 12, true),
    ARRAY(views, BIND_LISTED_VIEWS, 4, true),
    ARRAY(in_loss, BIND_LISTED_IN_LOSS, 4, true),
#undef ARRAY
};

struct vkn_array listing_array(const struct gpu_buffer *buffer, bool host)
{
    return (struct vkn_array){
        .data = host ? buffer->mapped : NULL,
        .buffer = (uint64_t)(uintptr_t)buffer->handle,
        .size = buffer->size,
    };
}

static struct vkn_array *member_of(struct vkn_samples *samples, size_t array)
{
    return (struct vkn_array *)((char *)samples + table[array].member);
}

const struct gpu_buffer *listing_buffer(const struct listing *listing,
                                        const struct vkn_array *array)
{
    size_t i = 0;
    while (table[i].member != (size_t)((const char *)array - (const char *)&listing->samples))
        i++;
    return &listing->arrays[i];
}

static vkn_status allocate(struct gpu_device *device, const struct buffers *buffers, bool host,
                           struct listing *listing)
{
    uint64_t samples = buffers->at[BIND_SAMPLES].size / sizeof(struct Sample);
    uint64_t rays = buffers->at[BIND_RAYS].size / sizeof(struct Ray);
    struct gpu_buffer_request requests[LISTING_ARRAYS];
    for (size_t i = 0; i < LISTING_ARRAYS; i++)
        requests[i] = (struct gpu_buffer_request){
            &listing->arrays[i], table[i].name, table[i].bytes * (table[i].by_ray ? rays : samples),
            host ? GPU_HOST : GPU_DEVICE};
    const struct gpu_buffer_request listed = {&listing->listed, "listed samples",
                                              sizeof(struct ListSummary), GPU_HOST};
    BASE_TRY(gpu_arena_create(device, requests, LISTING_ARRAYS, &listing->arena));
    return gpu_arena_create(device, &listed, 1, &listing->listed_arena);
}

static vkn_status bind(struct gpu_device *device, const struct buffers *buffers,
                       struct listing *listing)
{
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    buffers_bind(buffers, (1u << SET_SIZE) - 1u, bound);
    bound[BIND_LIST_SUMMARY] = &listing->listed;
    for (size_t i = 0; i < LISTING_ARRAYS; i++)
        if (table[i].number != UNBOUND)
            bound[table[i].number] = &listing->arrays[i];
    return gpu_bindings_create(device, bound, &listing->bindings);
}

vkn_status listing_create(struct gpu_device *device, const struct buffers *buffers, bool host,
                          struct listing *listing)
{
    *listing = (struct listing){0};
    BASE_TRY(allocate(device, buffers, host, listing));
    for (size_t i = 0; i < LISTING_ARRAYS; i++)
        *member_of(&listing->samples, i) = listing_array(&listing->arrays[i], host);
    return bind(device, buffers, listing);
}

void listing_destroy(struct listing *listing)
{
    gpu_bindings_destroy(&listing->bindings);
    gpu_arena_destroy(&listing->arena);
    gpu_arena_destroy(&listing->listed_arena);
}

void listing_record(const struct listing *listing, struct gpu_recording *recording,
                    const struct gpu_pipeline *list_samples, uint32_t kind, uint32_t rays,
                    uint32_t groups)
{
    const struct Push push = {.a = kind, .b = rays};
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &listing->listed, 0, UINT64_MAX, 0);
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, list_samples, listing->bindings, &push, sizeof push, groups);
}

const struct ListSummary *listing_read(struct listing *listing)
{
    const struct ListSummary *listed = listing->listed.mapped;
    listing->samples.count = listed->samples;
    listing->samples.rays = listed->rays;
    return listed;
}
