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

/* Checks that tags are nested and closed, attributes quoted, and & begins a reference. */
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

/* Checks that the page loads nothing: pictures are inside, the only address is the namespace's. */
static inline void assert_self_contained(const char *page)
{
    static const char *const outside[] = {"url(",  "@import", "src=\"http", "src=\"//",
                                          "<link", "<iframe", "fetch(",     "XMLHttp"};
    for (size_t i = 0; i < BASE_COUNT(outside); i++)
        if (strstr(page, outside[i]))
            fail_msg("the page holds %s", outside[i]);
    assert_int_equal(html_count(page, "://"), 1);
    assert_has(page, "xmlns=\"http://www.w3.org/1999/xhtml\"");
    assert_int_equal(html_count(page, "<img "), html_count(page, "\" src=\"data:image/"));
    assert_int_equal(html_count(page, "<script"), 1);
    assert_int_equal(html_count(page, "href"), html_count(page, "<a href=\"#"));
}

/* Checks that the table of contents has every section, in order, with its heading. */
static inline void assert_contents(const char *page)
{
    static const char section[] = "<section id=\"", title[] = "\">\n<h2>";
    const char *entry = page;
    size_t count = 0;
    for (const char *at = page; entry && (at = strstr(at, section)); count++) {
        const char *id = at + sizeof(section) - 1, *id_end = strchr(id, '"');
        const char *name = id_end + sizeof(title) - 1, *name_end = strstr(name, "</h2>");
        assert_int_equal(strncmp(id_end, title, sizeof(title) - 1), 0);
        char *line = base_format("<a href=\"#%.*s\">%.*s</a>", (int)(id_end - id), id,
                                 (int)(name_end - name), name);
        entry = strstr(entry, line);
        if (!entry)
            fail_msg("the contents lack %s", line);
        free(line);
        at = name_end;
    }
    assert_int_equal(html_count(page, "<section"), count);
    assert_int_equal(html_count(page, "<a href"), count);
}

/* Checks that every stage has a slider and two labelled lists, usable by keyboard. */
static inline void assert_sliders(const char *page, size_t expected)
{
    static const char input[] =
        "<input type=\"range\" min=\"0\" max=\"100\" value=\"50\" aria-label=\"";
    assert_int_equal(html_count(page, "<div class=\"stage\">"), expected);
    assert_int_equal(html_count(page, input), expected);
    assert_int_equal(html_count(page, "<select aria-label=\"picture on the left\">"), expected);
    assert_int_equal(html_count(page, "<select aria-label=\"picture on the right\">"), expected);
}

/* Reads and checks the page at `path`; the caller frees it. */
static inline char *html_read(const char *path)
{
    char *page;
    size_t size;
    assert_int_equal(base_file_read(path, 1 << 26, &page, &size), VKN_OK);
    assert_int_equal(strlen(page), size);
    assert_well_formed(page);
    assert_self_contained(page);
    assert_contents(page);
    return page;
}

#endif
