/* Limits the process's memory to a little more than it uses. Include after cmocka.h. */
#ifndef TESTS_MEMORY_LIMIT_H
#define TESTS_MEMORY_LIMIT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Sets RLIMIT_AS or RLIMIT_DATA to `more` bytes above the current use. Returns the old limit. */
static inline struct rlimit limit_memory(int resource, uint64_t more)
{
    /* proc(5): statm's first number is the address space in pages, the sixth is data. */
    int number = resource == RLIMIT_DATA ? 6 : 1;
    char line[256] = "", *at = line;
    unsigned long long pages = 0;
    struct rlimit before, limit;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    for (int i = 0; i < number; i++)
        pages = strtoull(at, &at, 10);
    assert_true(pages > 0);
    assert_int_equal(getrlimit(resource, &before), 0);
    limit = before;
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    assert_int_equal(setrlimit(resource, &limit), 0);
    return before;
}

#endif
