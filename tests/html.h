/* Checks the pages that src/report writes. Include after cmocka.h. */
#ifndef TESTS_HTML_H
#define TESTS_HTML_H

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static inline const char *html_after_attributes(const char *at)
{
    while (*at && *at != '>') {
        if (*at == '"') {
            at = strchr(at + 1, '"');
            assert_non_null(at);
        }
        assert_true(*at != '<' && *at != '\'');
        at++;
    }
    return at;
}

/* Checks that tags are nested and closed, attributes quoted, and & begins a reference; except in
 * scripts and style sheets, whose text has no tags. */
static inline void assert_well_formed(const char *page)
{
    char open[64][16];
    size_t depth = 0;
    for (const char *at = strstr(page, "<html"); *at; at++) {
        if (*at == '&')
            assert_true(strspn(at + 1, "#abcdefghijklmnopqrstuvwxyz0123456789") > 1 &&
                        strchr(at, ';') - at < 8);
        if (*at != '<')
            continue;
        bool closing = at[1] == '/';
        const char *name = at + 1 + closing;
        size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
        assert_true(size > 0 && size < sizeof(open[0]) && depth < BASE_COUNT(open));
        const char *end = html_after_attributes(name);
        assert_int_equal(*end, '>');
        if (closing) {
            assert_true(depth > 0);
            depth--;
            if (strlen(open[depth]) != size || memcmp(open[depth], name, size) != 0)
                fail_msg("<%s> is closed by </%.*s>", open[depth], (int)size, name);
        } else if (end[-1] != '/') {
            memcpy(open[depth], name, size);
            open[depth++][size] = 0;
        }
        at = end;
        if (!closing && strncmp(name, "script", 6) == 0)
            at = strstr(end, "</script>") - 1;
        else if (!closing && strncmp(name, "style", 5) == 0)
            at = strstr(end, "</style>") - 1;
    }
    assert_int_equal(depth, 0);
}

static inline void assert_has(const char *page, const char *part)
{
    if (!strstr(page, part))
        fail_msg("the page lacks: %s", part);
}

static inline size_t html_count(const char *page, const char *part)
{
    size_t count = 0;
    for (const char *at = page; (at = strstr(at, part)); at++)
        count++;
    return count;
}

/* Checks that the page loads nothing: pictures are inside, the only addresses are the namespace's
 * of SVG, and links lead to sections; and that the page's policy admits its own scripts only. */
static inline void assert_self_contained(const char *page)
{
    static const char *const outside[] = {"url(",  "@import", "src=\"http", "src=\"//",
                                          "<link", "<iframe", "fetch(",     "XMLHttp"};
    for (size_t i = 0; i < BASE_COUNT(outside); i++)
        if (strstr(page, outside[i]))
            fail_msg("the page holds %s", outside[i]);
    assert_int_equal(html_count(page, "<img "), html_count(page, "\" src=\"data:image/"));
    assert_int_equal(html_count(page, "<script"), 2); /* data and program */
    assert_int_equal(html_count(page, "</script"), 2);
    assert_has(page, "content=\"default-src 'none'; img-src data:; style-src 'nonce-");
    const char *nonce = strstr(page, "script-src 'nonce-") + strlen("script-src 'nonce-");
    char own[64];
    snprintf(own, sizeof(own), "<script nonce=\"%.32s\"", nonce);
    assert_has(page, own);
    assert_null(strstr(page, " style=\"")); /* which the policy would ignore */
}

/* Removes the part of the page from `begin` to the next `end`. */
static inline void html_cut(char *page, const char *begin, const char *end)
{
    char *from = strstr(page, begin), *to = from ? strstr(from, end) : NULL;
    assert_non_null(to);
    memmove(from, to, strlen(to) + 1);
}

/* Reads and checks the page at `path`. Returns what the page does not share with all pages of its
 * kind, that is without style sheet and program. The caller frees it. */
static inline char *html_read(const char *path)
{
    char *page;
    size_t size;
    assert_int_equal(base_file_read(path, 1 << 26, &page, &size), VKN_OK);
    assert_int_equal(strlen(page), size);
    assert_well_formed(page);
    assert_self_contained(page);
    html_cut(page, "<style", "</style>");
    html_cut(page, "<script nonce=", "</script>");
    assert_null(strstr(page, "://"));
    return page;
}

#ifdef cJSON__h
/* Returns the data of the page's script; the caller deletes it. */
static inline cJSON *html_data(const char *page)
{
    static const char begin[] = "<script id=\"data\" type=\"application/json\">";
    const char *data = strstr(page, begin);
    assert_non_null(data);
    cJSON *json = NULL;
    data += strlen(begin);
    assert_int_equal(
        base_json_parse("data", data, (size_t)(strstr(data, "</script>") - data), &json), VKN_OK);
    return json;
}
#endif

#endif
