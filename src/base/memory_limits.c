/* Determines how much memory the process can still allocate: the smallest limit of the machine, the
 * control groups and the process. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/internal.h"

#define TEXT_BYTES 16384 /* largest part of a file of /proc or /sys that is read */
#define PATH_BYTES 4096

/* ---- files ----------------------------------------------------------------------------------- */

static bool read_text(const char *root, const char *path, char text[TEXT_BYTES])
{
    char name[PATH_BYTES];
    if ((size_t)snprintf(name, sizeof name, "%s%s", root, path) >= sizeof name)
        return false;
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return false;
    text[fread(text, 1, TEXT_BYTES - 1, file)] = '\0';
    fclose(file);
    return text[0] != '\0';
}

/* Reads the number after `key` at the start of a line. Returns false if no line starts with the
 * key, or "max" follows. */
static bool find_number(const char *text, const char *key, uint64_t *number)
{
    size_t size = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        if (strncmp(line, key, size) != 0)
            continue;
        line += size;
        line += strspn(line, ": \t");
        char *end = NULL;
        *number = strtoull(line, &end, 10);
        return end != line;
    }
    return false;
}

static bool read_number(const char *root, const char *folder, const char *file, const char *key,
                        uint64_t *number)
{
    char path[PATH_BYTES], text[TEXT_BYTES];
    return (size_t)snprintf(path, sizeof path, "%s/%s", folder, file) < sizeof path &&
           read_text(root, path, text) && find_number(text, key, number);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void lower_to(uint64_t *least, uint64_t value)
{
    *least = value < *least ? value : *least;
}

static void apply_machine(const char *root, struct base_memory_limits *limits)
{
    uint64_t kibibytes;
    if (read_number(root, "/proc", "meminfo", "MemTotal", &kibibytes))
        lower_to(&limits->total, kibibytes << 10);
    if (read_number(root, "/proc", "meminfo", "MemAvailable", &kibibytes))
        lower_to(&limits->available, kibibytes << 10);
}

/* ---- control groups -------------------------------------------------------------------------- */

/* Names of files and keys in the two versions of control groups. */
struct group_files {
    const char *limit, *usage, *inactive, *active;
};
static const struct group_files version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                             "total_inactive_file", "total_active_file"};
static const struct group_files version_2 = {"memory.max", "memory.current", "inactive_file",
                                             "active_file"};

/* Applies the limits of one group. Its usage includes cached file pages, which the kernel drops
 * when memory is short. */
static void apply_group(const char *root, const char *folder, const struct group_files *files,
                        struct base_memory_limits *limits)
{
    uint64_t limit, usage, inactive = 0, active = 0;
    if (!read_number(root, folder, files->limit, "", &limit) ||
        !read_number(root, folder, files->usage, "", &usage))
        return;
    (void)read_number(root, folder, "memory.stat", files->inactive, &inactive);
    (void)read_number(root, folder, "memory.stat", files->active, &active);
    uint64_t cached = inactive + active < usage ? inactive + active : usage;
    lower_to(&limits->total, limit);
    lower_to(&limits->available, limit > usage - cached ? limit - (usage - cached) : 0);
}

/* Applies the limits of a control group and its ancestors. In a container without its own
 * namespace, the path's first folders are not visible, and the root is the container's group. */
static void apply_groups(const char *root, const char *mount, const char *path,
                         const struct group_files *files, struct base_memory_limits *limits)
{
    char folder[PATH_BYTES];
    size_t mount_length = strlen(mount);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, path) >= sizeof folder)
        return;
    for (char *slash = folder; slash != NULL;) {
        apply_group(root, folder, files, limits);
        slash = strrchr(folder + mount_length, '/');
        if (slash != NULL)
            *slash = '\0';
    }
}

/* Returns whether the list of controllers ("cpu,memory" in a line "4:cpu,memory:/path") contains
 * memory. */
static bool names_memory(const char *controllers)
{
    for (const char *name = controllers; *name != '\0';) {
        size_t size = strcspn(name, ",");
        if (size == 6 && strncmp(name, "memory", size) == 0)
            return true;
        name += size + (name[size] == ',');
    }
    return false;
}

static void apply_control_groups(const char *root, struct base_memory_limits *limits)
{
    char text[TEXT_BYTES], *rest = NULL;
    if (!read_text(root, "/proc/self/cgroup", text))
        return;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        if (strncmp(line, "0:", 2) == 0 && controllers[1] == '\0')
            apply_groups(root, "/sys/fs/cgroup", path, &version_2, limits);
        else if (names_memory(controllers + 1))
            apply_groups(root, "/sys/fs/cgroup/memory", path, &version_1, limits);
    }
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Columns of /proc/self/statm (proc(5)). read_statm converts pages to bytes; 0: not readable. */
enum { STATM_ADDRESS_SPACE, STATM_DATA = 5, STATM_COLUMNS };

static void read_statm(const char *root, uint64_t bytes[STATM_COLUMNS])
{
    char text[TEXT_BYTES] = "", *next = text;
    long page = sysconf(_SC_PAGESIZE);
    read_text(root, "/proc/self/statm", text);
    for (size_t i = 0; i < STATM_COLUMNS; i++)
        bytes[i] = strtoull(next, &next, 10) * (uint64_t)(page > 0 ? page : 0);
}

uint64_t base_address_space(void)
{
    uint64_t bytes[STATM_COLUMNS];
    read_statm("", bytes);
    return bytes[STATM_ADDRESS_SPACE];
}

/* Applies the limits of the address space and of private writable memory (ulimit -v, -d). */
static void apply_process(const char *root, struct base_memory_limits *limits)
{
    const struct {
        int limit, column;
    } rows[] = {{RLIMIT_AS, STATM_ADDRESS_SPACE}, {RLIMIT_DATA, STATM_DATA}};
    uint64_t bytes[STATM_COLUMNS];
    read_statm(root, bytes);
    for (size_t i = 0; i < BASE_COUNT(rows); i++) {
        struct rlimit limit;
        uint64_t used = bytes[rows[i].column];
        if (used == 0 || getrlimit(rows[i].limit, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
            continue;
        lower_to(&limits->total, limit.rlim_cur);
        lower_to(&limits->available, limit.rlim_cur > used ? limit.rlim_cur - used : 0);
    }
}

/* ---- all limits ------------------------------------------------------------------------------ */

struct base_memory_limits base_memory_limits(const char *root)
{
    struct base_memory_limits limits = {UINT64_MAX, UINT64_MAX};
    apply_machine(root, &limits);
    apply_control_groups(root, &limits);
    apply_process(root, &limits);
    return limits;
}
