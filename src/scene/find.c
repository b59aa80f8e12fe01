/* Finds files by names that are not quite theirs. What is written goes first, then each relaxation by itself, and only
 * where it leaves one file to choose:
 *   1. the name as it is written, or with .png, .jpg or .jpeg added where it has no extension;
 *   2. another Unicode form of it, then another case;
 *   3. another extension (.png, .jpg, .jpeg), of the same form and case first;
 *   4. the same of the name with its separators turned (\ to /) and without file://, then with %20 and its like decoded;
 *   5. where nothing in the folder that is written was found, the name without its first folder, without its first two,
 *      and so on, in the finder's folder and its places. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "scene/find.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_PARTS  16u /* of a name, counted from its end: what is further in front is taken away at once */
#define MOST_FACTOR 64u /* of images_N */

static const char *const extensions[] = {"png", "jpg", "jpeg"};

/* ---- folders, read once ------------------------------------------------------------------------ */

struct entry {
    char *name, *key; /* name_key(name, true) */
};

struct listing {
    char *folder;
    struct entry *entries; /* by key, then by name */
    size_t count;
};

/* Pointers in the order of the texts that they begin with. */
struct sorted {
    void **items;
    size_t count, capacity;
};

struct finder {
    char *folder;
    const char *const *places;
    struct sorted listings; /* struct listing */
    struct sorted filled;   /* char **: folders as written in which something has been found */
};

/* Where `text` is, or has to be. */
static size_t lower_bound(const struct sorted *sorted, const char *text, bool *there)
{
    size_t low = 0, high = sorted->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(*(char **)sorted->items[middle], text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *there = low < sorted->count && strcmp(*(char **)sorted->items[low], text) == 0;
    return low;
}

static vkn_status insert(struct sorted *sorted, size_t at, void *item)
{
    if (sorted->count == sorted->capacity) {
        size_t more = sorted->capacity > 0 ? 2 * sorted->capacity : 16;
        void **grown = base_realloc(sorted->items, more * sizeof(void *));
        if (grown == NULL)
            return base_fail(VKN_ERROR, "out of memory (%zu folders)", more);
        sorted->items = grown;
        sorted->capacity = more;
    }
    memmove(sorted->items + at + 1, sorted->items + at, (sorted->count - at) * sizeof(void *));
    sorted->items[at] = item;
    sorted->count++;
    return VKN_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : strcmp(x->name, y->name);
}

static void free_listing(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->entries[i].name);
        free(listing->entries[i].key);
    }
    free(listing->entries);
    free(listing->folder);
    free(listing);
}

static vkn_status add_entry(struct listing *listing, size_t *capacity, const char *name)
{
    if (listing->count == *capacity) {
        size_t more = *capacity > 0 ? 2 * *capacity : 64;
        struct entry *grown = base_realloc(listing->entries, more * sizeof(*grown));
        if (grown == NULL)
            return base_fail(VKN_ERROR, "out of memory (%zu names)", more);
        listing->entries = grown;
        *capacity = more;
    }
    struct entry *entry = &listing->entries[listing->count++];
    *entry = (struct entry){base_format("%s", name), name_key(name, true)};
    return entry->name != NULL && entry->key != NULL ? VKN_OK : VKN_ERROR;
}

