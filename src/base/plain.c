/* Text from files as other programs save it: byte order marks, UTF-16, line ends. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct mark {
    const char *bytes;
    size_t size;
    const char *encoding; /* NULL: UTF-8 */
};

/* UTF-32's little-endian mark begins with that of UTF-16, so it comes first. */
static const struct mark marks[] = {{"\xef\xbb\xbf", 3, NULL},
                                    {"\xff\xfe\0\0", 4, "UTF-32"},
                                    {"\0\0\xfe\xff", 4, "UTF-32"},
                                    {"\xff\xfe", 2, "UTF-16"},
                                    {"\xfe\xff", 2, "UTF-16"}};

/* Whether the first characters, up to 16 of them, are all of ASCII and two bytes long, with their
 * zero byte at `zero` (0 or 1). */
static bool is_wide(const char *text, size_t size, size_t zero)
{
    size_t pairs = size / 2 < 16 ? size / 2 : 16;
    for (size_t i = 0; i < pairs; i++) {
        unsigned char character = (unsigned char)text[2 * i + 1 - zero];
        if (text[2 * i + zero] != 0 || character == 0 || character >= 0x80)
            return false;
    }
    return pairs > 1;
}

vkn_status base_text_mark(const char *name, const char *text, size_t size, size_t *mark)
{
    const char *encoding = is_wide(text, size, 0) || is_wide(text, size, 1) ? "UTF-16" : NULL;
    *mark = 0;
    for (size_t i = 0; i < BASE_COUNT(marks); i++) {
        if (size < marks[i].size || memcmp(text, marks[i].bytes, marks[i].size) != 0)
            continue;
        *mark = marks[i].size;
        encoding = marks[i].encoding;
        break;
    }
    return encoding == NULL
               ? VKN_OK
               : base_fail(VKN_BAD_INPUT, "%s: text in %s; save it as UTF-8", name, encoding);
}

static vkn_status clean(const char *name, char *text, size_t *size)
{
    size_t mark = 0;
    BASE_TRY(base_text_mark(name, text, *size, &mark));
    *size -= mark;
    memmove(text, text + mark, *size + 1);
    if (memchr(text, '\n', *size) != NULL)
        return VKN_OK;
    for (char *at = text; (at = memchr(at, '\r', *size - (size_t)(at - text))) != NULL;)
        *at = '\n';
    return VKN_OK;
}

static vkn_status read_text(vkn_status (*read)(const char *, size_t, char **, size_t *),
                            const char *path, size_t limit, char **text, size_t *size)
{
    BASE_TRY(read(path, limit, text, size));
    vkn_status status = clean(path, *text, size);
    if (status != VKN_OK) {
        free(*text);
        *text = NULL;
        *size = 0;
    }
    return status;
}

vkn_status base_text_read(const char *path, size_t limit, char **text, size_t *size)
{
    return read_text(base_file_read, path, limit, text, size);
}

vkn_status base_text_read_any(const char *path, size_t limit, char **text, size_t *size)
{
    return read_text(base_file_read_any, path, limit, text, size);
}
