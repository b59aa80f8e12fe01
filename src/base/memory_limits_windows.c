/* Determines how much memory the process can still allocate on Windows. */
#include <windows.h>

#include "base/internal.h"

struct base_memory_limits base_memory_limits(const char *root)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    (void)root;
    if (!GlobalMemoryStatusEx(&status))
        return (struct base_memory_limits){UINT64_MAX, UINT64_MAX};
    /* The system grants no more than its page files can hold, even while memory is free. */
    uint64_t granted = status.ullAvailPageFile;
    return (struct base_memory_limits){
        .total = status.ullTotalPhys,
        .available = status.ullAvailPhys < granted ? status.ullAvailPhys : granted,
    };
}

uint64_t base_address_space(void)
{
    return 0;
}