/* A folder that cannot be read is empty. */
static vkn_status read_folder(struct listing *listing)
{
    DIR *stream = opendir(listing->folder);
    size_t capacity = 0;
    vkn_status status = VKN_OK;
    for (struct dirent *entry; status == VKN_OK && stream != NULL && (entry = readdir(stream));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = add_entry(listing, &capacity, entry->d_name);
    if (stream != NULL)
        closedir(stream);
    if (status == VKN_OK && listing->count > 1)
        qsort(listing->entries, listing->count, sizeof(*listing->entries), by_key);
    return status;
}

static vkn_status list(struct finder *finder, const char *folder, const struct listing **listing)
{
    bool there = false;
    size_t at = lower_bound(&finder->listings, folder, &there);
    if (!there) {
        struct listing *made = base_alloc(1, sizeof(*made));
        if (made == NULL)
            return VKN_ERROR;
        made->folder = base_format("%s", folder);
        vkn_status status = made->folder != NULL ? read_folder(made) : VKN_ERROR;
        if (status == VKN_OK)
            status = insert(&finder->listings, at, made);
        if (status != VKN_OK) {
            free_listing(made);
            return status;
        }
    }
    *listing = finder->listings.items[at];
    return VKN_OK;
}

/* The entries with that key: `count` from the result on. */
static const struct entry *entries_of(const struct listing *listing, const char *key, size_t *count)
{
    size_t low = 0, high = listing->count, end = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(listing->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < listing->count && strcmp(listing->entries[end].key, key) == 0; end++)
        ;
    *count = end - low;
    return listing->entries + low;
}

vkn_status finder_open(const char *folder, const char *const *places, struct finder **finder)
{
    struct finder *made = base_alloc(1, sizeof(*made));
    *finder = made;
    if (made == NULL)
        return VKN_ERROR;
    made->places = places;
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
    for (size_t i = 0; i < closed->listings.count; i++)
        free_listing(closed->listings.items[i]);
    for (size_t i = 0; i < closed->filled.count; i++) {
        free(*(char **)closed->filled.items[i]);
        free(closed->filled.items[i]);
    }
    free(closed->listings.items);
    free(closed->filled.items);
    free(closed->folder);
    free(closed);
}

/* ---- one part of a name ------------------------------------------------------------------------ */

enum kind { ANY_FILE, REGULAR_FILE, FOLDER };

static bool is_kind(const char *path, enum kind kind)
{
    struct stat status;
    if (kind == ANY_FILE)
        return base_file_exists(path);
    return kind == FOLDER ? base_is_folder(path) : stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Takes `path`, fresh memory, for what is found, or for the second such. */
static void take(struct found *found, char *path)
{
    if (found->path == NULL)
        found->path = path;
    else if (found->other == NULL && !same_file(found->path, path))
        found->other = path;
    else
        free(path);
}

static vkn_status take_exact(const char *folder, const char *name, enum kind kind,
                             struct found *found)
{
    char *path = base_path_join(folder, name);
    if (path == NULL)
        return VKN_ERROR;
    if (is_kind(path, kind))
        found->path = path;
    else
        free(path);
    return VKN_OK;
}

/* Of the entries that are `name` but for form and case, those whose first `length` bytes of it are the same but for what
 * `way` allows: 0, FOUND_FORM, or FOUND_CASE for all. */
static vkn_status take_entries(const struct listing *listing, const char *name, size_t length,
                               unsigned way, enum kind kind, struct found *found)
{
    char *key = name_key(name, true), *start = base_format("%.*s", (int)length, name);
    char *form = start != NULL ? name_key(start, false) : NULL;
    vkn_status status = key != NULL && form != NULL ? VKN_OK : VKN_ERROR;
    size_t count = 0;
    const struct entry *entries = status == VKN_OK ? entries_of(listing, key, &count) : NULL;
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        char *path = base_path_join(listing->folder, entries[i].name);
        char *other = name_key(entries[i].name, false);
        if (path == NULL || other == NULL)
            status = VKN_ERROR;
        bool fits = way == FOUND_CASE || (way == 0 && strncmp(entries[i].name, start, length) == 0) ||
                    (way == FOUND_FORM && other != NULL && strncmp(other, form, strlen(form)) == 0);
        if (status == VKN_OK && fits && is_kind(path, kind))
            take(found, path);
        else
            free(path);
        free(other);
    }
    free(form);
    free(start);
    free(key);
    return status;
}

/* The name in another form, or else in another case. */
static vkn_status take_like(struct finder *finder, const char *folder, const char *name,
                            enum kind kind, struct found *found)
{
    static const unsigned ways[] = {FOUND_FORM, FOUND_CASE};
    const struct listing *listing = NULL;
    BASE_TRY(list(finder, folder, &listing));
    for (size_t i = 0; i < BASE_COUNT(ways) && found->path == NULL; i++) {
        BASE_TRY(take_entries(listing, name, strlen(name), ways[i], kind, found));
        found->ways |= found->path != NULL ? ways[i] : 0;
    }
    return VKN_OK;
}

/* A picture whose name begins with `stem`. */
static vkn_status take_picture(struct finder *finder, const char *folder, const char *stem,
                               struct found *found)
{
    static const unsigned ways[] = {0, FOUND_FORM, FOUND_CASE};
    const struct listing *listing = NULL;
    BASE_TRY(list(finder, folder, &listing));
    for (size_t i = 0; i < BASE_COUNT(ways) && found->path == NULL; i++) {
        for (size_t k = 0; k < BASE_COUNT(extensions); k++) {
            char *name = base_format("%s.%s", stem, extensions[k]);
            vkn_status status = name != NULL ? take_entries(listing, name, strlen(stem), ways[i],
                                                            REGULAR_FILE, found)
                                             : VKN_ERROR;
            free(name);
            BASE_TRY(status);
        }
        found->ways |= found->path != NULL ? ways[i] : 0;
    }
    return VKN_OK;
}

/* Without the extension: a dot, a letter and at most four more letters or digits; all of a name that has none, such as
 * r_0.5. */
static size_t stem_length(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *dot = strrchr(name, '.');
    bool has = dot != NULL && dot > name && dot[1] != '\0' && strchr(letters, dot[1]) != NULL &&
               strlen(dot) <= 6 && dot[1 + strspn(dot + 1, more)] == '\0';
    return has ? (size_t)(dot - name) : strlen(name);
}

/* The last part of a name. */
static vkn_status find_last(struct finder *finder, const char *folder, const char *name,
                            struct found *found)
{
    size_t stem = stem_length(name);
    bool has_extension = name[stem] != '\0';
    BASE_TRY(take_exact(folder, name, found->ways == 0 ? ANY_FILE : REGULAR_FILE, found));
    if (found->path == NULL && !has_extension) {
        char *png = base_format("%s.png", name);
        vkn_status status = png != NULL ? take_exact(folder, png, REGULAR_FILE, found) : VKN_ERROR;
        free(png);
        BASE_TRY(status);
    }
    if (found->path == NULL)
        BASE_TRY(take_like(finder, folder, name, REGULAR_FILE, found));
    if (found->path == NULL && has_extension) {
        char *start = base_format("%.*s", (int)stem, name);
        vkn_status status = start != NULL ? take_picture(finder, folder, start, found) : VKN_ERROR;
        free(start);
        BASE_TRY(status);
        found->ways |= found->path != NULL ? FOUND_EXTENSION : 0;
    }
    if (found->path != NULL)
        return VKN_OK;
    BASE_TRY(take_picture(finder, folder, name, found));
    found->ways |= found->path != NULL && has_extension ? FOUND_EXTENSION : 0;
    return VKN_OK;
}

/* ---- a whole name ------------------------------------------------------------------------------ */

/* From one folder into the next, in the place of *folder, which becomes NULL where there is none or several: these are
 * then in *found. */
static vkn_status step_into(struct finder *finder, const char *name, char **folder,
                            struct found *found)
{
    struct found next = {0};
    vkn_status status = take_exact(*folder, name, FOLDER, &next);
    if (status == VKN_OK && next.path == NULL)
        status = take_like(finder, *folder, name, FOLDER, &next);
    free(*folder);
    *folder = NULL;
    found->ways |= next.ways;
    if (next.other != NULL) {
        found->path = next.path;
        found->other = next.other;
    } else {
        *folder = next.path;
    }
    return status;
}

/* folder/name, where the name may have folders. */
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
        char *part = base_format("%.*s", (int)length, name);
        status = part != NULL ? step_into(finder, part, &folder, found) : VKN_ERROR;
        free(part);
    }
    if (status == VKN_OK && folder != NULL && name[0] != '\0')
        status = find_last(finder, folder, name, found);
    free(folder);
    return status;
}

