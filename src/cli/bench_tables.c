/* Prints the tables of vknerf bench: tuning, compiler statistics, sampling methods. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

/* ---- --tune ---------------------------------------------------------------------------------- */

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

/* ---- --suite programs ------------------------------------------------------------------------ */

/* Columns of the table: member of the JSON object, heading. */
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
    bool has_statistics = false;
    printf("%-28s %-36s", "path", "program");
    for (size_t i = 0; i < COLUMNS; i++)
        printf(" %s", columns[i].head);
    printf("\n");
    cJSON_ArrayForEach (program, programs) {
        print_program(program);
        has_statistics = has_statistics ||
                         cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(program, "told")) > 0;
    }
    if (!has_statistics)
        printf("The driver has no further statistics (VK_KHR_pipeline_executable_properties).\n");
}

/* ---- --suite sampling ------------------------------------------------------------------------ */

static const cJSON *list_of(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static void print_number(double value, int width, int digits)
{
    if (isfinite(value))
        printf(" %*.*f", width, digits, value);
    else
        printf(" %*s", width, "-");
}

/* Prints the PSNR at each of the common times that the run has reached. */
static void print_times(const cJSON *run)
{
    const cJSON *time;
    cJSON_ArrayForEach (time, list_of(run, "equal_times"))
        print_number(cli_number_of(time, "psnr"), 7, 2);
}

/* Prints the time at which the run reached the final PSNR of uniform sampling. */
static void print_time_to_uniform(const cJSON *run)
{
    const cJSON *equal = list_of(run, "seconds_to_uniform");
    double first = cli_number_of(cJSON_GetArrayItem(list_of(run, "marks"), 0), "seconds");
    if (cJSON_IsNumber(equal))
        printf("   as good as uniform %s %.3g s", equal->valuedouble <= first ? "by" : "after",
               equal->valuedouble);
    else if (cJSON_IsNull(equal))
        printf("   never as good as uniform");
}

static void print_run(const cJSON *run)
{
    printf("%4.0f %-12s", cli_number_of(run, "seed"), cli_text_of(run, "kind"));
    if (cli_text_of(run, "fault")[0]) {
        printf(" %s\n", cli_text_of(run, "fault"));
        return;
    }
    print_number(cli_number_of(run, "steps"), 7, 0);
    print_number(cli_number_of(run, "rays_per_second"), 9, 0);
    print_number(cli_number_of(run, "evaluated_per_ray"), 9, 1);
    print_number(cli_number_of(run, "live_per_ray"), 7, 1);
    print_number(100 * cli_number_of(run, "empty_share"), 7, 1);
    print_number(100 * cli_number_of(run, "behind_share"), 7, 1);
    print_times(run);
    if (strcmp(cli_text_of(run, "kind"), "uniform") != 0)
        print_time_to_uniform(run);
    printf("\n");
}

/* ---- several seeds --------------------------------------------------------------------------- */

static double last_psnr(const cJSON *run)
{
    const cJSON *times = list_of(run, "equal_times");
    return cli_number_of(cJSON_GetArrayItem(times, cJSON_GetArraySize(times) - 1), "psnr");
}

static const cJSON *find_run(const cJSON *runs, double seed, const char *kind)
{
    const cJSON *run;
    cJSON_ArrayForEach (run, runs) {
        if (cli_number_of(run, "seed") == seed && strcmp(cli_text_of(run, "kind"), kind) == 0)
            return run;
    }
    return NULL;
}

/* Prints mean and range over seeds of the difference in final PSNR; nothing for a single seed. */
static void print_difference(const cJSON *runs, const char *one, const char *other)
{
    double sum = 0, least = HUGE_VAL, most = -HUGE_VAL;
    int count = 0;
    const cJSON *run;
    cJSON_ArrayForEach (run, runs) {
        const cJSON *match = find_run(runs, cli_number_of(run, "seed"), other);
        double difference = last_psnr(run) - last_psnr(match);
        if (strcmp(cli_text_of(run, "kind"), one) != 0 || !isfinite(difference))
            continue;
        sum += difference;
        least = fmin(least, difference);
        most = fmax(most, difference);
        count++;
    }
    if (count > 1)
        printf("%s over %s: %+.2f dB (%+.2f to %+.2f, %d seeds)\n", one, other, sum / count, least,
               most, count);
}

/* ---- table of runs --------------------------------------------------------------------------- */

void cli_print_sampling(const cJSON *sampling)
{
    const cJSON *runs = list_of(sampling, "runs"), *run, *time, *longest = NULL;
    cJSON_ArrayForEach (run, runs) {
        if (cJSON_GetArraySize(list_of(run, "equal_times")) > cJSON_GetArraySize(longest))
            longest = list_of(run, "equal_times");
    }
    printf("%s, %.0f %s views, %s\n", cli_text_of(sampling, "scene"),
           cli_number_of(sampling, "views"), cli_text_of(sampling, "split"),
           cli_text_of(cJSON_GetArrayItem(runs, 0), "path"));
    printf("%4s %-12s %7s %9s %9s %7s %7s %7s   PSNR, dB\n", "", "", "", "", "samples", "of them",
           "%", "%");
    printf("%4s %-12s %7s %9s %9s %7s %7s %7s", "seed", "sampling", "steps", "rays/s", "a ray",
           "live", "empty", "behind");
    cJSON_ArrayForEach (time, longest)
        printf(" %5.3g s", cli_number_of(time, "seconds"));
    printf("\n");
    cJSON_ArrayForEach (run, runs)
        print_run(run);
    print_difference(runs, "proposal", "occupancy");
    print_difference(runs, "occupancy", "uniform");
    print_difference(runs, "occupancy", "hierarchical");
    print_difference(runs, "hierarchical", "uniform");
}
