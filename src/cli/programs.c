/* The table of vknerf bench --suite programs. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

/* Fields in the order of the columns. */
static const struct {
    const char *field, *head;
} columns[] = {
    {"registers", "registers"},       {"spilled", "spilled"}, {"scratch_bytes", "scratch"},
    {"shared_bytes", "shared"},       {"code_bytes", "code"}, {"occupancy", "occupancy"},
    {"instructions", "instructions"}, {"cycles", "cycles"},   {"compile_ms", "compile ms"},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static void print_program(const cJSON *program)
{
    printf("%-28s %-36s", cli_text_of(program, "path"), cli_text_of(program, "program"));
    if (cli_text_of(program, "fault")[0]) {
        printf(" %s\n", cli_text_of(program, "fault"));
        return;
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(program, columns[i].field);
        if (cJSON_IsNumber(item))
            printf(" %*.0f", (int)strlen(columns[i].head), item->valuedouble);
        else
            printf(" %*s", (int)strlen(columns[i].head), "-");
    }
    printf("\n");
}

void cli_print_programs(const cJSON *programs)
{
    const cJSON *program;
    bool told = false;
    printf("%-28s %-36s", "path", "program");
    for (size_t i = 0; i < COLUMNS; i++)
        printf(" %s", columns[i].head);
    printf("\n");
    cJSON_ArrayForEach (program, programs) {
        print_program(program);
        told = told || cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(program, "told")) > 0;
    }
    if (!told)
        printf("The driver tells nothing else (VK_KHR_pipeline_executable_properties).\n");
}
