/* Caches folder contents and finds one component of a path in a folder: exactly, or in another
 * Unicode form, case or extension. */
#include "scene/find_component.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scene/image.h"

/* ---- folders --------------------------------------------------------------------------------- */

struct entry {
    char *name, *key; /* scene_name_key(name, true) */
};

struct listing {
    char *folder;
    struct entry *entries; /* sorted by key, then by name */
    size_t count;
};

size_t sorted_lower_bound(const struct sorted *sorted, const char *text, bool *exists)
{
    size_t low = 0, high = sorted->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(*(char **)sorted->items[middle], text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *exists = low < sorted->count && strcmp(*(char **)sorted->items[low], text) == 0;
    return low;
}

vkn_status sorted_insert(struct sorted *sorted, size_t at, void *item)
{
    if (sorted->count == sorted->capacity) {
        size_t new_capacity = sorted->capacity > 0 ? 2 * sorted->capacity : 16;
        void **grown = base_realloc(sorted->items, new_capacity * sizeof(void *));
        if (grown == NULL)
            return base_fail(VKN_ERROR, "out of memory (%zu folders)", new_capacity);
        sorted->items = grown;
        sorted->capacity = new_capacity;
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
        size_t new_capacity = *capacity > 0 ? 2 * *capacity : 64;
        struct entry *grown = base_realloc(listing->entries, new_capacity * sizeof(*grown));
        if (grown == NULL)
            return base_fail(VKN_ERROR, "out of memory (%zu names)", new_capacity);
        listing->entries = grown;
        *capacity = new_capacity;
    }
    struct entry *entry = &listing->entries[listing->count++];
    *entry = (struct entry){base_format("%s", name), scene_name_key(name, true)};
    return entry->name != NULL && entry->key != NULL ? VKN_OK : VKN_ERROR;
}

/* Reads a folder's entries. A folder that cannot be read counts as empty. */
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

static vkn_status get_listing(struct finder *finder, const char *folder,
                              const struct listing **listing)
{
    bool exists = false;
    size_t at = sorted_lower_bound(&finder->listings, folder, &exists);
    if (!exists) {
        struct listing *made = base_alloc(1, sizeof(*made));
        if (made == NULL)
            return VKN_ERROR;
        made->folder = base_format("%s", folder);
        vkn_status status = made->folder != NULL ? read_folder(made) : VKN_ERROR;
        if (status == VKN_OK)
            status = sorted_insert(&finder->listings, at, made);
        if (status != VKN_OK) {
            free_listing(made);
            return status;
        }
    }
    *listing = finder->listings.items[at];
    return VKN_OK;
}

/* Returns the first entry with that key; sets *count to the number of such entries. */
static const struct entry *find_entries(const struct listing *listing, const char *key,
                                        size_t *count)
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

vkn_status finder_lists(struct finder *finder, const char *name, bool *listed)
{
    const struct listing *listing = NULL;
    size_t count = 0;
    BASE_TRY(get_listing(finder, finder->folder, &listing));
    find_entries(listing, name, &count);
    *listed = count > 0;
    return VKN_OK;
}

void finder_free_listings(struct finder *finder)
{
    for (size_t i = 0; i < finder->listings.count; i++)
        free_listing(finder->listings.items[i]);
    free(finder->listings.items);
}

/* ---- one component of a name ----------------------------------------------------------------- */

static bool is_kind(const char *path, enum component_kind kind)
{
    struct stat status;
    if (kind == COMPONENT_ANY_FILE)
        return base_file_exists(path);
    return kind == COMPONENT_FOLDER ? base_is_folder(path)
                                    : stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void found_add(struct found *found, char *path)
{
    if (found->path == NULL)
        found->path = path;
    else if (found->other == NULL && !same_file(found->path, path))
        found->other = path;
    else
        free(path);
}

vkn_status component_exact(const char *folder, const char *name, enum component_kind kind,
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

/* A name, or a name without extension, to compare entries with. */
struct wanted {
    const char *name;
    char *key, *form; /* scene_name_key in lower case; scene_name_key in the given case */
};

static vkn_status init_wanted(const char *name, struct wanted *wanted)
{
    *wanted = (struct wanted){name, scene_name_key(name, true), scene_name_key(name, false)};
    return wanted->key != NULL && wanted->form != NULL ? VKN_OK : VKN_ERROR;
}

static void free_wanted(struct wanted *wanted)
{
    free(wanted->key);
    free(wanted->form);
}

/* Sets *matches: whether the name of an entry with the wanted key begins like the wanted name,
 * apart from `difference` (0, FOUND_UNICODE_FORM or FOUND_CASE). */
static vkn_status begins_like(const struct entry *entry, const struct wanted *wanted,
                              unsigned difference, bool *matches)
{
    *matches =
        difference == FOUND_CASE || strncmp(entry->name, wanted->name, strlen(wanted->name)) == 0;
    if (*matches || difference != FOUND_UNICODE_FORM)
        return VKN_OK;
    char *form = scene_name_key(entry->name, false);
    *matches = form != NULL && strncmp(form, wanted->form, strlen(wanted->form)) == 0;
    free(form);
    return form != NULL ? VKN_OK : VKN_ERROR;
}

/* Adds the entries that have the key and match the wanted name. */
static vkn_status add_matches(const struct listing *listing, const char *key,
                              const struct wanted *wanted, unsigned difference,
                              enum component_kind kind, struct found *found)
{
    size_t count = 0;
    const struct entry *entries = find_entries(listing, key, &count);
    for (size_t i = 0; i < count; i++) {
        bool matches = false;
        BASE_TRY(begins_like(&entries[i], wanted, difference, &matches));
        char *path = matches ? base_path_join(listing->folder, entries[i].name) : NULL;
        if (matches && path == NULL)
            return VKN_ERROR;
        if (matches && is_kind(path, kind))
            found_add(found, path);
        else
            free(path);
    }
    return VKN_OK;
}

vkn_status component_similar(struct finder *finder, const char *folder, const char *name,
                             enum component_kind kind, struct found *found)
{
    static const unsigned differences[] = {FOUND_UNICODE_FORM, FOUND_CASE};
    const struct listing *listing = NULL;
    struct wanted wanted;
    BASE_TRY(get_listing(finder, folder, &listing));
    vkn_status status = init_wanted(name, &wanted);
    for (size_t i = 0; i < BASE_COUNT(differences) && found->path == NULL && status == VKN_OK;
         i++) {
        status = add_matches(listing, wanted.key, &wanted, differences[i], kind, found);
        found->differences |= found->path != NULL ? differences[i] : 0;
    }
    free_wanted(&wanted);
    return status;
}

static vkn_status add_extensions(const struct listing *listing, const struct wanted *stem,
                                 const char *const *endings, unsigned difference,
                                 struct found *found)
{
    for (; *endings != NULL; endings++) {
        char *key = base_format("%s.%s", stem->key, *endings);
        vkn_status status =
            key != NULL ? add_matches(listing, key, stem, difference, COMPONENT_REGULAR_FILE, found)
                        : VKN_ERROR;
        free(key);
        BASE_TRY(status);
    }
    found->differences |= found->path != NULL ? difference : 0;
    return VKN_OK;
}

vkn_status component_image(struct finder *finder, const char *folder, const char *stem,
                           struct found *found)
{
    static const unsigned differences[] = {0, FOUND_UNICODE_FORM, FOUND_CASE};
    const struct listing *listing = NULL;
    struct wanted wanted;
    BASE_TRY(get_listing(finder, folder, &listing));
    vkn_status status = init_wanted(stem, &wanted);
    for (size_t i = 0; i < IMAGE_ENDINGS * BASE_COUNT(differences); i++)
        if (found->path == NULL && status == VKN_OK)
            status = add_extensions(listing, &wanted, image_endings[i / BASE_COUNT(differences)],
                                    differences[i % BASE_COUNT(differences)], found);
    free_wanted(&wanted);
    return status;
}
