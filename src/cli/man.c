/* A command's part of the man page: what --help prints, in the macros of man(7). */
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

void options_print_roff(const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '|' && text[1])
            fputs("|\\:", stdout); /* where a long one may be broken */
        else
            putchar(*text);
    }
}

/* A line of the given length, in a font: "B" bold, "R" as it is. */
static void print_line(const char *font, const char *text, size_t length)
{
    char line[1024];
    snprintf(line, sizeof(line), "%.*s", (int)length, text);
    if (font[0] != 'R')
        printf("\\f%s", font);
    options_print_roff(line);
    fputs(font[0] != 'R' ? "\\fR\n" : "\n", stdout);
}

static void print_option(const struct option *option)
{
    bool optional = options_value_is_optional(option);
    fputs(".TP\n\\fB", stdout);
    options_print_roff(option->name);
    fputs("\\fR", stdout);
    if (option->value) {
        fputs(optional ? "[=\\fI" : " \\fI", stdout);
        options_print_roff(option->value);
        fputs(optional ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    print_line("R", option->help, strlen(option->help));
}

/* Paragraphs, and lists of "  KEY  text" with lines further in below. */
static void print_more(const char *text)
{
    bool in_list = false;
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        size_t indent = strspn(line, " "), length = (size_t)(end - line);
        if (indent == 2) {
            size_t key = strcspn(line + indent, " \n");
            fputs(".TP\n", stdout);
            print_line("B", line + indent, key);
            indent += key + strspn(line + indent + key, " ");
        } else if (indent == 0 && (in_list || line == text)) {
            fputs(".PP\n", stdout);
        } else if (in_list) {
            fputs(".br\n", stdout);
        }
        in_list = indent > 0;
        if (length > indent)
            print_line("R", line + indent, length - indent);
    }
}

int options_print_man(const struct options_command *command)
{
    printf(".SS %s\n", command->name);
    for (const char *line = command->usage, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        size_t indent = strspn(line, " ");
        fputs(line == command->usage ? "\\fBvknerf\\fR " : ".br\n", stdout);
        print_line("B", line + indent, (size_t)(end - line) - indent);
    }
    fputs(".PP\n", stdout);
    for (const char *line = command->summary, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (end > line)
            print_line("R", line, (size_t)(end - line));
        else
            fputs(".PP\n", stdout);
    }
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i]);
    char *more = command->more_help ? command->more_help() : NULL;
    if (more)
        print_more(more);
    free(more);
    return cli_finish_output();
}