/* A path of this machine. Folders that are nobody's of this scene are not looked through. */
static vkn_status find_absolute(struct finder *finder, const char *name, struct found *found)
{
    char *folder = base_path_folder(name);
    if (folder == NULL)
        return VKN_ERROR;
    vkn_status status = base_is_folder(folder)
                            ? find_last(finder, folder, strrchr(name, '/') + 1, found)
                            : VKN_OK;
    free(folder);
    return status;
}

static vkn_status find_written(struct finder *finder, const char *name, struct found *found)
{
    return name[0] == '/' ? find_absolute(finder, name, found)
                          : find_below(finder, finder->folder, name, found);
}

static int hex(char digit)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, digit);
    return digit != '\0' && at != NULL ? (int)(at - digits) % 16 : -1;
}

/* In place. What would be a control character or a separator stays. */
static bool decode_percent(char *name)
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

/* Fresh memory: separators as here, and no scheme in front. */
static char *turn_separators(const char *name)
{
    static const char scheme[] = "file://";
    bool has = strncmp(name, scheme, strlen(scheme)) == 0;
    char *turned = base_format("%s", name + (has ? strlen(scheme) : 0));
    for (char *c = turned; c != NULL && *c != '\0'; c++)
        *c = (char)(*c == '\\' ? '/' : *c);
    return turned;
}

