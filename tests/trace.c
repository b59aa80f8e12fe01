/* Records which functions and shaders a process executes, for tools/changed.py. With
 * -DVKNERF_TRACE=ON everything is linked with this file and calls it at the beginning of each
 * function (-finstrument-functions). In the folder named by the environment variable VKNERF_TRACE
 * each program and library gets a file FILE.functions with a byte for each address: 1 at the
 * beginning of each called function. All processes of a program map the same file, so that nothing
 * is lost when a process is killed. The file "programs" gets a line "NAME SOURCE" for each created
 * shader. Without the variable nothing is recorded. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Program and library may each contain this file, and some contain it twice. */
#define HOOK  __attribute__((weak, visibility("hidden"), no_instrument_function))
#define INNER __attribute__((no_instrument_function))

/* Bytes from the ELF header to the last function, which comes before constants. Pages that are
 * never written take no memory. */
#define MAPPED ((size_t)8 << 20)

/* The ELF header of the program or library that contains this file. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static unsigned char nothing;
static _Atomic(unsigned char *) bytes; /* NULL: not mapped yet; &nothing: there is no file */

INNER static unsigned char *map_file(void)
{
    const char *folder = getenv("VKNERF_TRACE");
    Dl_info info;
    if (!folder || !dladdr(__ehdr_start, &info) || !info.dli_fname)
        return &nothing;
    const char *slash = strrchr(info.dli_fname, '/');
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.functions", folder, slash ? slash + 1 : info.dli_fname);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return &nothing;
    void *mapped = MAP_FAILED;
    if (ftruncate(file, (off_t)MAPPED) == 0)
        mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    return mapped == MAP_FAILED ? &nothing : mapped;
}

HOOK void __cyg_profile_func_enter(void *function, void *site);
HOOK void __cyg_profile_func_exit(void *function, void *site);
HOOK void gpu_trace_shader(const char *name, const char *source);

HOOK void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    unsigned char *to = atomic_load_explicit(&bytes, memory_order_relaxed);
    if (!to) {
        /* Functions that mapping calls may be instrumented. Two threads may both map the file. */
        atomic_store(&bytes, &nothing);
        to = map_file();
        atomic_store(&bytes, to);
    }
    size_t offset = (size_t)((uintptr_t)function - (uintptr_t)__ehdr_start);
    if (to != &nothing && offset < MAPPED && !to[offset])
        to[offset] = 1;
}

HOOK void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
}

HOOK void gpu_trace_shader(const char *name, const char *source)
{
    const char *folder = getenv("VKNERF_TRACE");
    char path[4096], line[512];
    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/programs", folder);
    int length = snprintf(line, sizeof line, "%s %s\n", name, source);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    if (write(file, line, (size_t)length) < 0) {
        /* This shader is not recorded. */
    }
    close(file);
}
