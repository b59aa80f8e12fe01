/* Finds files by similar names. Each step is tried only when the steps before it found nothing:
 *   1. the written name, or with .png, .jpg or .jpeg added when it has no extension;
 *   2. the written name in another Unicode form, then in another case;
 *   3. another extension (.png, .jpg, .jpeg, then the others of image_endings), first with the
 *      written form and case of the name;
 *   4. steps 1 to 3 for the name with / for \ and without file://, then with %20 etc. decoded;
 *   5. when no file was found in the written folder of the name: the name without its first folder,
 *      without its first two, and so on, in the finder's folder and its subfolders. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "scene/capture.h"
#include "scene/find_component.h"

/* Number of components at the end of a name that are searched; the leading ones are dropped. */
#define MOST_COMPONENTS 16u

vkn_status finder_open(const char *folder, const char *const *subfolders, struct finder **finder)
{
    struct finder *made = base_alloc(1, sizeof(*made));
    *finder = made;
    if (made == NULL)
        return VKN_ERROR;
    made->subfolders = subfolders;
    made->folder = base_format("%s", folder);
    if (made->folder == NULL)
        finder_close(finder);
    return *finder != NULL ? VKN_OK : VKN_ERROR;
}

void finder_close(struct finder **finder)
{
    struct finder *closed = *finder;
    *finder = NULL;
    if (closed == NULL)
        return;
    finder_free_listings(closed);
    for (size_t i = 0; i < closed->used_folders.count; i++) {
        free(*(char **)closed->used_folders.items[i]);
        free(closed->used_folders.items[i]);
    }
    free(closed->used_folders.items);
    free(closed->folder);
    free(closed);
}

/* Frees *found after a failure; returns `status`. */
static vkn_status free_on_failure(struct found *found, vkn_status status)
{
    if (status != VKN_OK) {
        free(found->path);
        free(found->other);
        *found = (struct found){0};
    }
    return status;
}

/* ---- the last component of a name ------------------------------------------------------------ */

/* Returns the length of a name without its extension. An extension is a dot, a letter and at most
 * four more letters or digits, so that r_0.5 has none. */
static size_t stem_length(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *dot = strrchr(name, '.');
    bool has_extension = dot != NULL && dot > name && dot[1] != '\0' &&
                         strchr(letters, dot[1]) != NULL && strlen(dot) <= 6 &&
                         dot[1 + strspn(dot + 1, more)] == '\0';
    return has_extension ? (size_t)(dot - name) : strlen(name);
}

/* Finds the last component of a name in a folder. */
static vkn_status find_last(struct finder *finder, const char *folder, const char *name,
                            struct found *found)
{
    size_t stem = stem_length(name);
    bool has_extension = name[stem] != '\0';
    BASE_TRY(component_exact(folder, name,
                             found->differences == 0 ? COMPONENT_ANY_FILE : COMPONENT_REGULAR_FILE,
                             found));
    if (found->path == NULL && !has_extension) {
        char *png = base_format("%s.png", name);
        vkn_status status =
            png != NULL ? component_exact(folder, png, COMPONENT_REGULAR_FILE, found) : VKN_ERROR;
        free(png);
        BASE_TRY(status);
    }
    if (found->path == NULL)
        BASE_TRY(component_similar(finder, folder, name, COMPONENT_REGULAR_FILE, found));
    if (found->path == NULL && has_extension) {
        char *start = base_format("%.*s", (int)stem, name);
        vkn_status status =
            start != NULL ? component_image(finder, folder, start, found) : VKN_ERROR;
        free(start);
        BASE_TRY(status);
        found->differences |= found->path != NULL ? FOUND_EXTENSION : 0;
    }
    if (found->path != NULL)
        return VKN_OK;
    BASE_TRY(component_image(finder, folder, name, found));
    found->differences |= found->path != NULL && has_extension ? FOUND_EXTENSION : 0;
    return VKN_OK;
}

/* ---- a whole name ---------------------------------------------------------------------------- */

/* Replaces *folder by its subfolder of that name. Sets *folder to NULL when no subfolder matches,
 * or when two match, which are then returned in *found. */
static vkn_status enter_folder(struct finder *finder, const char *name, char **folder,
                               struct found *found)
{
    struct found next = {0};
    vkn_status status = component_exact(*folder, name, COMPONENT_FOLDER, &next);
    if (status == VKN_OK && next.path == NULL)
        status = component_similar(finder, *folder, name, COMPONENT_FOLDER, &next);
    free_on_failure(&next, status);
    free(*folder);
    *folder = NULL;
    found->differences |= next.differences;
    if (next.other != NULL) {
        found->path = next.path;
        found->other = next.other;
    } else {
        *folder = next.path;
    }
    return status;
}

