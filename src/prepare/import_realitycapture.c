/* Reads the table "Internal/External camera parameters" of RealityCapture and RealityScan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prepare/import.h"

#define DEGREE     (3.14159265358979323846 / 180)
#define FILM       36.0 /* mm: focal lengths are those of 35 mm film for the larger side */
#define MOST_CELLS 64u

/* Columns that are read; those from F on may be missing, except for F itself. */
enum { NAME, X, Y, ALT, HEADING, PITCH, ROLL, F, PX, PY, K1, K2, K3, K4, T1, T2, COLUMNS };
static const char *const titles[COLUMNS] = {"name", "x",  "y",  "alt", "heading", "pitch",
                                            "roll", "f",  "px", "py",  "k1",      "k2",
                                            "k3",   "k4", "t1", "t2"};

/* The table: where each column is in a row. */
struct table {
    struct import *import;
    char *where;             /* begins messages: "FILE: line 3." */
    size_t line, cells;      /* cells: number of columns */
    size_t columns[COLUMNS]; /* MOST_CELLS: the column is missing */
};

/* Splits a line into cells in place; quotes around a cell are removed. Returns their number. */
static size_t split(char *line, char *cells[MOST_CELLS])
{
    size_t count = 0;
    for (char *at = line; at != NULL && count < MOST_CELLS;) {
        char *cell = at, *end = cell;
        bool is_quoted = *cell == '"';
        if (is_quoted) {
            end = strchr(++cell, '"');
            at = end != NULL ? strchr(end, ',') : NULL;
        } else {
            end = at = strchr(cell, ',');
        }
        if (end != NULL)
            *end = '\0';
        at = at != NULL ? at + 1 : NULL;
        cells[count++] = cell;
    }
    return count;
}

/* ---- columns --------------------------------------------------------------------------------- */

static vkn_status read_titles(struct table *table, char *line)
{
    char *cells[MOST_CELLS];
    if (strchr(line, ';') != NULL)
        return base_fail(VKN_BAD_INPUT,
                         "%s: the columns are separated by semicolons: export with commas",
                         table->import->file);
    table->cells = split(line, cells);
    for (int i = 0; i < COLUMNS; i++)
        table->columns[i] = MOST_CELLS;
    for (size_t cell = 0; cell < table->cells; cell++) {
        const char *title = cells[cell] + (cell == 0 && cells[cell][0] == '#' ? 1 : 0);
        int column = 0;
        while (column < COLUMNS && strcmp(title, titles[column]) != 0)
            column++;
        if (column == COLUMNS)
            BASE_TRY(import_add_unread(table->import, "", title));
        else
            table->columns[column] = cell;
    }
    for (int i = 0; i <= F; i++)
        if (table->columns[i] == MOST_CELLS)
            return base_json_fail(table->import->file, titles[i],
                                  "this column is missing: export \"Internal/External camera "
                                  "parameters\"");
    return VKN_OK;
}

static vkn_status read_numbers(const struct table *table, char *const *cells,
                               double values[COLUMNS])
{
    for (int i = X; i < COLUMNS; i++) {
        double most = i <= ROLL ? IMPORT_MAX_COORDINATE : IMPORT_MAX_COEFFICIENT;
        values[i] = 0;
        if (table->columns[i] < MOST_CELLS)
            BASE_TRY(
                import_parse(cells[table->columns[i]], table->where, titles[i], most, &values[i]));
    }
    if (!(values[F] >= 1e-3))
        return base_json_fail(table->where, "f", "%g is too small", values[F]);
    return values[K4] == 0 ? VKN_OK
                           : base_json_fail(table->where, "k4",
                                            "not supported unless 0: choose the distortion model "
                                            "Brown3, and align and export again");
}

/* ---- cameras --------------------------------------------------------------------------------- */

/* Sets the pose. With all angles 0 a camera looks down, its upper side towards y. The matrix takes
 * the world to right, down and forwards ("Registration export and camera orientations", Epic's
 * knowledge base, where roll, pitch and yaw are x, y and z). */
static vkn_status set_pose(const struct table *table, const double values[COLUMNS],
                           struct import_frame *frame)
{
    double cx = cos(DEGREE * values[ROLL]), sx = sin(DEGREE * values[ROLL]);
    double cy = cos(DEGREE * values[PITCH]), sy = sin(DEGREE * values[PITCH]);
    double cz = cos(DEGREE * values[HEADING]), sz = sin(DEGREE * values[HEADING]);
    double rotation[3][3] = {
        {cx * cz + sx * sy * sz, -cx * sz + cz * sx * sy, -cy * sx},
        {-cy * sz, -cy * cz, -sy},
        {cx * sy * sz - cz * sx, cx * cz * sy + sx * sz, -cx * cy},
    };
    import_transpose(rotation);
    return import_set_pose(frame, table->where, "heading", (const double(*)[3])rotation, &values[X],
                           false);
}

/* Fills a lens. Lengths are relative to the larger side of the picture, focal lengths in 1/36
 * ("RealityCapture XMP Camera Math"). t1 belongs to r^2 + 2 x^2, which is OpenCV's p2, as in
 * AliceVision's and Camorph's readers; nerfstudio does not swap them. */
static void set_lens(const double values[COLUMNS], struct import_lens *lens)
{
    lens->is_relative = true;
    for (int axis = 0; axis < 2; axis++) {
        lens->focal[axis] = values[F] / FILM;
        lens->center[axis] = values[PX + axis];
    }
    lens->k1 = values[K1];
    lens->k2 = values[K2];
    lens->k3 = values[K3];
    lens->p1 = values[T2];
    lens->p2 = values[T1];
}

static vkn_status read_row(struct table *table, char *line)
{
    char *cells[MOST_CELLS];
    double values[COLUMNS];
    size_t count = split(line, cells);
    if (count != table->cells)
        return base_fail(VKN_BAD_INPUT, "%s: line %zu: %zu cells instead of %zu",
                         table->import->file, table->line, count, table->cells);
    const char *name = cells[table->columns[NAME]];
    if (name[0] == '\0')
        return base_json_fail(table->where, "name", "empty");
    BASE_TRY(read_numbers(table, cells, values));
    struct import_frame *frame = import_add_frame(table->import, name);
    struct import_lens *lens = frame != NULL ? import_add_lens(table->import, name) : NULL;
    if (lens == NULL)
        return VKN_ERROR;
    frame->lens = table->import->lens_count - 1;
    set_lens(values, lens);
    return set_pose(table, values, frame);
}

/* ---- the file -------------------------------------------------------------------------------- */

static vkn_status read_line(struct table *table, char *line)
{
    line[strcspn(line, "\r")] = '\0';
    if (line[0] == '\0' || strncmp(line, "#cameras", strlen("#cameras")) == 0)
        return VKN_OK;
    if (table->cells == 0)
        return read_titles(table, line);
    free(table->where);
    table->where = base_format("%s: line %zu.", table->import->file, table->line);
    return table->where != NULL ? read_row(table, line) : VKN_ERROR;
}

vkn_status import_realitycapture(struct import *import)
{
    struct table table = {.import = import};
    char *text = NULL;
    size_t size = 0;
    BASE_TRY(import_read_text(import, import->file, &text, &size));
    vkn_status status = VKN_OK;
    for (char *line = text, *next = NULL; line != NULL && status == VKN_OK; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        table.line++;
        status = read_line(&table, line);
    }
    free(table.where);
    free(text);
    return status == VKN_OK ? import_find_cloud(import) : status;
}
