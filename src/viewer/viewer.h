/* viewer: a page that shows a run while it trains, or afterwards. Part of the program, not of the
 * library: it takes include/vknerf/, the rooms pixels and loading, and libmicrohttpd, which is
 * loaded when a viewer starts. */
#ifndef VIEWER_VIEWER_H
#define VIEWER_VIEWER_H

#include <signal.h>

#include <vknerf/vknerf.h>

#define VIEWER_PORT    7007 /* the first that is tried */
#define VIEWER_MESSAGE 512

struct viewer;

/* Texts stay the caller's. */
struct viewer_params {
    const char *address; /* to listen at: a numeric one, or a name of this machine; NULL: 127.0.0.1
                          */
    uint32_t port;       /* with `any_port` the first to try, 0: whichever is free */
    bool any_port;       /* the next free one will do */
    volatile sig_atomic_t *stop; /* as of a job; somebody who looks at a training may set it */
};

/* Listens from here on, in threads of its own, which take no signals and never touch a device. On
 * failure `message` is one line. The caller stops *viewer. */
vkn_status viewer_start(const struct viewer_params *params, struct viewer **viewer,
                        char message[VIEWER_MESSAGE]);
/* "http://127.0.0.1:7007/?token=..."; the viewer's. */
const char *viewer_address(const struct viewer *viewer);
/* Whether other machines can reach it. */
bool viewer_is_open(const struct viewer *viewer);
/* Tells open pages, which ask every second, what has come of a training, and gives them the time to
 * ask; returns at once where none is open. */
void viewer_set_result(struct viewer *viewer, const char *text);
/* Answers whoever waits. Nulls *viewer, and takes NULL. */
void viewer_stop(struct viewer **viewer);

/* What `vknerf view` shows. */
struct viewer_run {
    const char *run;              /* folder or checkpoint */
    const char *scene;            /* NULL: where the run found it */
    enum vkn_scene_format format; /* of the scene; AUTO: as the run found it */
    enum vkn_precision precision; /* see vkn_renderer_open */
    const struct vkn_job *job;
};
/* Shows a run, which may be trained by another process meanwhile, until params.stop is set, in this
 * thread, which renders. A model that cannot be read is an error at first, and a message to who
 * looks later on. */
vkn_status viewer_show(struct viewer *viewer, const struct viewer_run *run,
                       char message[VIEWER_MESSAGE]);

/* For vkn_train_params.visitor: shows the training that takes it. The viewer's. */
const struct vkn_train_callbacks *viewer_callbacks(struct viewer *viewer);

#endif
