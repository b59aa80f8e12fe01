/* Emulates an Intel GPU behind the kernel's xe driver, as a library that tools/vendors.sh preloads
 * into a Vulkan program. Mesa's ANV lists the GPU, opens it and compiles pipelines for it;
 * submitted work does nothing and finishes at once. Mesa has such libraries for AMD and NVIDIA
 * (mesa-drm-shim). Written from the kernel's headers (drm.h, xe_drm.h) and Mesa's requests.
 *
 *   XE_SHIM=bmg | lnl | dg2 | mtl   the GPU; default bmg
 *   XE_SHIM_DEBUG=1                 prints unknown requests
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <drm/drm.h>
#include <drm/xe_drm.h>

#define NODE "/dev/dri/renderD128"

/* ---- the GPUs -------------------------------------------------------------------------------- */

static const struct gpu {
    const char *name;
    uint16_t device_id, revision;
    uint16_t ip_major, ip_minor; /* of the graphics IP */
    uint32_t subslices, eus;     /* Xe cores, and vector engines of each */
    uint64_t vram;
} gpus[] = {
    {"bmg", 0xe20b, 0, 20, 1, 20, 8, 12ull << 30},   /* Arc B580 */
    {"lnl", 0x64a0, 4, 20, 4, 8, 8, 0},              /* Arc 140V */
    {"dg2", 0x56a0, 8, 12, 55, 32, 16, 16ull << 30}, /* Arc A770 */
    {"mtl", 0x7d55, 4, 12, 71, 8, 16, 0},            /* Meteor Lake: no XMX */
};

static const struct gpu *gpu(void)
{
    const char *name = getenv("XE_SHIM");
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++)
        if (!name || strcmp(gpus[i].name, name) == 0)
            return &gpus[i];
    /* Measurements of another GPU would be recorded under this name. */
    fprintf(stderr, "xe_shim: XE_SHIM=%s: not one of bmg, lnl, dg2, mtl\n", name);
    exit(1);
}

/* ---- queries --------------------------------------------------------------------------------- */

static uint32_t fill_engines(void *to)
{
    static const uint16_t classes[] = {DRM_XE_ENGINE_CLASS_RENDER, DRM_XE_ENGINE_CLASS_COPY,
                                       DRM_XE_ENGINE_CLASS_COMPUTE};
    struct drm_xe_query_engines *list = to;
    uint32_t count = sizeof classes / sizeof classes[0];
    if (list) {
        list->num_engines = count;
        for (uint32_t i = 0; i < count; i++)
            list->engines[i].instance.engine_class = classes[i];
    }
    return sizeof *list + count * sizeof list->engines[0];
}

static uint32_t fill_regions(void *to)
{
    struct drm_xe_query_mem_regions *list = to;
    uint32_t count = gpu()->vram ? 2 : 1;
    if (list) {
        list->num_mem_regions = count;
        list->mem_regions[0] =
            (struct drm_xe_mem_region){.mem_class = DRM_XE_MEM_REGION_CLASS_SYSMEM,
                                       .min_page_size = 4096,
                                       .total_size = 16ull << 30};
        if (count > 1)
            list->mem_regions[1] =
                (struct drm_xe_mem_region){.mem_class = DRM_XE_MEM_REGION_CLASS_VRAM,
                                           .instance = 1,
                                           .min_page_size = 65536,
                                           .total_size = gpu()->vram,
                                           .cpu_visible_size = gpu()->vram};
    }
    return sizeof *list + count * sizeof list->mem_regions[0];
}

