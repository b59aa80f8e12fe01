/* Text from files and file names, made fit for a line of a message and for JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

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

/* C0 and C1 controls, and what ends a line or turns the direction of writing. */
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
