/* Keeps what pages show of the program: its state, its work besides training and rendering, and the
 * last error. */
#include "viewer/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void viewer_set_message(struct viewer *viewer, const char *format, ...)
{
    char message[sizeof viewer->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    vkn_clean_line(message);
    pthread_mutex_lock(&viewer->lock);
    memcpy(viewer->message, message, sizeof message);
    pthread_mutex_unlock(&viewer->lock);
}

void viewer_progress(void *context, const char *what, size_t done, size_t total)
{
    struct viewer *viewer = context;
    if (strcmp(what, "training") == 0)
        return; /* shown by steps */
    if (strcmp(what, "evaluating") == 0)
        what = "evaluating views";
    pthread_mutex_lock(&viewer->lock);
    bool complete = total > 0 && done >= total;
    snprintf(viewer->activity.what, sizeof viewer->activity.what, "%s", complete ? "" : what);
    viewer->activity.done = done;
    viewer->activity.total = total;
    pthread_mutex_unlock(&viewer->lock);
}

void viewer_begin_activity(struct viewer *viewer, const char *what)
{
    viewer_progress(viewer, what ? what : "", 0, 0);
}

bool viewer_is_busy(const struct viewer *viewer, char text[VIEWER_MESSAGE])
{
    const struct activity *activity = &viewer->activity;
    bool busy = viewer->ending || !viewer->facts || viewer->state == STATE_OPENING ||
                viewer->state == STATE_ENDING;
    if (viewer->ending)
        snprintf(text, VIEWER_MESSAGE, "the program is ending");
    else if (activity->what[0] && activity->total > 0)
        snprintf(text, VIEWER_MESSAGE, "%.*s %zu/%zu%s", (int)strcspn(activity->what, ":"),
                 activity->what, activity->done, activity->total,
                 activity->what + strcspn(activity->what, ":")); /* "pipelines 3/17: names" */
    else if (activity->what[0])
        snprintf(text, VIEWER_MESSAGE, "%s", activity->what);
    else
        snprintf(text, VIEWER_MESSAGE, "%s",
                 !busy                           ? ""
                 : viewer->state == STATE_ENDING ? "saving the training"
                                                 : "opening the scene");
    return busy;
}

void viewer_set_state(struct viewer *viewer, enum viewer_state state)
{
    pthread_mutex_lock(&viewer->lock);
    viewer->state = state;
    pthread_mutex_unlock(&viewer->lock);
}