static uint32_t fill_config(void *to)
{
    struct drm_xe_query_config *config = to;
    if (config) {
        config->num_params = 5;
        config->info[DRM_XE_QUERY_CONFIG_REV_AND_DEVICE_ID] = gpu()->device_id | gpu()->revision
                                                                                     << 16;
        config->info[DRM_XE_QUERY_CONFIG_FLAGS] =
            gpu()->vram ? DRM_XE_QUERY_CONFIG_FLAG_HAS_VRAM : 0;
        config->info[DRM_XE_QUERY_CONFIG_MIN_ALIGNMENT] = gpu()->vram ? 65536 : 4096;
        config->info[DRM_XE_QUERY_CONFIG_VA_BITS] = 48;
        config->info[DRM_XE_QUERY_CONFIG_MAX_EXEC_QUEUE_PRIORITY] = 1;
    }
    return sizeof *config + 5 * sizeof config->info[0];
}

static uint32_t fill_gts(void *to)
{
    struct drm_xe_query_gt_list *list = to;
    if (list) {
        list->num_gt = 1;
        list->gt_list[0] = (struct drm_xe_gt){.type = DRM_XE_QUERY_GT_TYPE_MAIN,
                                              .reference_clock = 19200000,
                                              .near_mem_regions = gpu()->vram ? 2 : 1,
                                              .far_mem_regions = 1,
                                              .ip_ver_major = gpu()->ip_major,
                                              .ip_ver_minor = gpu()->ip_minor,
                                              .ip_ver_rev = gpu()->revision};
    }
    return sizeof *list + sizeof list->gt_list[0];
}

static uint32_t add_mask(uint8_t *to, uint32_t at, uint16_t type, uint64_t mask)
{
    struct drm_xe_query_topology_mask *entry = (void *)(to + at);
    if (to) {
        entry->type = type;
        entry->num_bytes = 8;
        memcpy(entry->mask, &mask, 8);
    }
    return at + sizeof *entry + 8;
}

static uint32_t fill_topology(void *to)
{
    uint64_t subslices = (1ull << gpu()->subslices) - 1, eus = (1ull << gpu()->eus) - 1;
    uint32_t at = add_mask(to, 0, DRM_XE_TOPO_DSS_GEOMETRY, subslices);
    at = add_mask(to, at, DRM_XE_TOPO_DSS_COMPUTE, subslices);
    at = add_mask(to, at, DRM_XE_TOPO_L3_BANK, 0xff);
    return add_mask(to, at,
                    gpu()->ip_major >= 20 ? DRM_XE_TOPO_SIMD16_EU_PER_DSS : DRM_XE_TOPO_EU_PER_DSS,
                    eus);
}

static uint32_t fill_cycles(void *to)
{
    struct drm_xe_query_engine_cycles *cycles = to;
    static uint64_t now;
    if (cycles) {
        cycles->engine_cycles = now += 1000;
        cycles->cpu_timestamp = now * 52;
        cycles->width = 36;
    }
    return sizeof *cycles;
}

static uint32_t fill_firmware(void *to)
{
    struct drm_xe_query_uc_fw_version *version = to;
    if (version) {
        version->branch_ver = 0;
        version->major_ver = 1;
        version->minor_ver = 13;
    }
    return sizeof *version;
}

/* A table of key, number of 32-bit words, words; key 15 is the number of threads of a vector
 * engine. Mesa requires the table but not its contents. */
static uint32_t fill_hwconfig(void *to)
{
    static const uint32_t table[] = {15, 1, 8};
    if (to)
        memcpy(to, table, sizeof table);
    return sizeof table;
}

static int query(struct drm_xe_device_query *q)
{
    static uint32_t (*const fill[])(void *) = {
        [DRM_XE_DEVICE_QUERY_ENGINES] = fill_engines,
        [DRM_XE_DEVICE_QUERY_MEM_REGIONS] = fill_regions,
        [DRM_XE_DEVICE_QUERY_CONFIG] = fill_config,
        [DRM_XE_DEVICE_QUERY_GT_LIST] = fill_gts,
        [DRM_XE_DEVICE_QUERY_HWCONFIG] = fill_hwconfig,
        [DRM_XE_DEVICE_QUERY_GT_TOPOLOGY] = fill_topology,
        [DRM_XE_DEVICE_QUERY_ENGINE_CYCLES] = fill_cycles,
        [DRM_XE_DEVICE_QUERY_UC_FW_VERSION] = fill_firmware,
    };
    if (q->query >= sizeof fill / sizeof fill[0] || !fill[q->query]) {
        if (getenv("XE_SHIM_DEBUG"))
            fprintf(stderr, "xe_shim: unknown query %u\n", q->query);
        errno = EINVAL;
        return -1;
    }
    void *to = q->data ? (void *)(uintptr_t)q->data : NULL;
    q->size = fill[q->query](to);
    return 0;
}

