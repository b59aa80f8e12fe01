/* Compares lists of items between ranks. */
#include "run/compare.h"

#include <stdlib.h>
#include <string.h>

#include "parallel/parallel.h"
#include "train/train.h"

/* A list is a text with a line "item TAB value" for each item. Hashes begin with '#'. */

static void add_line(struct base_text *list, const char *item, const char *value)
{
    char line[512];
    snprintf(line, sizeof line, "%.240s", item);
    vkn_clean_line(line);
    base_text_add(list, "%s\t", line);
    snprintf(line, sizeof line, "%s", value);
    vkn_clean_line(line);
    base_text_add(list, "%s\n", line);
}

void compare_add_value(struct base_text *list, const char *item, const char *value)
{
    add_line(list, item, value);
}

void compare_add_hash(struct base_text *list, const char *item, uint64_t hash)
{
    char value[24];
    snprintf(value, sizeof value, "#%016llx", (unsigned long long)hash);
    add_line(list, item, value);
}

struct line {
    const char *item, *value;
    size_t item_size, value_size;
};

/* Reads the line at *at and advances *at to the next line; false at the end of the list. */
static bool read_line(const char **at, struct line *line)
{
    const char *tab = strchr(*at, '\t'), *newline = strchr(*at, '\n');
    if (!tab || !newline || tab > newline)
        return false;
    *line = (struct line){*at, tab + 1, (size_t)(tab - *at), (size_t)(newline - tab - 1)};
    *at = newline + 1;
    return true;
}

static bool same(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

/* Fails with this rank's line `mine` and rank 0's line `first`; NULL: rank 0 lists no such item. */
static vkn_status refuse(const char *what, const struct line *mine, const struct line *first)
{
    int item = (int)mine->item_size, value = (int)mine->value_size;
    if (mine->value[0] == '#')
        return base_fail(VKN_BAD_INPUT, "%s from rank 0's: %.*s", what, item, mine->item);
    return base_fail(VKN_BAD_INPUT, "%s from rank 0's: %.*s: %.*s instead of %.*s", what, item,
                     mine->item, value, mine->value, first ? (int)first->value_size : 10,
                     first ? first->value : "none given");
}

/* Compares this rank's list with `first`, rank 0's. */
static vkn_status compare(const char *what, const char *list, const char *first)
{
    struct line mine, theirs;
    while (read_line(&list, &mine)) {
        const char *at = first;
        bool found = false;
        while (!found && read_line(&at, &theirs))
            found = same(mine.item, mine.item_size, theirs.item, theirs.item_size);
        if (!found || !same(mine.value, mine.value_size, theirs.value, theirs.value_size))
            return refuse(what, &mine, found ? &theirs : NULL);
        first = at;
    }
    return VKN_OK;
}

vkn_status compare_lists(struct parallel *comm, const char *what, vkn_status listed,
                         const struct base_text *list)
{
    bool leads = parallel_rank(comm) == 0;
    uint64_t size = leads ? list->size : 0;
    BASE_TRY(train_sync_status(comm, listed == VKN_OK && list->failed ? VKN_ERROR : listed));
    BASE_TRY(parallel_broadcast(comm, &size, sizeof size));
    char *first = base_alloc(size + 1, 1);
    vkn_status status = train_sync_status(comm, first ? VKN_OK : VKN_ERROR);
    if (status == VKN_OK && leads)
        memcpy(first, list->data ? list->data : "", size);
    if (status == VKN_OK)
        status = parallel_broadcast(comm, first, size);
    if (status == VKN_OK)
        status = train_sync_status(comm, compare(what, list->data ? list->data : "", first));
    free(first);
    return status;
}
