/* Decodes text files, cleans text for messages and JSON, and makes number formats independent of
 * the locale. */
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- byte order marks, UTF-16, line ends ----------------------------------------------------- */

struct mark {
    const char *bytes;
    size_t size;
    const char *encoding; /* NULL: UTF-8 */
};

/* UTF-32 precedes UTF-16, because UTF-32's little-endian mark begins with UTF-16's. */
static const struct mark marks[] = {{"\xef\xbb\xbf", 3, NULL},
                                    {"\xff\xfe\0\0", 4, "UTF-32"},
                                    {"\0\0\xfe\xff", 4, "UTF-32"},
                                    {"\xff\xfe", 2, "UTF-16"},
                                    {"\xfe\xff", 2, "UTF-16"}};

/* Returns whether the first 16 characters are ASCII in UTF-16, with the zero byte of each pair at
 * `zero` (0 or 1). */
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

vkn_status base_text_bom(const char *name, const char *text, size_t size, size_t *mark)
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
    BASE_TRY(base_text_bom(name, text, *size, &mark));
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

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

size_t base_read_character(const char *bytes, uint32_t *character)
{
    const unsigned char *text = (const unsigned char *)bytes;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = text[0] < 0x80             ? 1
                  : (text[0] & 0xe0) == 0xc0 ? 2
                  : (text[0] & 0xf0) == 0xe0 ? 3
                  : (text[0] & 0xf8) == 0xf0 ? 4
                                             : 0;
    *character = size > 1 ? text[0] & (0x7fu >> size) : text[0];
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *character = *character << 6 | (text[i] & 0x3f);
    }
    bool surrogate = *character >= 0xd800 && *character <= 0xdfff;
    return size == 0 || *character < least[size] || *character > 0x10ffff || surrogate ? 0 : size;
}

/* Control characters C0 and C1, line separators, and changes of the text direction. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void vkn_clean_line(char *text)
{
    while (text && *text != '\0') {
        uint32_t character;
        size_t size = base_read_character(text, &character);
        if (size == 0) {
            *text++ = '?';
            continue;
        }
        if (is_control(character))
            memset(text, ' ', size);
        text += size;
    }
}

bool base_list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    while (list && *list) {
        size_t entry = strcspn(list, ",");
        if (entry == length && strncmp(list, word, length) == 0)
            return true;
        list += entry + (list[entry] == ',');
    }
    return false;
}

bool base_is_utf8(const char *text)
{
    uint32_t character;
    size_t size = 1;
    for (; *text != '\0' && size > 0; text += size)
        size = base_read_character(text, &character);
    return size > 0;
}

char *vkn_to_utf8(const char *text)
{
    struct base_text clean = {0};
    base_text_add_bytes(&clean, "", 0);
    while (text && *text != '\0') {
        uint32_t character;
        size_t size = base_read_character(text, &character);
        if (size > 0)
            base_text_add_bytes(&clean, text, size);
        else
            base_text_add_bytes(&clean, "\xef\xbf\xbd", 3); /* U+FFFD */
        text += size > 0 ? size : 1;
    }
    if (!clean.failed)
        return clean.data;
    free(clean.data);
    return NULL;
}

char *vkn_shell_word(const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
    struct base_text word = {0};
    text = text != NULL ? text : "";
    if (text[0] != '\0' && text[strspn(text, plain)] == '\0')
        return base_format("%s", text);
    base_text_add(&word, "'");
    for (; *text != '\0'; text++)
        base_text_add(&word, "%s%c", *text == '\'' ? "'\\'" : "", *text);
    base_text_add(&word, "'");
    if (!word.failed)
        return word.data;
    free(word.data);
    return NULL;
}

/* ---- locales --------------------------------------------------------------------------------- */

static locale_t c_locale; /* never freed; 0 if out of memory, which changes no locale */

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

void base_c_locale_enter(struct base_c_locale *scope)
{
    static pthread_once_t made = PTHREAD_ONCE_INIT;
    pthread_once(&made, make_c_locale);
    scope->previous = (void *)uselocale(c_locale);
}

void base_c_locale_leave(struct base_c_locale *scope)
{
    uselocale((locale_t)scope->previous);
}