/* The folder that a name has, written in one way; fresh memory. */
static char *written_folder(const char *name)
{
    char *turned = turn_separators(name), *slash = turned != NULL ? strrchr(turned, '/') : NULL;
    if (turned == NULL)
        return NULL;
    if (slash != NULL)
        *slash = '\0';
    const char *start = slash != NULL ? turned : "";
    while (strncmp(start, "./", 2) == 0)
        start += 2;
    char *folder = base_format("%s", strcmp(start, ".") == 0 ? "" : start);
    free(turned);
    return folder;
}

static vkn_status mark_filled(struct finder *finder, const char *name)
{
    bool there = false;
    char *folder = written_folder(name), **item = NULL;
    if (folder == NULL)
        return VKN_ERROR;
    size_t at = lower_bound(&finder->filled, folder, &there);
    if (!there)
        item = base_alloc(1, sizeof(*item));
    vkn_status status = there || item != NULL ? VKN_OK : VKN_ERROR;
    if (item != NULL) {
        *item = folder;
        status = insert(&finder->filled, at, item);
    }
    if (item != NULL && status == VKN_OK)
        return VKN_OK;
    free(item);
    free(folder);
    return status;
}

static vkn_status is_filled(const struct finder *finder, const char *name, bool *filled)
{
    char *folder = written_folder(name);
    if (folder == NULL)
        return VKN_ERROR;
    lower_bound(&finder->filled, folder, filled);
    free(folder);
    return VKN_OK;
}

vkn_status finder_written(struct finder *finder, const char *name, struct found *found)
{
    *found = (struct found){0};
    if (strlen(name) >= PATH_MAX)
        return VKN_OK;
    BASE_TRY(find_written(finder, name, found));
    char *turned = turn_separators(name);
    vkn_status status = turned != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && found->path == NULL && strcmp(turned, name) != 0) {
        *found = (struct found){0};
        status = find_written(finder, turned, found);
    }
    if (status == VKN_OK && found->path == NULL && decode_percent(turned)) {
        *found = (struct found){.ways = FOUND_ESCAPED};
        status = find_written(finder, turned, found);
    }
    free(turned);
    if (status == VKN_OK && found->path != NULL && found->other == NULL)
        status = mark_filled(finder, name);
    return status;
}

/* ---- elsewhere --------------------------------------------------------------------------------- */

/* The parts of a name that can be looked for: no "..", no drive. Returns how many; they are written into `name`. */
static size_t split_parts(char *name, const char *parts[MOST_PARTS])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *part = strtok_r(name, "/", &rest); part != NULL; part = strtok_r(NULL, "/", &rest)) {
        bool drive = part[0] != '\0' && part[1] == ':' && part[2] == '\0';
        if (drive || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
            continue;
        if (count == MOST_PARTS)
            memmove(parts, parts + 1, --count * sizeof(*parts));
        parts[count++] = part;
    }
    return count;
}

