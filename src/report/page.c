/* Writes the HTML of reports: texts, numbers, pictures, and the file around them. */
#define _GNU_SOURCE /* memmem */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <cjson/cJSON.h>

#include "report/page.h"
#include "report/thumbnail.h"

#define PICTURE_LIMIT ((size_t)32 << 20)

/* ---- text ----------------------------------------------------------------------------------- */

/* Returns the length in bytes of the UTF-8 sequence at `text`; 0: not valid UTF-8 (RFC 3629). */
static size_t utf8_length(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80       ? 1
                    : text[0] >> 5 == 6  ? 2
                    : text[0] >> 4 == 14 ? 3
                    : text[0] >> 3 == 30 ? 4
                                         : 0;
    if (length < 2)
        return length;
    uint32_t code = text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) /* also stops at the end of the text */
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff,
         no_character = code >= 0xfffe && code <= 0xffff;
    return code < least[length] || code > 0x10ffff || surrogate || no_character ? 0 : length;
}

static const char *replacement(unsigned char byte)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f ? "\xef\xbf\xbd"
                                                                             : NULL;
    }
}

/* Adds a text with the replacements of bytes, and U+FFFD for bytes that are not UTF-8. */
static void add_clean(struct base_text *page, const char *text,
                      const char *(*replace)(unsigned char))
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        const char *escaped = replace(*at);
        size_t length = utf8_length(at);
        if (escaped || length == 0)
            base_text_add(page, "%s", escaped ? escaped : "\xef\xbf\xbd");
        else
            base_text_add_bytes(page, at, length);
        at += length ? length : 1;
    }
}

void page_text(struct base_text *page, const char *text)
{
    add_clean(page, text, replacement);
}

/* "</script" and "<!--" must not end the element or change how it is read. */
static const char *json_replacement(unsigned char byte)
{
    return byte == '<' ? "\\u003c" : NULL;
}

void page_json(struct base_text *page, const char *json)
{
    add_clean(page, json, json_replacement);
}

void page_number(struct base_text *page, double value, int digits)
{
    if (isfinite(value))
        base_text_add(page, "%.*f", digits, value);
    else
        base_text_add(page, "–");
}

void page_number_cell(struct base_text *page, double value, int digits, const char *unit)
{
    base_text_add(page, "<td class=\"number\">");
    page_number(page, value, digits);
    base_text_add(page, "%s</td>", isfinite(value) ? unit : "");
}

void page_count(struct base_text *page, double value)
{
    if (!(value >= 0.0 && value < 1e15)) {
        page_number(page, (double)NAN, 0);
        return;
    }
    char digits[32];
    int size = snprintf(digits, sizeof(digits), "%.0f", value);
    for (int i = 0; i < size; i++)
        base_text_add(page, "%s%c", i > 0 && (size - i) % 3 == 0 ? "\xe2\x80\xaf" : "", digits[i]);
}

void page_step_name(char name[PAGE_STEP_NAME], double step)
{
    snprintf(name, PAGE_STEP_NAME, isfinite(step) ? "step %.0f" : "an unknown step", step);
}

void page_swatch(struct base_text *page, const char *css_class)
{
    base_text_add(page,
                  "<svg class=\"swatch\" viewBox=\"0 0 20 8\" aria-hidden=\"true\">"
                  "<path class=\"curve %s\" d=\"M1 4H19\"/></svg>",
                  css_class);
}

/* ---- tiles and facts ------------------------------------------------------------------------ */

void page_tile_begin(struct base_text *page, const char *label)
{
    base_text_add(page, "<div class=\"tile\"><dt>%s</dt><dd class=\"value\">", label);
}

void page_tile_end(struct base_text *page, const char *more)
{
    base_text_add(page, "</dd><dd class=\"more\">");
    page_text(page, more);
    base_text_add(page, "</dd></div>\n");
}

void page_fact(struct base_text *page, const char *name, const char *value)
{
    if (value == NULL)
        return;
    base_text_add(page, "<div><dt>%s</dt><dd>", name);
    page_text(page, value);
    base_text_add(page, "</dd></div>\n");
}

/* ---- pictures ------------------------------------------------------------------------------- */

static const char *picture_type(const unsigned char *bytes, size_t size)
{
    if (size > 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "image/png";
    if (size > 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
        return "image/jpeg";
    return NULL;
}

static void add_base64(struct base_text *page, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char block[4096];
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);
        block[used++] = digits[group >> 18];
        block[used++] = digits[group >> 12 & 63];
        block[used++] = left > 1 ? digits[group >> 6 & 63] : '=';
        block[used++] = left > 2 ? digits[group & 63] : '=';
        if (used == sizeof(block) || left <= 3) {
            base_text_add_bytes(page, block, used);
            used = 0;
        }
    }
}

/* Returns whether a path stays inside the run directory. The summary of another user's run must not
 * embed other files of this machine into a page that is passed on. */
static bool is_inside(const char *path)
{
    if (base_path_is_absolute(path))
        return false;
    for (const char *component = path; component; component = strpbrk(component, "/\\")) {
        component += strspn(component, "/\\");
        if (strcspn(component, "/\\") == 2 && strncmp(component, "..", 2) == 0)
            return false;
    }
    return true;
}

