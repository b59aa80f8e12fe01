/* Implements vkn_run_report: writes the HTML page of a run, or a comparison of runs. */
#include <stdlib.h>

#include "run/internal.h"

vkn_status vkn_run_report(const struct vkn_report_params *given, char **file)
{
    BASE_C_LOCALE;
    BASE_NEED(file);
    *file = NULL;
    struct vkn_report_params own, *params = &own;
    BASE_TRY(BASE_READ(__func__, vkn_report_params, given, params, out));
    if (params->run_count == 0 || !params->runs)
        return base_fail(VKN_BAD_INPUT, "no run is given to report on");
    for (size_t i = 0; i < params->run_count; i++)
        if (!params->runs[i])
            return base_fail(VKN_BAD_INPUT, "%s: runs: number %zu is NULL", __func__, i);
    bool is_single = params->run_count == 1;
    char *path = params->out ? base_format("%s", params->out)
                 : is_single ? base_path_join(params->runs[0], RUN_REPORT)
                             : base_format("comparison.html");
    if (path == NULL)
        return VKN_ERROR;
    vkn_status status = is_single ? report_write_html(params->runs[0], path)
                                  : report_write_comparison(params->runs, params->run_count, path);
    if (status == VKN_OK)
        *file = path;
    else
        free(path);
    return status;
}
