/* Collects settings from options, and parses and prints numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* ---- settings -------------------------------------------------------------------------------- */

/* An argument gives at most two settings, and a key of --set is shorter than its argument. */
bool options_settings_begin(struct options_settings *settings, int argc)
{
    size_t text = 1, items = 2 * (size_t)argc + 1;
    for (size_t i = 0; i < cli_argument_count; i++)
        text += strlen(cli_arguments[i]) + 1;
    *settings = (struct options_settings){
        .items = calloc(1, items * sizeof(*settings->items) + text),
    };
    if (settings->items)
        settings->text = (char *)(settings->items + items);
    return settings->items != NULL;
}

void options_settings_end(struct options_settings *settings)
{
    free(settings->items);
    *settings = (struct options_settings){0};
}

vkn_status options_settings_apply(const struct options_settings *settings, vkn_config *config)
{
    for (size_t i = 0; i < settings->count; i++) {
        vkn_status status = vkn_config_set(config, settings->items[i].source,
                                           settings->items[i].key, settings->items[i].value);
        if (status != VKN_OK)
            return status;
    }
    return VKN_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

int cli_parse_numbers(const char *name, const char *text, double *numbers, size_t count)
{
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtod(at, &end);
        bool is_last = i + 1 == count;
        if (end == at || !isfinite(numbers[i]) || *end != (is_last ? 0 : ','))
            return cli_fail(VKN_BAD_INPUT, "%s: %s is not %s", name, text,
                            count == 1   ? "a number"
                            : count == 6 ? "six numbers x0,y0,z0,x1,y1,z1"
                                         : "nine numbers x0,y0,z0,x1,y1,z1,rx,ry,rz");
        at = end + 1;
    }
    return OPTIONS_GO_ON;
}

void cli_print_number(char text[32], double number)
{
    int digits = 6;
    do
        snprintf(text, 32, "%.*g", digits, number);
    while (strtod(text, NULL) != number && digits++ < 17);
}

int cli_parse_crop(const char *text, double low[3], double high[3], double rotation[3])
{
    double box[9] = {0};
    size_t commas = 0;
    if (!text)
        return OPTIONS_GO_ON;
    for (const char *at = text; *at; at++)
        commas += *at == ',';
    int code = cli_parse_numbers("--crop", text, box, commas > 5 ? 9 : 6);
    for (int i = 0; i < 3 && code == OPTIONS_GO_ON; i++) {
        low[i] = box[i];
        high[i] = box[3 + i];
        rotation[i] = box[6 + i];
        if (!(low[i] < high[i]))
            return cli_fail(VKN_BAD_INPUT, "--crop: %s: %c0 is not below %c1", text, "xyz"[i],
                            "xyz"[i]);
        if (!(fabs(rotation[i]) <= 360))
            return cli_fail(VKN_BAD_INPUT, "--crop: %s: r%c is not from -360 to 360", text,
                            "xyz"[i]);
    }
    return code;
}

int cli_parse_distance(const char *text, double *unit_length)
{
    double p[6], metres;
    char points[256];
    const char *equals = text ? strchr(text, '=') : NULL;
    if (!text)
        return OPTIONS_GO_ON;
    if (!equals || equals - text >= (ptrdiff_t)sizeof points)
        return cli_fail(VKN_BAD_INPUT, "--distance: %s is not x0,y0,z0,x1,y1,z1=METRES", text);
    snprintf(points, sizeof points, "%.*s", (int)(equals - text), text);
    int code = cli_parse_numbers("--distance", points, p, 6);
    if (code == OPTIONS_GO_ON)
        code = cli_parse_numbers("--distance", equals + 1, &metres, 1);
    if (code != OPTIONS_GO_ON)
        return code;
    double apart = hypot(hypot(p[3] - p[0], p[4] - p[1]), p[5] - p[2]);
    *unit_length = metres / apart;
    if (!(*unit_length >= 1e-9 && *unit_length <= 1e9))
        return cli_fail(VKN_BAD_INPUT,
                        "--distance: %s: %g m over %g units: a unit is not 1e-9 to 1e9 m long",
                        text, metres, apart);
    return OPTIONS_GO_ON;
}