/* Finds start/name, where the name may contain folders. */
static vkn_status find_below(struct finder *finder, const char *start, const char *name,
                             struct found *found)
{
    char *folder = base_format("%s", start);
    vkn_status status = folder != NULL ? VKN_OK : VKN_ERROR;
    for (const char *slash; status == VKN_OK && folder != NULL && (slash = strchr(name, '/'));
         name = slash + 1) {
        size_t length = (size_t)(slash - name);
        if (length == 0 || (length == 1 && name[0] == '.'))
            continue;
        char *component = base_format("%.*s", (int)length, name);
        status = component != NULL ? enter_folder(finder, component, &folder, found) : VKN_ERROR;
        free(component);
    }
    if (status == VKN_OK && folder != NULL && name[0] != '\0')
        status = find_last(finder, folder, name, found);
    free(folder);
    return status;
}

/* Finds an absolute path. Only its last component may differ, as it leads outside of the scene. */
static vkn_status find_absolute(struct finder *finder, const char *name, struct found *found)
{
    char *folder = base_path_folder(name);
    const char *slash = strrchr(name, '/'), *last = slash != NULL ? slash + 1 : name;
    if (folder == NULL)
        return VKN_ERROR;
    vkn_status status = base_is_folder(folder) ? find_last(finder, folder, last, found) : VKN_OK;
    free(folder);
    return status;
}

static vkn_status find_written(struct finder *finder, const char *name, struct found *found)
{
    return base_path_is_absolute(name) ? find_absolute(finder, name, found)
                                       : find_below(finder, finder->folder, name, found);
}

static int hex(char digit)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, digit);
    return digit != '\0' && at != NULL ? (int)(at - digits) % 16 : -1;
}

bool scene_decode_percent(char *name)
{
    char *to = name;
    for (const char *from = name; *from != '\0'; from++) {
        int high = *from == '%' ? hex(from[1]) : -1, low = high >= 0 ? hex(from[2]) : -1;
        int byte = low >= 0 ? 16 * high + low : 0;
        bool decoded = byte >= ' ' && byte != '/' && byte != '\\' && byte != 0x7f;
        *to++ = decoded ? (char)byte : *from;
        from += decoded ? 2 : 0;
    }
    bool changed = *to != '\0';
    *to = '\0';
    return changed;
}

/* Returns the name with / as separator and without file://, in fresh memory. */
static char *normalize_separators(const char *name)
{
    static const char scheme[] = "file://";
    bool has_scheme = strncmp(name, scheme, strlen(scheme)) == 0;
    char *normalized = base_format("%s", name + (has_scheme ? strlen(scheme) : 0));
    for (char *c = normalized; c != NULL && *c != '\0'; c++)
        *c = (char)(*c == '\\' ? '/' : *c);
    return normalized;
}

/* Returns the folder part of a name with normalised separators, without ./, in fresh memory. */
static char *written_folder(const char *name)
{
    char *normalized = normalize_separators(name),
         *slash = normalized != NULL ? strrchr(normalized, '/') : NULL;
    if (normalized == NULL)
        return NULL;
    if (slash != NULL)
        *slash = '\0';
    const char *start = slash != NULL ? normalized : "";
    while (strncmp(start, "./", 2) == 0)
        start += 2;
    char *folder = base_format("%s", strcmp(start, ".") == 0 ? "" : start);
    free(normalized);
    return folder;
}

static vkn_status mark_used_folder(struct finder *finder, const char *name)
{
    bool exists = false;
    char *folder = written_folder(name), **item = NULL;
    if (folder == NULL)
        return VKN_ERROR;
    size_t at = sorted_lower_bound(&finder->used_folders, folder, &exists);
    if (!exists)
        item = base_alloc(1, sizeof(*item));
    vkn_status status = exists || item != NULL ? VKN_OK : VKN_ERROR;
    if (item != NULL) {
        *item = folder;
        status = sorted_insert(&finder->used_folders, at, item);
    }
    if (item != NULL && status == VKN_OK)
        return VKN_OK;
    free(item);
    free(folder);
    return status;
}

static vkn_status is_used_folder(const struct finder *finder, const char *name, bool *used)
{
    char *folder = written_folder(name);
    if (folder == NULL)
        return VKN_ERROR;
    sorted_lower_bound(&finder->used_folders, folder, used);
    free(folder);
    return VKN_OK;
}

vkn_status finder_find_as_written(struct finder *finder, const char *name, struct found *found)
{
    *found = (struct found){0};
    if (strlen(name) >= PATH_MAX)
        return VKN_OK;
    vkn_status status = find_written(finder, name, found);
    char *normalized = normalize_separators(name);
    if (status == VKN_OK && normalized == NULL)
        status = VKN_ERROR;
    if (status == VKN_OK && found->path == NULL && strcmp(normalized, name) != 0) {
        *found = (struct found){0};
        status = find_written(finder, normalized, found);
    }
    if (status == VKN_OK && found->path == NULL && scene_decode_percent(normalized)) {
        *found = (struct found){.differences = FOUND_ESCAPED};
        status = find_written(finder, normalized, found);
    }
    free(normalized);
    if (status == VKN_OK && found->path != NULL && found->other == NULL)
        status = mark_used_folder(finder, name);
    return free_on_failure(found, status);
}