static vkn_status read_picture(const char *folder, const char *path, unsigned char **bytes,
                               size_t *size)
{
    char *joined = base_path_join(folder, path);
    if (joined == NULL)
        return VKN_ERROR;
    char *data = NULL;
    vkn_status status = base_file_read(joined, PICTURE_LIMIT, &data, size);
    free(joined);
    *bytes = (unsigned char *)data;
    return status;
}

static void add_note(struct base_text *page, const char *path, const char *problem)
{
    base_text_add(page, "<span class=\"absent\">");
    page_text(page, path);
    base_text_add(page, "%s</span>", problem);
}

/* Reads a picture file, scaled down to `edge` pixels unless `edge` is 0. */
static vkn_status read_small(const char *folder, const char *path, uint32_t edge,
                             unsigned char **bytes, size_t *size)
{
    if (edge == 0)
        return read_picture(folder, path, bytes, size);
    char *joined = base_path_join(folder, path);
    if (joined == NULL)
        return VKN_ERROR;
    struct thumbnail thumbnail;
    vkn_status status = thumbnail_read(joined, edge, &thumbnail);
    free(joined);
    *bytes = thumbnail.png;
    *size = thumbnail.size;
    return status;
}

static void add_image(struct base_text *page, const char *type, const char *alt,
                      const unsigned char *bytes, size_t size)
{
    base_text_add(page, "<img alt=\"");
    page_text(page, alt);
    base_text_add(page, "\" src=\"data:%s;base64,", type);
    add_base64(page, bytes, size);
    base_text_add(page, "\"/>");
}

bool page_picture(struct base_text *page, const char *folder, const char *path, const char *alt,
                  uint32_t edge, size_t *budget)
{
    if (page->failed) /* keeps the recorded error */
        return false;
    if (path == NULL || !is_inside(path)) {
        add_note(page, path ? path : "", path ? ": not inside the run directory" : "not recorded");
        return false;
    }
    unsigned char *bytes = NULL;
    size_t size = 0;
    vkn_status status = read_small(folder, path, edge, &bytes, &size);
    if (status != VKN_OK) {
        page->failed |= status != VKN_BAD_INPUT; /* out of memory or a read error */
        add_note(page, path, ": cannot be read");
        return false;
    }
    const char *type = picture_type(bytes, size);
    bool fits = type != NULL && size <= *budget;
    if (fits) {
        *budget -= size;
        add_image(page, type, alt, bytes, size);
    } else {
        add_note(page, path,
                 type ? ": left out, because the page is large already"
                      : ": not a PNG or JPEG file");
    }
    free(bytes);
    return fits;
}

/* ---- the document ---------------------------------------------------------------------------- */

void page_section(struct base_text *page, const char *id, const char *title)
{
    base_text_add(page, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

/* What a page is filled with. */
struct filling {
    const struct page_document *document;
    const void *context;
    char nonce[33];
};

static void add_data(struct base_text *page, const cJSON *data)
{
    char *json = data ? base_json_print_unformatted(data) : NULL;
    page->failed |= data && !json;
    page_json(page, json ? json : "{}");
    free(json);
}

/* Replaces a slot of the page: "@{title}" and so on. */
static void fill(struct base_text *page, const struct filling *filling, const char *slot)
{
    const struct page_document *document = filling->document;
    switch (slot[0]) {
    case 'n': /* nonce */
        base_text_add(page, "%s", filling->nonce);
        break;
    case 't': /* title */
        page_text(page, document->title);
        break;
    case 'c': /* content */
        document->head(page, filling->context);
        base_text_add(page, "<main>\n");
        document->sections(page, filling->context);
        base_text_add(page, "</main>\n");
        break;
    case 'f': /* footer */
        base_text_add(page, "Written by vknerf " VKNERF_VERSION " from %s.", document->sources);
        break;
    default:
        add_data(page, document->data);
    }
}

static void add_page(struct base_text *page, const struct filling *filling)
{
    const struct page_file *file = filling->document->file;
    const char *at = file->begin;
    for (const char *slot; (slot = memmem(at, (size_t)(file->end - at), "@{", 2)) != NULL;) {
        base_text_add_bytes(page, at, (size_t)(slot - at));
        fill(page, filling, slot + 2);
        at = (const char *)memchr(slot, '}', (size_t)(file->end - slot)) + 1;
    }
    base_text_add_bytes(page, at, (size_t)(file->end - at));
}

/* The page's policy admits scripts and styles with a number that no text of a run can contain. */
static void choose_nonce(char nonce[33])
{
    uint8_t bytes[16] = {0};
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        base_log(BASE_LOG_WARNING, "no random numbers for the policy of a page");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
}

vkn_status page_write(const char *path, const struct page_document *document, const void *context)
{
    struct base_text page = {0};
    struct filling filling = {.document = document, .context = context};
    choose_nonce(filling.nonce);
    add_page(&page, &filling);
    vkn_status status = page.failed
                            ? base_fail(VKN_ERROR, "%s: not written: %s", path, vkn_last_error())
                            : base_file_replace(path, page.data, page.size);
    free(page.data);
    return status;
}
