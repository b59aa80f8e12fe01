/* Starts the viewer of a command, and finds the rank of this process. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#include "viewer/viewer.h"

const char *cli_rank(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]) && !rank; i++)
        rank = getenv(ranks[i]);
    return rank;
}

bool cli_is_rank_0(void)
{
    const char *rank = cli_rank();
    return !rank || strcmp(rank, "0") == 0;
}

void cli_view_add_option(struct cli_view *view, const char *option, const char *value)
{
    size_t count = 0;
    while (view->task_options[count])
        count++;
    if (!value || count + 2 > CLI_VIEW_OPTIONS)
        return;
    view->task_options[count] = option;
    if (value[0])
        view->task_options[count + 1] = value;
}

int cli_view_start(struct cli_view *view, FILE *stream)
{
    const char *const *program = NULL;
    size_t words = 0;
    int code = cli_find_program(&program, &words);
    if (code != OPTIONS_GO_ON)
        return code;
    const struct viewer_params params = {
        .program = program,
        .options = view->task_options,
        .address = view->address,
        .port = view->port.has_number ? view->port.number : VIEWER_PORT,
        .any_port = !view->port.has_number,
        .stop = &cli_stop,
    };
    char message[VIEWER_MESSAGE];
    vkn_status status = viewer_start(&params, &view->viewer, message);
    if (status != VKN_OK)
        return cli_fail(status, "%s", message);
    if (viewer_is_open(view->viewer))
        fprintf(stderr, "warning: --view-address: whoever has the token and reaches this machine "
                        "sees the run and can stop it; nothing is encrypted\n");
    fprintf(stream, "viewer: %s\n", viewer_address(view->viewer));
    if (fflush(stream) == 0 && !ferror(stream))
        return OPTIONS_GO_ON;
    viewer_stop(&view->viewer);
    return cli_fail(VKN_ERROR, "the viewer's address cannot be written");
}