/* ---- other folders --------------------------------------------------------------------------- */

/* Splits a name, in place, into components, without ".", ".." and drives; returns their number. */
static size_t split_components(char *name, const char *components[MOST_COMPONENTS])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *component = strtok_r(name, "/", &rest); component != NULL;
         component = strtok_r(NULL, "/", &rest)) {
        bool is_drive = component[0] != '\0' && component[1] == ':' && component[2] == '\0';
        if (is_drive || strcmp(component, ".") == 0 || strcmp(component, "..") == 0)
            continue;
        if (count == MOST_COMPONENTS)
            memmove(components, components + 1, --count * sizeof(*components));
        components[count++] = component;
    }
    return count;
}

static char *join_components(const char *const *components, size_t count)
{
    struct base_text text = {0};
    for (size_t i = 0; i < count; i++)
        base_text_add(&text, "%s%s", i > 0 ? "/" : "", components[i]);
    return text.failed ? NULL : text.data;
}

/* Searches a subfolder of the finder's folder ("": the folder itself); adds matches to *found. */
static vkn_status search_subfolder(struct finder *finder, const char *subfolder, const char *name,
                                   struct found *found)
{
    char *folder = base_format("%s", finder->folder);
    struct found match = {.differences = FOUND_FOLDER};
    vkn_status status = folder != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && subfolder[0] != '\0')
        status = enter_folder(finder, subfolder, &folder, &match);
    if (status == VKN_OK && folder != NULL)
        status = find_below(finder, folder, name, &match);
    free(folder);
    found->differences |= match.path != NULL ? match.differences : 0;
    if (match.path != NULL)
        found_add(found, match.path);
    if (match.other != NULL)
        found_add(found, match.other);
    return status;
}

/* Searches images_2, images_3, ... until one of the folders has the image. */
static vkn_status search_smaller_copies(struct finder *finder, const char *name,
                                        struct found *found)
{
    for (unsigned factor = 2; factor <= CAPTURE_MAX_FACTOR && found->path == NULL; factor++) {
        char subfolder[16];
        bool listed = false;
        snprintf(subfolder, sizeof(subfolder), "images_%u", factor);
        BASE_TRY(finder_lists(finder, subfolder, &listed));
        if (listed)
            BASE_TRY(search_subfolder(finder, subfolder, name, found));
    }
    return VKN_OK;
}

static vkn_status search_subfolders(struct finder *finder, const char *name, bool any_size,
                                    struct found *found)
{
    bool has_no_folder = strchr(name, '/') == NULL;
    if (!has_no_folder)
        BASE_TRY(search_subfolder(finder, "", name, found));
    for (size_t i = 0; finder->subfolders != NULL && finder->subfolders[i] != NULL; i++)
        if (has_no_folder || finder->subfolders[i][0] != '\0')
            BASE_TRY(search_subfolder(finder, finder->subfolders[i], name, found));
    return found->path == NULL && any_size ? search_smaller_copies(finder, name, found) : VKN_OK;
}

vkn_status finder_find_elsewhere(struct finder *finder, const char *name, bool any_size,
                                 struct found *found)
{
    bool used = false;
    const char *components[MOST_COMPONENTS];
    *found = (struct found){0};
    BASE_TRY(is_used_folder(finder, name, &used));
    if (used || strlen(name) >= PATH_MAX)
        return VKN_OK;
    char *normalized = normalize_separators(name);
    vkn_status status = normalized != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        found->differences = scene_decode_percent(normalized) ? FOUND_ESCAPED : 0;
    size_t count = status == VKN_OK ? split_components(normalized, components) : 0;
    for (size_t first = 0; first < count && status == VKN_OK && found->path == NULL; first++) {
        char *end = join_components(components + first, count - first);
        status = end != NULL ? search_subfolders(finder, end, any_size, found) : VKN_ERROR;
        free(end);
    }
    free(normalized);
    return free_on_failure(found, status);
}

vkn_status finder_find_exact(struct finder *finder, const char *name, struct found *found)
{
    *found = (struct found){0};
    return component_exact(finder->folder, name, COMPONENT_ANY_FILE, found);
}

vkn_status finder_find_in_folder(struct finder *finder, const char *folder, const char *name,
                                 struct found *found)
{
    *found = (struct found){0};
    vkn_status status = component_exact(folder, name, COMPONENT_ANY_FILE, found);
    if (status == VKN_OK && found->path == NULL)
        status = component_similar(finder, folder, name, COMPONENT_REGULAR_FILE, found);
    return free_on_failure(found, status);
}

vkn_status finder_find_folder(struct finder *finder, const char *name, struct found *found)
{
    *found = (struct found){0};
    vkn_status status = component_exact(finder->folder, name, COMPONENT_FOLDER, found);
    if (status == VKN_OK && found->path == NULL)
        status = component_similar(finder, finder->folder, name, COMPONENT_FOLDER, found);
    return free_on_failure(found, status);
}
