/* Prints a command's part of the man page: the texts of --help in the macros of man(7). */
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
            fputs("|\\:", stdout); /* a line may be broken here */
        else
            putchar(*text);
    }
}

/* Prints `length` bytes of `text` as a line, in font "B" (bold) or "R" (regular). */
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
    bool is_optional = options_value_is_optional(option);
    fputs(".TP\n\\fB", stdout);
    options_print_roff(option->name);
    fputs("\\fR", stdout);
    if (option->value) {
        fputs(is_optional ? "[=\\fI" : " \\fI", stdout);
        options_print_roff(option->value);
        fputs(is_optional ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    char help[OPTIONS_HELP];
    options_help(option, help);
    print_line("R", help, strlen(help));
}

/* Prints paragraphs, headings "TITLE:", and lists of "  KEY  text" with indented lines below. */
static void print_more(const char *text)
{
    bool in_list = false, begins_paragraph = true;
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        size_t indent = strspn(line, " "), length = (size_t)(end - line);
        bool is_heading = indent == 0 && length > 0 && end[-1] == ':';
        if (indent == 2) {
            size_t key = strcspn(line + indent, " \n");
            fputs(".TP\n", stdout);
            print_line("B", line + indent, key);
            indent += key + strspn(line + indent + key, " ");
        } else if (length > 0 && indent == 0 && (begins_paragraph || in_list)) {
            fputs(".PP\n", stdout);
        } else if (in_list && length > 0) {
            fputs(".br\n", stdout);
        }
        in_list = indent > 0;
        begins_paragraph = length == 0;
        if (length > indent)
            print_line(is_heading ? "B" : "R", line + indent, length - indent);
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
