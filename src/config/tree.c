/* Reads a settings file into a JSON tree, with comments and "parent" files as in instant-ngp. */
#include "config/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#define FILE_LIMIT   ((size_t)1 << 20) /* bytes */
#define MOST_PARENTS 8
#define MOST_KEYS    4096u /* of a file: a merge looks up each key among all others */

vkn_status config_check_file(const char *source, const char *key, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return base_json_fail(source, key, "%s: %s", path, strerror(errno));
    return S_ISREG(status.st_mode) ? VKN_OK
                                   : base_json_fail(source, key, "%s is not a regular file", path);
}

/* Returns the end of the comment that begins at `text`, or `text` if none begins there. */
static char *comment_end(char *text)
{
    if (strncmp(text, "//", 2) == 0)
        return text + strcspn(text, "\r\n");
    char *end = strncmp(text, "/*", 2) == 0 ? strstr(text + 2, "*/") : NULL;
    return end ? end + 2 : text;
}

/* Replaces comments by spaces, so that messages have the lines and columns of the file. */
static void blank_comments(char *text)
{
    bool in_string = false;
    while (*text) {
        char *end = in_string ? text : comment_end(text);
        for (; text < end; text++)
            if (*text != '\n')
                *text = ' ';
        if (*text == '"')
            in_string = !in_string;
        if (*text == '\\' && text[1])
            text++;
        if (*text)
            text++;
    }
}

/* Moves the members of `from` into `into`, object by object (as RFC 7396, except that null is
 * kept). */
static bool merge(cJSON *into, cJSON *from)
{
    while (from->child) {
        cJSON *item = cJSON_DetachItemViaPointer(from, from->child);
        cJSON *existing = cJSON_GetObjectItemCaseSensitive(into, item->string);
        bool good = true;
        if (cJSON_IsObject(existing) && cJSON_IsObject(item)) {
            good = merge(existing, item);
            cJSON_Delete(item);
        } else if (existing) {
            good = cJSON_ReplaceItemViaPointer(into, existing, item);
        } else {
            good = cJSON_AddItemToArray(into, item); /* keeps the item's name */
        }
        if (!good)
            return false;
    }
    return true;
}

/* Counts all items, nested ones included; the parser limits the depth. */
static size_t count_items(const cJSON *tree)
{
    const cJSON *item;
    size_t count = 0;
    cJSON_ArrayForEach (item, tree)
        count += 1 + count_items(item);
    return count;
}

static vkn_status read_tree(const char *file, unsigned depth, cJSON **tree);

/* Merges the file over its parent, if it names one. */
static vkn_status read_parent(const char *file, unsigned depth, cJSON **tree)
{
    cJSON *child = *tree, *named = cJSON_DetachItemFromObjectCaseSensitive(child, "parent");
    cJSON *parent = NULL;
    if (!named)
        return VKN_OK;
    char *folder = base_path_folder(file), *path = NULL;
    vkn_status status = VKN_OK;
    if (!cJSON_IsString(named))
        status = base_json_fail(file, "parent", "not the name of a file");
    else if (depth == MOST_PARENTS)
        status = base_json_fail(file, "parent", "more than %d levels of parents", MOST_PARENTS);
    else if (!folder || !(path = base_path_join(folder, named->valuestring)))
        status = VKN_ERROR;
    else
        status = config_check_file(file, "parent", path);
    if (status == VKN_OK)
        status = read_tree(path, depth + 1, &parent);
    if (status == VKN_OK && !merge(parent, child))
        status = base_fail(VKN_ERROR, "out of memory");
    free(folder);
    free(path);
    cJSON_Delete(named);
    cJSON_Delete(child);
    *tree = parent;
    return status;
}

static vkn_status read_tree(const char *file, unsigned depth, cJSON **tree)
{
    char *text = NULL;
    size_t size = 0;
    BASE_TRY((depth == 0 ? base_text_read_any : base_text_read)(file, FILE_LIMIT, &text, &size));
    if (strlen(text) == size) /* a NUL byte is no JSON */
        blank_comments(text);
    vkn_status status = base_json_parse(file, text, size, tree);
    free(text);
    if (status == VKN_OK && !cJSON_IsObject(*tree))
        status = base_fail(VKN_BAD_INPUT, "%s: not a JSON object", file);
    if (status == VKN_OK && count_items(*tree) > MOST_KEYS)
        status = base_fail(VKN_BAD_INPUT, "%s: more than %u keys and numbers", file, MOST_KEYS);
    return status == VKN_OK ? read_parent(file, depth, tree) : status;
}

vkn_status config_read_tree(const char *file, cJSON **tree)
{
    *tree = NULL;
    vkn_status status = read_tree(file, 0, tree);
    if (status != VKN_OK) {
        cJSON_Delete(*tree);
        *tree = NULL;
    }
    return status;
}