static char *join_parts(const char *const *parts, size_t count)
{
    struct base_text text = {0};
    for (size_t i = 0; i < count; i++)
        base_text_add(&text, "%s%s", i > 0 ? "/" : "", parts[i]);
    return text.failed ? NULL : text.data;
}

/* Looks in one place, which is a folder of the finder's ("": itself), and adds what is there to *found. */
static vkn_status look_in(struct finder *finder, const char *place, const char *name,
                          struct found *found)
{
    char *folder = base_format("%s", finder->folder);
    struct found here = {.ways = FOUND_FOLDER};
    vkn_status status = folder != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && place[0] != '\0')
        status = step_into(finder, place, &folder, &here);
    if (status == VKN_OK && folder != NULL)
        status = find_below(finder, folder, name, &here);
    free(folder);
    found->ways |= here.path != NULL ? here.ways : 0;
    if (here.path != NULL)
        take(found, here.path);
    if (here.other != NULL)
        take(found, here.other);
    return status;
}

/* images_2, images_3, ...: the first that has it. */
static vkn_status look_in_smaller(struct finder *finder, const char *name, struct found *found)
{
    const struct listing *listing = NULL;
    BASE_TRY(list(finder, finder->folder, &listing));
    for (unsigned factor = 2; factor <= MOST_FACTOR && found->path == NULL; factor++) {
        char place[16];
        size_t count = 0;
        snprintf(place, sizeof(place), "images_%u", factor);
        entries_of(listing, place, &count);
        if (count > 0)
            BASE_TRY(look_in(finder, place, name, found));
    }
    return VKN_OK;
}

static vkn_status look_everywhere(struct finder *finder, const char *name, bool any_size,
                                  struct found *found)
{
    bool bare = strchr(name, '/') == NULL;
    if (!bare)
        BASE_TRY(look_in(finder, "", name, found));
    for (size_t i = 0; finder->places != NULL && finder->places[i] != NULL; i++)
        if (bare || finder->places[i][0] != '\0')
            BASE_TRY(look_in(finder, finder->places[i], name, found));
    return found->path == NULL && any_size ? look_in_smaller(finder, name, found) : VKN_OK;
}

vkn_status finder_elsewhere(struct finder *finder, const char *name, bool any_size,
                            struct found *found)
{
    bool filled = false;
    const char *parts[MOST_PARTS];
    *found = (struct found){0};
    BASE_TRY(is_filled(finder, name, &filled));
    if (filled || strlen(name) >= PATH_MAX)
        return VKN_OK;
    char *turned = turn_separators(name);
    vkn_status status = turned != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        found->ways = decode_percent(turned) ? FOUND_ESCAPED : 0;
    size_t count = status == VKN_OK ? split_parts(turned, parts) : 0;
    for (size_t first = 0; first < count && status == VKN_OK && found->path == NULL; first++) {
        char *end = join_parts(parts + first, count - first);
        status = end != NULL ? look_everywhere(finder, end, any_size, found) : VKN_ERROR;
        free(end);
    }
    free(turned);
    return status;
}

vkn_status finder_exact(struct finder *finder, const char *name, struct found *found)
{
    *found = (struct found){0};
    return take_exact(finder->folder, name, ANY_FILE, found);
}

vkn_status finder_in(struct finder *finder, const char *folder, const char *name, struct found *found)
{
    *found = (struct found){0};
    BASE_TRY(take_exact(folder, name, ANY_FILE, found));
    return found->path == NULL ? take_like(finder, folder, name, REGULAR_FILE, found) : VKN_OK;
}

vkn_status finder_folder(struct finder *finder, const char *name, struct found *found)
{
    *found = (struct found){0};
    BASE_TRY(take_exact(finder->folder, name, FOLDER, found));
    return found->path == NULL ? take_like(finder, finder->folder, name, FOLDER, found) : VKN_OK;
}
