/* Reads files, numbers, keys and poses for the readers of other programs' captures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>

#include "prepare/import.h"

#define MOST_BYTES  ((size_t)512 << 20) /* of a file; int in libexpat */
#define MOST_UNREAD 16u                 /* unread keys that a warning names */
#define NEGLIGIBLE  0.25                /* pixels */

/* ---- files ----------------------------------------------------------------------------------- */

vkn_status import_read_text(struct import *import, const char *path, char **text, size_t *size)
{
    BASE_TRY(base_text_read(path, MOST_BYTES, text, size));
    import->checksum = base_crc32c(import->checksum, *text, *size);
    return VKN_OK;
}

vkn_status import_read_json(struct import *import, const char *path, struct cJSON **json)
{
    char *text = NULL;
    size_t size = 0;
    *json = NULL;
    BASE_TRY(import_read_text(import, path, &text, &size));
    vkn_status status = base_json_parse(path, text, size, json);
    free(text);
    return status;
}

vkn_status import_set_pictures(struct import *import, const char *subfolder)
{
    free(import->pictures);
    import->pictures = base_path_join(import->folder, subfolder);
    return import->pictures != NULL ? VKN_OK : VKN_ERROR;
}

vkn_status import_find_picture(const struct import *import, const struct import_frame *frame,
                               const char *subfolder, const char *ending, char **found)
{
    char *name = base_format("%s/%s.%s", subfolder, frame->name, ending);
    char *path = name != NULL ? base_path_join(import->folder, name) : NULL;
    vkn_status status = path != NULL ? VKN_OK : VKN_ERROR;
    if (path != NULL && base_file_exists(path) && !base_is_folder(path)) {
        *found = name;
        name = NULL;
    }
    free(name);
    free(path);
    return status;
}

vkn_status import_find_cloud(struct import *import)
{
    struct dirent **entries = NULL;
    int count = scandir(import->folder, &entries, NULL, alphasort);
    char first[256] = "";
    size_t found = 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (name[0] != '.' && files_ends_with(name, "ply") && found++ == 0)
            snprintf(first, sizeof(first), "%s", name);
        free(entries[i]);
    }
    free(entries);
    if (found > 1)
        base_log(BASE_LOG_WARNING,
                 "%s: %zu PLY files, of which none is read: leave only the one with the points",
                 import->folder, found);
    if (found != 1)
        return VKN_OK;
    import->cloud = base_path_join(import->folder, first);
    import->checksum = files_checksum(import->checksum, first);
    return import->cloud != NULL ? VKN_OK : VKN_ERROR;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Makes room for one more item of `size` bytes. */
static bool grow(void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity > 0 ? 2 * *capacity : 16;
    void *grown = base_realloc(*items, larger * size);
    if (grown == NULL) {
        base_fail(VKN_ERROR, "out of memory (%zu cameras)", larger);
        return false;
    }
    *items = grown;
    *capacity = larger;
    return true;
}

struct import_lens *import_add_lens(struct import *import, const char *key)
{
    void *lenses = import->lenses;
    bool has_space =
        grow(&lenses, import->lens_count, &import->lens_capacity, sizeof(*import->lenses));
    import->lenses = lenses;
    if (!has_space)
        return NULL;
    struct import_lens *lens = &import->lenses[import->lens_count];
    *lens = (struct import_lens){.key = base_format("%s", key), .model = "OPENCV"};
    import->lens_count += lens->key != NULL ? 1 : 0;
    return lens->key != NULL ? lens : NULL;
}

struct import_frame *import_add_frame(struct import *import, const char *name)
{
    void *frames = import->frames;
    bool has_space =
        grow(&frames, import->frame_count, &import->frame_capacity, sizeof(*import->frames));
    import->frames = frames;
    if (!has_space)
        return NULL;
    struct import_frame *frame = &import->frames[import->frame_count];
    *frame = (struct import_frame){.name = base_format("%s", name)};
    import->frame_count += frame->name != NULL ? 1 : 0;
    return frame->name != NULL ? frame : NULL;
}

size_t import_find_lens(const struct import *import, const char *key)
{
    size_t index = 0;
    while (index < import->lens_count && strcmp(import->lenses[index].key, key) != 0)
        index++;
    return index;
}

vkn_status import_add_unposed(struct import *import, const char *name)
{
    if (import->unposed++ > 0)
        return VKN_OK;
    import->first_unposed = base_format("%s", name);
    return import->first_unposed != NULL ? VKN_OK : VKN_ERROR;
}

void import_add_point(struct import *import, const double position[3], const double color[3])
{
    bool is_finite = true;
    int levels[3];
    for (int i = 0; i < 3; i++) {
        is_finite = is_finite && fabs(position[i]) <= IMPORT_MAX_COORDINATE;
        levels[i] = color[i] >= 0 && color[i] <= 255 ? (int)color[i] : 0;
    }
    if (!is_finite)
        return;
    base_text_add(&import->points, "%.17g %.17g %.17g %d %d %d\n", position[0], position[1],
                  position[2], levels[0], levels[1], levels[2]);
    import->point_count++;
}