/* ---- ioctls ---------------------------------------------------------------------------------- */

static int node = -1; /* memory file that backs mapped buffers */
static uint64_t node_size;
static uint32_t next_handle = 1;
static uint64_t offsets[1 << 16]; /* of buffers in the file, by handle */

static void copy_text(char *to, size_t *room, const char *text)
{
    size_t length = strlen(text);
    if (to && *room)
        memcpy(to, text, length < *room ? length : *room);
    *room = length;
}

static int answer(unsigned long request, void *argument)
{
    switch (request) {
    case DRM_IOCTL_VERSION: {
        struct drm_version *v = argument;
        v->version_major = 1;
        v->version_minor = v->version_patchlevel = 0;
        copy_text(v->name, &v->name_len, "xe");
        copy_text(v->date, &v->date_len, "20240101");
        copy_text(v->desc, &v->desc_len, "xe_shim");
        return 0;
    }
    case DRM_IOCTL_GET_CAP:
        ((struct drm_get_cap *)argument)->value = 1;
        return 0;
    case DRM_IOCTL_SYNCOBJ_CREATE:
        ((struct drm_syncobj_create *)argument)->handle = next_handle++;
        return 0;
    case DRM_IOCTL_XE_DEVICE_QUERY:
        return query(argument);
    case DRM_IOCTL_XE_GEM_CREATE: {
        struct drm_xe_gem_create *create = argument;
        create->handle = next_handle++;
        offsets[create->handle & 0xffff] = node_size;
        node_size += (create->size + 0x1fffff) & ~0x1fffffull;
        return ftruncate(node, (off_t)node_size);
    }
    case DRM_IOCTL_XE_GEM_MMAP_OFFSET: {
        struct drm_xe_gem_mmap_offset *map = argument;
        map->offset = offsets[map->handle & 0xffff];
        return 0;
    }
    case DRM_IOCTL_XE_VM_CREATE:
        ((struct drm_xe_vm_create *)argument)->vm_id = next_handle++;
        return 0;
    case DRM_IOCTL_XE_EXEC_QUEUE_CREATE:
        ((struct drm_xe_exec_queue_create *)argument)->exec_queue_id = next_handle++;
        return 0;
    case DRM_IOCTL_XE_EXEC_QUEUE_GET_PROPERTY:
        ((struct drm_xe_exec_queue_get_property *)argument)->value = 0;
        return 0;
    case DRM_IOCTL_SYNCOBJ_QUERY: { /* reports all work as finished */
        struct drm_syncobj_timeline_array *array = argument;
        for (uint32_t i = 0; i < array->count_handles; i++)
            ((uint64_t *)(uintptr_t)array->points)[i] = UINT64_MAX / 2;
        return 0;
    }
    case DRM_IOCTL_GEM_CLOSE:
    case DRM_IOCTL_SYNCOBJ_DESTROY:
    case DRM_IOCTL_SYNCOBJ_WAIT:
    case DRM_IOCTL_SYNCOBJ_RESET:
    case DRM_IOCTL_SYNCOBJ_SIGNAL:
    case DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT:
    case DRM_IOCTL_SYNCOBJ_TRANSFER:
    case DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL:
    case DRM_IOCTL_XE_VM_DESTROY:
    case DRM_IOCTL_XE_VM_BIND:
    case DRM_IOCTL_XE_EXEC:
    case DRM_IOCTL_XE_EXEC_QUEUE_DESTROY:
    case DRM_IOCTL_XE_WAIT_USER_FENCE:
        return 0;
    default:
        if (getenv("XE_SHIM_DEBUG"))
            fprintf(stderr, "xe_shim: unknown ioctl %#lx\n", request);
        errno = EINVAL;
        return -1;
    }
}

