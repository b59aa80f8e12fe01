/* Replaces the viewer in a build without libmicrohttpd's header: every start fails. */
#include "viewer/viewer.h"

#include <stdio.h>

vkn_status viewer_start(const struct viewer_params *params, struct viewer **viewer,
                        char message[VIEWER_MESSAGE])
{
    (void)params;
    *viewer = NULL;
    snprintf(message, VIEWER_MESSAGE,
             "this vknerf was built without its viewer: install libmicrohttpd-dev, then build it "
             "again");
    return VKN_ERROR;
}

const char *viewer_address(const struct viewer *viewer)
{
    (void)viewer;
    return "";
}

bool viewer_is_open(const struct viewer *viewer)
{
    (void)viewer;
    return false;
}

void viewer_progress(void *viewer, const char *what, size_t done, size_t total)
{
    (void)viewer, (void)what, (void)done, (void)total;
}

void viewer_set_result(struct viewer *viewer, const struct viewer_result *result)
{
    (void)viewer, (void)result;
}

bool viewer_has_trained(const struct viewer *viewer)
{
    (void)viewer;
    return false;
}

void viewer_stop(struct viewer **viewer)
{
    *viewer = NULL;
}

vkn_status viewer_show(struct viewer *viewer, const struct viewer_run *run,
                       char message[VIEWER_MESSAGE])
{
    (void)viewer, (void)run;
    message[0] = 0;
    return VKN_ERROR;
}

const struct vkn_train_callbacks *viewer_callbacks(struct viewer *viewer)
{
    (void)viewer;
    return NULL;
}
