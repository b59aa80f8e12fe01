/* Reads the numbers of small text files (internal to the module scene). */
#ifndef SCENE_NUMBERS_H
#define SCENE_NUMBERS_H

#include "base/base.h"

#define MOST_NUMBERS 16u

/* The numbers of a text. */
struct numbers {
    double values[MOST_NUMBERS];                     /* the first numbers */
    size_t begins[MOST_NUMBERS], ends[MOST_NUMBERS]; /* positions of these numbers in the text */
    size_t count, rows;                              /* rows: number of lines with numbers */
    size_t columns;                                  /* numbers in the first line */
    bool even;                                       /* all lines have equally many numbers */
    /* Line with more or fewer numbers than the first one, and their count. */
    size_t uneven_line, uneven_count;
    /* Line and index of the first number that is not finite; 0 and SIZE_MAX: all are finite. */
    size_t bad_line, bad_index;
    bool skips_sizes; /* lines of two numbers are skipped */
};

/* Reads a file of numbers; # begins a comment. With `skips_sizes`, lines of two numbers are
 * skipped.
 */
vkn_status numbers_read(const char *file, bool skips_sizes, struct numbers *numbers);
/* As numbers_read; the caller frees *text, the file's content, unless there is a failure. */
vkn_status numbers_read_text(const char *file, bool skips_sizes, char **text,
                             struct numbers *numbers);
/* Checks that the first `needed` numbers are finite. */
vkn_status numbers_check_finite(const char *file, const struct numbers *numbers, size_t needed);
/* Fails with the message that lines have different counts of numbers. */
vkn_status numbers_fail_uneven(const char *file, const struct numbers *numbers);

#endif
