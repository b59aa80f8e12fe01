/* The table of vknerf bench --tune. */
#include <stdio.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

void cli_print_tuning(const cJSON *tuning)
{
    const cJSON *row;
    const cJSON *kept = cJSON_GetObjectItemCaseSensitive(tuning, "remembered");
    printf("path: %s\n\n%-16s %8s %8s\n", cli_text_of(tuning, "path"), "tunable", "default",
           "chosen");
    cJSON_ArrayForEach (row, cJSON_GetObjectItemCaseSensitive(tuning, "tunables"))
        printf("%-16s %8.0f %8.0f\n", cli_text_of(row, "name"), cli_number_of(row, "default"),
               cli_number_of(row, "chosen"));
    printf("\n%-16s %11s %11s %9s\n", "pass", "default", "chosen", "speed-up");
    cJSON_ArrayForEach (row, cJSON_GetObjectItemCaseSensitive(tuning, "passes"))
        printf("%-16s %8.3g ms %8.3g ms %9.2f\n", cli_text_of(row, "name"),
               cli_number_of(row, "default_milliseconds"),
               cli_number_of(row, "chosen_milliseconds"), cli_number_of(row, "speedup"));
    printf("\n%s%s\n", cli_text_of(tuning, "result"), cJSON_IsTrue(kept) ? " (remembered)" : "");
}
