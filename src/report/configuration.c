/* Adds the configuration and the command of report.html. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"

#define PATH_SIZE 256

/* ---- configuration -------------------------------------------------------------------------- */

char *page_config_value(const struct cJSON *item)
{
    if (cJSON_IsString(item))
        return base_format("%s", item->valuestring);
    if (cJSON_IsNull(item))
        return base_format("default");
    return base_json_print_unformatted(item);
}

static void add_row(void *context, const char *path, const cJSON *item)
{
    struct base_text *page = context;
    char *value = page_config_value(item);
    base_text_add(page, "<tr><th scope=\"row\">");
    page_text(page, path);
    base_text_add(page, "</th><td>");
    page_text(page, value ? value : "");
    base_text_add(page, "</td></tr>\n");
    page->failed |= value == NULL;
    free(value);
}

/* Returns whether the item is one line of the table, as lists of plain values are. */
static bool is_leaf(const cJSON *item)
{
    if (cJSON_IsObject(item))
        return item->child == NULL;
    const cJSON *element;
    cJSON_ArrayForEach (element, item) {
        if (cJSON_IsObject(element) || cJSON_IsArray(element))
            return false;
    }
    return true;
}

/* Recursive; the parser limits the depth. */
static void walk(const char *path, const cJSON *item, page_config_visit visit, void *context)
{
    if (is_leaf(item)) {
        visit(context, path, item);
        return;
    }
    size_t index = 0;
    const cJSON *child;
    cJSON_ArrayForEach (child, item) {
        char longer[PATH_SIZE], number[24];
        snprintf(number, sizeof(number), "%zu", index++);
        snprintf(longer, sizeof(longer), "%s%s%s", path, path[0] ? "." : "",
                 child->string ? child->string : number);
        walk(longer, child, visit, context);
    }
}

void page_config_walk(const struct cJSON *config, page_config_visit visit, void *context)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, config)
        walk(item->string, item, visit, context);
}

static void open_table(struct base_text *page, const char *caption)
{
    base_text_add(page, "<table>\n<caption>");
    page_text(page, caption);
    base_text_add(page, "</caption>\n<tbody>\n");
}

static bool is_command(const cJSON *item)
{
    return strcmp(item->string, "command") == 0;
}

/* Adds the values that are in no group. */
static void add_general(struct base_text *page, const cJSON *config)
{
    bool any = false;
    const cJSON *item;
    cJSON_ArrayForEach (item, config) {
        if (is_command(item) || !is_leaf(item))
            continue;
        if (!any)
            open_table(page, "general");
        any = true;
        add_row(page, item->string, item);
    }
    if (any)
        base_text_add(page, "</tbody>\n</table>\n");
}

void page_config(struct base_text *page, const struct run *run)
{
    page_section(page, "configuration", "Configuration");
    base_text_add(page, "<div class=\"config\">\n");
    add_general(page, run->config);
    const cJSON *item;
    cJSON_ArrayForEach (item, run->config) {
        if (is_command(item) || is_leaf(item))
            continue;
        open_table(page, item->string);
        walk(item->string, item, add_row, page);
        base_text_add(page, "</tbody>\n</table>\n");
    }
    base_text_add(page, "</div>\n</section>\n");
}

/* ---- command -------------------------------------------------------------------------------- */

/* Adds an argument, quoted for a shell. */
static void add_argument(struct base_text *page, const char *argument)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    size_t size = strlen(argument);
    if (size > 0 && strspn(argument, plain) == size) {
        page_text(page, argument);
        return;
    }
    base_text_add(page, "&#39;");
    for (const char *rest = argument; *rest;) {
        size_t length = strcspn(rest, "'");
        char *span = base_format("%.*s", (int)length, rest);
        if (span)
            page_text(page, span);
        free(span);
        rest += length;
        if (*rest == '\'') {
            base_text_add(page, "&#39;\\&#39;&#39;");
            rest++;
        }
    }
    base_text_add(page, "&#39;");
}

void page_command(struct base_text *page, const struct run *run)
{
    const cJSON *command = cJSON_GetObjectItemCaseSensitive(run->config, "command");
    page_section(page, "command", "To reproduce");
    if (!cJSON_IsString(command) && !cJSON_IsArray(command)) {
        base_text_add(
            page, "<p class=\"absent\">config.json does not hold the command.</p>\n</section>\n");
        return;
    }
    base_text_add(page, "<pre>");
    if (cJSON_IsString(command))
        page_text(page, command->valuestring);
    bool first = true;
    const cJSON *argument;
    cJSON_ArrayForEach (argument, command) {
        base_text_add(page, "%s", first ? "" : " ");
        add_argument(page, cJSON_IsString(argument) ? argument->valuestring : "?");
        first = false;
    }
    base_text_add(page, "</pre>\n</section>\n");
}