/* ---- poses ----------------------------------------------------------------------------------- */

void import_transpose(double rotation[3][3])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++) {
            double value = rotation[i][j];
            rotation[i][j] = rotation[j][i];
            rotation[j][i] = value;
        }
}

vkn_status import_set_pose(struct import_frame *frame, const char *where, const char *field,
                           const double rotation[3][3], const double position[3], bool is_up)
{
    double rows[3][4];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            rows[i][j] = is_up || j == 0 ? rotation[i][j] : -rotation[i][j];
        rows[i][3] = position[i];
    }
    const char *problem = scene_pose_from_rows((const double(*)[4])rows, frame->pose);
    return problem == NULL ? VKN_OK : base_json_fail(where, field, "%s", problem);
}

/* ---- numbers --------------------------------------------------------------------------------- */

vkn_status import_parse(const char *text, const char *where, const char *field, double most,
                        double *value)
{
    char *end = NULL;
    if (text == NULL)
        return base_json_fail(where, field, "missing");
    double number = strtod(text, &end);
    if (end == text || end[strspn(end, " \t\r\n")] != '\0')
        return base_json_fail(where, field, "not a number: %.40s", text);
    if (!(fabs(number) <= most))
        return base_json_fail(where, field, "%g is not from %g to %g", number, -most, most);
    *value = number;
    return VKN_OK;
}

vkn_status import_parse_list(const char *text, const char *where, const char *field, size_t count,
                             double *values)
{
    if (text == NULL)
        return base_json_fail(where, field, "missing");
    size_t found = 0;
    for (const char *at = text; *(at += strspn(at, " \t\r\n")) != '\0';) {
        char *end = NULL;
        double value = strtod(at, &end);
        if (end == at || !(fabs(value) <= IMPORT_MAX_COORDINATE) || found == count)
            return base_json_fail(where, field, "not %zu numbers up to 1e9", count);
        values[found++] = value;
        at = end;
    }
    return found == count
               ? VKN_OK
               : base_json_fail(where, field, "%zu numbers instead of %zu", found, count);
}

vkn_status import_read_array(const struct cJSON *object, const char *name, const char *where,
                             int count, double *values)
{
    return import_read_numbers(cJSON_GetObjectItemCaseSensitive(object, name), name, where, count,
                               values);
}

vkn_status import_read_numbers(const struct cJSON *array, const char *name, const char *where,
                               int count, double *values)
{
    const cJSON *item = NULL;
    int index = 0;
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != count)
        return base_json_fail(where, name, "not %d numbers", count);
    cJSON_ArrayForEach (item, array)
        BASE_TRY(base_json_value(item, name, where, -IMPORT_MAX_COORDINATE, IMPORT_MAX_COORDINATE,
                                 &values[index++]));
    return VKN_OK;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Returns whether a word is in a list of words that are separated by `separator`. */
static bool has_word(const char *list, const char *word, const char *separator)
{
    size_t size = strlen(word), gap = strlen(separator);
    while (list != NULL) {
        if (strncmp(list, word, size) == 0 &&
            (list[size] == '\0' || strncmp(list + size, separator, gap) == 0))
            return true;
        list = strstr(list, separator);
        list = list != NULL ? list + gap : NULL;
    }
    return false;
}

vkn_status import_add_unread(struct import *import, const char *prefix, const char *key)
{
    char *word = base_format("%s%s%.64s", prefix, prefix[0] != '\0' ? "." : "", key);
    if (word == NULL)
        return VKN_ERROR;
    vkn_clean_line(word);
    if (import->unread.size == 0 || !has_word(import->unread.data, word, ", ")) {
        if (import->unread_count++ < MOST_UNREAD)
            base_text_add(&import->unread, "%s%s", import->unread.size > 0 ? ", " : "", word);
    }
    free(word);
    return import->unread.failed ? VKN_ERROR : VKN_OK;
}

vkn_status import_check_keys(struct import *import, const struct cJSON *object, const char *known,
                             const char *prefix)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, object)
        if (item->string != NULL && !has_word(known, item->string, " "))
            BASE_TRY(import_add_unread(import, prefix, item->string));
    return VKN_OK;
}

vkn_status import_refuse_coefficient(struct import *import, const char *where, const char *field,
                                     double pixels)
{
    char note[96];
    if (!(pixels <= NEGLIGIBLE))
        return base_json_fail(where, field,
                              "moves pixels by up to %.3g pixels, but vknerf's lenses do not have "
                              "it; calibrate without it, or export undistorted pictures",
                              pixels);
    snprintf(note, sizeof(note), "%s (%.2g pixels at most)", field, pixels);
    return pixels > 0 ? import_add_unread(import, "", note) : VKN_OK;
}
