/* Settings of training on a command line. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Every argument gives two settings at the most; the keys of --set are shorter than it. */
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
