/* Reads and writes intrinsics.txt of NSVF's captures; nsvf.c describes its forms. */
#include "scene/nsvf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-3 /* for a matrix's elements that should be 0 or 1 */

/* The numbers of the file, and which of them are intrinsics. */
struct intrinsics {
    char *text; /* owned */
    struct numbers numbers;
    size_t focal[2], center[2]; /* indices of numbers; equal for a single focal length */
};

/* Checks that the matrix is a pinhole's without skew; focal lengths and centre may have any value.
 */
static vkn_status check_matrix(const char *file, const struct numbers *matrix, size_t columns)
{
    for (size_t i = 0; i < matrix->count; i++) {
        size_t row = i / columns, column = i % columns;
        bool is_intrinsic = row < 2 && (column == row || column == 2);
        double wanted = row == column ? 1 : 0;
        if (!is_intrinsic && !(fabs(matrix->values[i] - wanted) <= TOLERANCE))
            return base_fail(VKN_BAD_INPUT,
                             "%s: row %zu, column %zu: %g, where a pinhole camera has %g", file,
                             row + 1, column + 1, matrix->values[i], wanted);
    }
    return VKN_OK;
}

/* Finds the intrinsics: in a matrix, or in a first line f cx cy 0. */
static vkn_status find_intrinsics(const char *file, struct intrinsics *found)
{
    const struct numbers *numbers = &found->numbers;
    bool in_line = numbers->rows == 1 && (numbers->count == 9 || numbers->count == 16);
    size_t columns = in_line ? (numbers->count == 9 ? 3 : 4) : numbers->columns;
    bool fits = columns == 3 || columns == 4;
    bool is_matrix = fits && numbers->even && (in_line || numbers->rows == columns);
    bool is_first_line = fits && !is_matrix && (numbers->rows == 1 || !numbers->even);
    if (!is_matrix && !is_first_line)
        return base_fail(VKN_BAD_INPUT,
                         "%s: neither a matrix of 3x3 or 4x4 numbers nor a first line f cx cy 0",
                         file);
    BASE_TRY(numbers_check_finite(file, numbers, is_matrix ? SIZE_MAX : 3));
    /* Likely a damaged matrix: no optical centre is at the image's edge. */
    if (is_first_line && !numbers->even && numbers->values[1] == 0)
        return numbers_fail_uneven(file, numbers);
    if (is_matrix)
        BASE_TRY(check_matrix(file, numbers, columns));
    found->focal[1] = is_matrix ? columns + 1 : 0;
    found->center[0] = is_matrix ? 2 : 1;
    found->center[1] = is_matrix ? columns + 2 : 2;
    return VKN_OK;
}

/* Reads the file. The caller frees found->text, also after a failure. */
static vkn_status read_intrinsics(const char *file, struct intrinsics *found)
{
    *found = (struct intrinsics){.text = NULL};
    BASE_TRY(numbers_read_text(file, true, &found->text, &found->numbers));
    return find_intrinsics(file, found);
}

vkn_status nsvf_read_lens(const char *file, struct transforms_lens *lens)
{
    struct intrinsics found;
    vkn_status status = read_intrinsics(file, &found);
    free(found.text);
    BASE_TRY(status);
    *lens = lens_none;
    for (int i = 0; i < 2; i++) {
        lens->focal[i] = found.numbers.values[found.focal[i]];
        lens->center[i] = found.numbers.values[found.center[i]];
        if (!(lens->focal[i] >= 1e-3 && lens->focal[i] <= LENS_MAX_PIXELS))
            return base_fail(VKN_BAD_INPUT, "%s: focal length %g: out of range (0.001 to %g)", file,
                             lens->focal[i], LENS_MAX_PIXELS);
    }
    return VKN_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Finds the new lens, which all images share; NULL: there is none. */
static vkn_status find_lens(const char *file, const struct write_view *views, size_t count,
                            const struct transforms_lens **lens)
{
    const char *problem = NULL;
    *lens = NULL;
    for (size_t i = 0; i < count && problem == NULL; i++) {
        if (!views[i].has_lens)
            continue;
        if (*lens == NULL)
            *lens = &views[i].lens;
        problem = lens_difference(*lens, &views[i].lens, LENS_ALL);
    }
    return problem == NULL ? VKN_OK
                           : base_fail(VKN_BAD_INPUT, "%s: %s: images have different new lenses",
                                       file, problem);
}

/* Checks that the file can hold a lens. */
static vkn_status check_lens(const char *file, const struct intrinsics *found,
                             const struct transforms_lens *lens)
{
    struct transforms_lens held = *lens;
    memset(held.distortion, 0, sizeof(held.distortion));
    bool single = found->focal[0] == found->focal[1];
    held.focal[1] = lens->focal[single ? 0 : 1];
    const char *excess = lens_difference(lens, &held, LENS_ALL);
    return excess == NULL ? VKN_OK
                          : base_fail(VKN_BAD_INPUT,
                                      "%s: %s: the format has %sno distortion: refine the poses "
                                      "only",
                                      file, excess, single ? "one focal length and " : "");
}

static void replace(const struct intrinsics *found, size_t index, double value,
                    struct write_patch *patch)
{
    char number[40];
    config_print_number(number, value, false);
    write_replace(patch, found->numbers.begins[index], found->numbers.ends[index], number,
                  strlen(number));
}

static vkn_status add_copy(const char *file, const struct intrinsics *found,
                           const struct transforms_lens *lens, struct write_files *copies)
{
    struct write_patch patch = {.data = found->text};
    replace(found, found->focal[0], lens->focal[0], &patch);
    replace(found, found->center[0], lens->center[0], &patch);
    if (found->focal[1] > found->focal[0])
        replace(found, found->focal[1], lens->focal[1], &patch);
    replace(found, found->center[1], lens->center[1], &patch);
    return write_add(copies, base_path_name(file), &patch, strlen(found->text));
}

vkn_status nsvf_write_lens(const char *file, const struct write_view *views, size_t count,
                           struct write_files *copies)
{
    const struct transforms_lens *lens = NULL;
    struct intrinsics found;
    BASE_TRY(find_lens(file, views, count, &lens));
    if (lens == NULL)
        return VKN_OK;
    vkn_status status = read_intrinsics(file, &found);
    if (status == VKN_OK)
        status = check_lens(file, &found, lens);
    if (status == VKN_OK)
        status = add_copy(file, &found, lens, copies);
    free(found.text);
    return status;
}
