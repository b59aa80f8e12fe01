/* Fuzzes the inputs of report.html: config.json, metrics.jsonl and summary.json, separated by a
 * byte 0xff. The first byte of the input is r for the page of a run, c for a comparison of the run
 * with itself. For all texts the page contains only its own data, script and style, and no number
 * NaN. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "report/report.h"

#define PAGE_LIMIT ((size_t)1 << 30)

static const char *const names[] = {"config.json", "metrics.jsonl", "summary.json", "report.html"};

/* The run directory; removed at the end. */
static char folder[256];

static const char *name_file(size_t index)
{
    static char path[sizeof(folder) + 16];
    snprintf(path, sizeof(path), "%s/%s", folder, names[index]);
    return path;
}

static void remove_folder(void)
{
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        unlink(name_file(i));
    rmdir(folder);
}

static void make_folder(void)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL)
        parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* disks are far slower */
    snprintf(folder, sizeof(folder), "%s/fuzz_report.XXXXXX", parent);
    require(mkdtemp(folder) != NULL, "no folder");
    atexit(remove_folder);
}

static void write_file(size_t index, const uint8_t *data, size_t size)
{
    int file = open(name_file(index), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    require(file >= 0 && write(file, data, size) == (ssize_t)size && close(file) == 0,
            "a file cannot be written");
}

static void write_run(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    for (size_t i = 0; i < 3; i++) {
        const uint8_t *stop = i < 2 && data < end ? memchr(data, 0xff, (size_t)(end - data)) : NULL;
        stop = stop != NULL ? stop : end;
        write_file(i, data, (size_t)(stop - data));
        data = stop < end ? stop + 1 : end;
    }
}

static size_t count(const char *text, const char *word)
{
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        found++;
    return found;
}

static void check_page(void)
{
    char *page = NULL;
    size_t size = 0;
    require(base_file_read(name_file(3), PAGE_LIMIT, &page, &size) == VKN_OK, "there is no page");
    require(strlen(page) == size, "a zero byte in the page");
    require(count(page, "<script") == 2 && count(page, "</script") == 2, "not exactly two scripts");
    require(count(page, "<style") == 1 && count(page, "</style") == 1, "not exactly one style");
    require(count(page, "=\"nan") == 0 && count(page, "=\"-nan") == 0 && count(page, "=\"inf") == 0,
            "an attribute is not finite");
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    base_log_threshold(BASE_LOG_NOTHING);
    if (size == 0 || (data[0] != 'r' && data[0] != 'c'))
        return 0;
    if (folder[0] == '\0')
        make_folder();
    write_run(data + 1, size - 1);
    const char *const runs[] = {folder, folder};
    vkn_status status = data[0] == 'r' ? report_write_html(folder, NULL)
                                       : report_write_comparison(runs, 2, name_file(3));
    if (status == VKN_OK) {
        check_page();
        return 0;
    }
    require(status == VKN_BAD_INPUT, "refused, but not as bad input");
    require_message();
    return 0;
}
