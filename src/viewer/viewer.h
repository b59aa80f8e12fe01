/* viewer: serves a web page that shows a run while it trains or afterwards. Part of the program,
 * not of the library: it uses include/vknerf/, the modules pixels and loading, and libmicrohttpd,
 * which is loaded when a viewer starts. */
#ifndef VIEWER_VIEWER_H
#define VIEWER_VIEWER_H

#include <signal.h>

#include <vknerf/vknerf.h>

#define VIEWER_PORT    7007 /* default; the first port that is tried */
#define VIEWER_MESSAGE 512

struct viewer;

struct viewer_params {
    const char *address;         /* IP address or name of this machine; NULL: 127.0.0.1 */
    uint32_t port;               /* to listen at; 0: any free port */
    bool any_port;               /* tries the next ports when `port` is in use */
    volatile sig_atomic_t *stop; /* vkn_job.stop; also set when a page stops the training or ends
                                    the viewer */
    /* Words that start this program, and options of `vknerf render` and `export` for the shown run,
     * such as --device; both end with NULL and stay valid. Pages run these commands. */
    const char *const *program, *const *options;
};

/* Starts to listen, in threads that block all signals and never use a device. After a failure
 * `message` is one line. The caller stops *viewer. */
vkn_status viewer_start(const struct viewer_params *params, struct viewer **viewer,
                        char message[VIEWER_MESSAGE]);
/* Returns "http://127.0.0.1:7007/?token=...", owned by the viewer. */
const char *viewer_address(const struct viewer *viewer);
/* Returns whether other machines can reach the viewer. */
bool viewer_is_open(const struct viewer *viewer);
/* Shows progress on open pages: vkn_job.progress, whose context is the viewer. Callable from any
 * thread. */
void viewer_progress(void *viewer, const char *what, size_t done, size_t total);

/* How a training has ended. */
struct viewer_result {
    vkn_status status;
    const char *text;    /* a sentence */
    const char *command; /* to copy: shows or continues the run; NULL: none */
    double psnr, ssim;   /* of the held-out views; NaN: not evaluated */
    bool stays;          /* viewer_show follows; false: viewer_stop */
};
/* Shows the result of a training on open pages. If viewer_stop follows, waits 1.5 s, in which every
 * page polls for it; returns at once when no page is open. `viewer` may be NULL. */
void viewer_set_result(struct viewer *viewer, const struct viewer_result *result);
/* Returns whether a training has begun since the viewer was started, which viewer_show can go on to
 * show. `viewer` may be NULL. */
bool viewer_has_trained(const struct viewer *viewer);
/* Answers waiting requests, frees and nulls *viewer, which may be NULL. */
void viewer_stop(struct viewer **viewer);

/* The run that `vknerf view` shows. */
struct viewer_run {
    const char *run;              /* folder or checkpoint */
    const char *scene;            /* NULL: the path that the run recorded */
    enum vkn_scene_format format; /* of the scene; AUTO: the format that the run recorded */
    enum vkn_precision precision; /* see vkn_renderer_open */
    const struct vkn_job *job;
};
/* Shows a run, which another process may train, until viewer_params.stop is set, also by a page;
 * renders in this thread. After a training that was shown, it continues with the same pages. A
 * model that cannot be read is an error at the start, later a message on the page. */
vkn_status viewer_show(struct viewer *viewer, const struct viewer_run *run,
                       char message[VIEWER_MESSAGE]);

/* Returns the viewer's callbacks for vkn_train_params.callbacks, which show the training. */
const struct vkn_train_callbacks *viewer_callbacks(struct viewer *viewer);

#endif