static bool is_node(int fd)
{
    struct stat mine, other;
    return node >= 0 && fd > 2 &&
           (fd == node || (fstat(fd, &other) == 0 && fstat(node, &mine) == 0 &&
                           mine.st_ino == other.st_ino && mine.st_dev == other.st_dev));
}

int ioctl(int fd, unsigned long request, ...)
{
    static int (*real)(int, unsigned long, ...);
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (((request >> 8) & 0xff) == DRM_IOCTL_BASE && is_node(fd))
        return answer(request, argument);
    if (!real)
        real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    return real(fd, request, argument);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_node(void)
{
    if (node < 0)
        node = memfd_create("xe_shim", MFD_CLOEXEC);
    return fcntl(node, F_DUPFD_CLOEXEC, 3);
}

#define OPEN(name)                                                           \
    int name(const char *path, int flags, ...)                               \
    {                                                                        \
        static int (*real)(const char *, int, ...);                          \
        va_list arguments;                                                   \
        va_start(arguments, flags);                                          \
        int mode = va_arg(arguments, int);                                   \
        va_end(arguments);                                                   \
        if (strcmp(path, NODE) == 0)                                         \
            return open_node();                                              \
        if (!real)                                                           \
            real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        return real(path, flags, mode);                                      \
    }
OPEN(open)
OPEN(open64)

#define STAT(name, type)                                                          \
    int name(const char *path, struct type *s)                                    \
    {                                                                             \
        static int (*real)(const char *, struct type *);                          \
        if (strcmp(path, NODE) == 0) {                                            \
            memset(s, 0, sizeof *s);                                              \
            s->st_mode = S_IFCHR | 0666;                                          \
            s->st_rdev = makedev(226, 128);                                       \
            return 0;                                                             \
        }                                                                         \
        if (!real)                                                                \
            real = (int (*)(const char *, struct type *))dlsym(RTLD_NEXT, #name); \
        return real(path, s);                                                     \
    }
STAT(stat, stat)
STAT(stat64, stat64)

/* ---- libdrm's device list, with the layout of xf86drm.h -------------------------------------- */

struct pci_bus {
    uint16_t domain;
    uint8_t bus, dev, func;
};
struct pci_device {
    uint16_t vendor_id, device_id, subvendor_id, subdevice_id;
    uint8_t revision_id;
};
struct device {
    char **nodes;        /* primary, control, render */
    int available_nodes; /* bits */
    int bustype;         /* 0: PCI */
    struct pci_bus *bus;
    struct pci_device *info;
};

static struct device *the_device(void)
{
    static char name[] = NODE, none[] = "";
    static char *nodes[3] = {none, none, name};
    static struct pci_bus bus = {0, 3, 0, 0};
    static struct pci_device info;
    static struct device device = {nodes, 1 << 2, 0, &bus, &info};
    info = (struct pci_device){0x8086, gpu()->device_id, 0x8086, 0x1020, (uint8_t)gpu()->revision};
    return &device;
}

int drmGetDevices2(uint32_t flags, struct device *devices[], int most)
{
    (void)flags;
    if (devices && most > 0)
        devices[0] = the_device();
    return 1;
}

int drmGetDevice2(int fd, uint32_t flags, struct device **device)
{
    (void)flags;
    if (!is_node(fd))
        return -ENODEV;
    *device = the_device();
    return 0;
}

void drmFreeDevice(struct device **device)
{
    *device = NULL;
}

void drmFreeDevices(struct device *devices[], int count)
{
    (void)devices;
    (void)count;
}
