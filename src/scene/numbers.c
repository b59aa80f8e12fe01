/* Reads the numbers of small text files, such as NSVF's matrices. */
#include "scene/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_SIZE ((size_t)64 << 10)

#define BLANKS " \t\r\v\f"

static bool ends_word(char c)
{
    return c == '\0' || strchr(BLANKS "\n#", c) != NULL;
}

/* Reads the numbers of a line; leaves *text at the line's end. */
static vkn_status read_line(const char *file, size_t line, const char *begin, const char **text,
                            struct numbers *numbers, size_t *found)
{
    const char *at = *text;
    *found = 0;
    for (at += strspn(at, BLANKS); *at != '\0' && *at != '\n'; at += strspn(at, BLANKS)) {
        if (*at == '#') {
            at += strcspn(at, "\n");
            continue;
        }
        char *end = NULL;
        double value = strtod(at, &end);
        if (end == at || !ends_word(*end))
            return base_fail(VKN_BAD_INPUT, "%s: line %zu: not a number", file, line);
        if (!isfinite(value) && numbers->bad_line == 0) {
            numbers->bad_line = line;
            numbers->bad_index = numbers->count;
        }
        if (numbers->count < MOST_NUMBERS) {
            numbers->values[numbers->count] = value;
            numbers->begins[numbers->count] = (size_t)(at - begin);
            numbers->ends[numbers->count] = (size_t)(end - begin);
        }
        numbers->count++;
        ++*found;
        at = end;
    }
    *text = at;
    return VKN_OK;
}

static void count_row(struct numbers *numbers, size_t line, size_t found)
{
    if (numbers->rows++ == 0)
        numbers->columns = found;
    if (numbers->even && found != numbers->columns) {
        numbers->even = false;
        numbers->uneven_line = line;
        numbers->uneven_count = found;
    }
}

static vkn_status parse_numbers(const char *file, const char *begin, struct numbers *numbers)
{
    const char *text = begin;
    for (size_t line = 1; *text != '\0'; line++) {
        size_t found = 0;
        BASE_TRY(read_line(file, line, begin, &text, numbers, &found));
        text += *text == '\n' ? 1 : 0;
        if (numbers->skips_sizes && found == 2)
            numbers->count -= found;
        else if (found > 0)
            count_row(numbers, line, found);
    }
    return VKN_OK;
}

vkn_status numbers_check_finite(const char *file, const struct numbers *numbers, size_t needed)
{
    if (numbers->bad_index >= needed)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: line %zu: not a finite number", file, numbers->bad_line);
}

vkn_status numbers_fail_uneven(const char *file, const struct numbers *numbers)
{
    return base_fail(VKN_BAD_INPUT, "%s: line %zu: %zu numbers, where the first line has %zu", file,
                     numbers->uneven_line, numbers->uneven_count, numbers->columns);
}

vkn_status numbers_read_text(const char *file, bool skips_sizes, char **text,
                             struct numbers *numbers)
{
    size_t size = 0;
    *numbers = (struct numbers){.even = true, .bad_index = SIZE_MAX, .skips_sizes = skips_sizes};
    BASE_TRY(base_text_read(file, MAX_FILE_SIZE, text, &size));
    size_t length = strlen(*text);
    vkn_status status =
        length == size
            ? parse_numbers(file, *text, numbers)
            : base_fail(VKN_BAD_INPUT, "%s: not a text (byte %zu is zero)", file, length);
    if (status != VKN_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

vkn_status numbers_read(const char *file, bool skips_sizes, struct numbers *numbers)
{
    char *text = NULL;
    BASE_TRY(numbers_read_text(file, skips_sizes, &text, numbers));
    free(text);
    return VKN_OK;
}
