/* Declares the types and functions that the viewer's files share.
 *
 * Threads:
 *   acceptor        accepts connections and closes connections that exceed their time limits
 *   libmicrohttpd   answers requests that need neither files nor the device; queues the others
 *   worker          reads files (photographs, curves), writes paths, ends waits at their time limit
 *   renderer        the caller's thread, which has the device; renders frames
 * The viewer's lock guards everything below unless a comment names another owner. */
#ifndef VIEWER_INTERNAL_H
#define VIEWER_INTERNAL_H

#include <pthread.h>
#include <stdint.h>

#include "pixels/pixels.h"
#include "viewer/libraries.h"
#include "viewer/viewer.h"

struct cJSON;
struct route; /* of server.c */

#define VIEWER_CLIENTS         8u          /* open pages */
#define VIEWER_CONNECTIONS     192u        /* connections handed to libmicrohttpd */
#define VIEWER_JOBS            24u         /* requests queued for the worker */
#define VIEWER_BODY            (64u << 10) /* bytes of a request's body */
#define VIEWER_PATH_BODY       (2u << 20)  /* bytes of a body that holds a camera path */
#define VIEWER_NAME            32          /* characters of a client's name, and of the token */
#define VIEWER_PIXELS          (1u << 22)  /* of a picture; larger requests are scaled down */
#define VIEWER_MOST_SIDE       4096u       /* pixels of a picture's width or height */
/* Seconds after which an unchanged still frame is answered by 204, another waiting request fails,
 * in states without frames already after VIEWER_STILL_TIMEOUT, and a page without requests counts
 * as closed. */
#define VIEWER_STILL_TIMEOUT   2.0
#define VIEWER_REQUEST_TIMEOUT 20.0
#define VIEWER_PRESENT_SECONDS 3.0
/* Share of a training's time for rendering: default and limits of what pages can set. */
#define VIEWER_SHARE           0.5
#define VIEWER_LEAST_SHARE     0.02

/* ---- limits ---------------------------------------------------------------------------------- */

/* A rate limit: `credit` grows by `rate` per second up to `most`. */
struct allowance {
    double rate, most, credit, refilled_at; /* refilled_at: viewer_now() of the last refill */
};

/* Phases of a request, each with a time limit. */
enum phase { PHASE_HEAD, PHASE_BODY, PHASE_WORK, PHASE_ANSWER, PHASE_FILE };

/* A connection of libmicrohttpd. */
struct connection {
    bool is_open, has_token; /* has_token: a request of the connection had the right token */
    int socket;
    double deadline; /* viewer_now() at which the phase's time limit ends */
};

/* ---- requests and answers ------------------------------------------------------------------- */

enum viewer_map { MAP_RGB, MAP_DEPTH, MAP_NORMAL, MAP_OPACITY, MAP_NONE };

/* Colours of depth maps. */
enum viewer_palette { PALETTE_VIRIDIS, PALETTE_INFERNO, PALETTE_TURBO, PALETTE_GREY, PALETTES };

/* Parameters of /api/frame. */
struct frame_request {
    double pose[12], fov, time; /* fov: degrees, vertical */
    double crop[9];             /* corners, and rotation, as in vkn_picture_params */
    double center[2];           /* principal point: shares of the picture's width and height */
    uint32_t width, height;
    double range[2];          /* depths of the palette's ends; both 0: default */
    double exposure;          /* stops, as in vkn_picture_params */
    uint32_t map, second_map; /* enum viewer_map; second_map NONE: the picture has one map */
    uint32_t palette;         /* enum viewer_palette */
    uint32_t background;      /* vkn_background */
    uint32_t cropped, still;  /* flags; still: the camera does not move */
};

struct photo_request {
    enum vkn_split split;
    size_t view;
    uint32_t width;
};

/* Facts of a frame for the headers of its answer. The JPEG has `maps` pictures of this size, one
 * below the other. */
struct frame_facts {
    uint32_t width, height, maps;
    uint64_t step;
    double milliseconds, refined_share; /* refined_share: of the final quality, 0..1 */
};

struct answer {
    unsigned code;
    const char *type; /* of the content */
    void *data;       /* malloc'd; NULL: no content */
    size_t size;
    bool is_frame; /* `facts` are set */
    struct frame_facts facts;
    char policy[400]; /* content security policy of a page; "": none */
    char *file_name;  /* malloc'd; the content is that of `file`; NULL: of `data` */
    int file;         /* descriptor, which the answer owns */
};

enum job { JOB_NONE, JOB_PHOTO, JOB_PATH, JOB_READ_PATH, JOB_FILE };

/* An HTTP request with its answer. The connection of a parked one is suspended until the answer. */
struct exchange {
    struct viewer *viewer;
    struct MHD_Connection *connection;
    struct connection *connection_data; /* the viewer's data of `connection` */
    uint64_t number;                    /* unique */
    double parked_at;                   /* viewer_now() */
    bool parked, answered;
    bool closes; /* the connection is closed after the answer */
    enum job job;
    const struct route *route; /* NULL: the request is refused */
    char *name;                /* of a path or file that is requested, or NULL */
    char *body;                /* of a POST, with a terminating zero */
    size_t size;
    struct frame_request frame; /* of a frame or a probe */
    double pixel[2];            /* of a probe: shares of the picture's width and height */
    bool has_pixel;             /* of a probe: asks for a pixel, not for the range of depths */
    struct photo_request photo;
    struct answer answer;
    struct exchange *next; /* in the worker's queue, or in the list of probes */
};

/* ---- clients --------------------------------------------------------------------------------- */

/* A picture of a still camera that is rendered strip by strip and sent when it is whole. Used by
 * the renderer's thread only. */
struct refinement {
    struct frame_request request;
    uint32_t width, height, rows; /* rows: number of rendered rows, from the top */
    uint32_t supersample;         /* rays along a pixel's edge */
    uint8_t *rgb;                 /* [height][width][3]; NULL: no picture is being rendered */
    uint64_t model_version;       /* of renderers, at the start of the picture */
    double spent_seconds;         /* of rendering */
};

/* The last picture that a page has received. Used by the renderer's thread only. */
struct sent_picture {
    uint64_t client; /* its `number`; 0: none */
    struct frame_request request;
    double rays; /* number of its rays, a measure of its quality */
    uint64_t model_version;
};

/* An open page. */
struct client {
    char name[VIEWER_NAME + 1]; /* "": free slot */
    uint64_t number;            /* unique */
    double seen_at;             /* viewer_now() of its last request or answer */
    struct exchange *waiting;   /* its parked request for a frame */
    struct frame_request last_request;
    double ready_at;      /* viewer_now() from which on its frame can be rendered */
    double refined_share; /* progress to the final quality of `last_request`, 0..1 */
    struct refinement refinement;
    struct sent_picture sent;
};

/* ---- renderers and curves -------------------------------------------------------------------- */

/* The renderers and their time limits. Used by the renderer's thread only. */
struct renderers {
    vkn_renderer *color, *normal; /* NULL until the first request */
    vkn_trainer *trainer;         /* of a training in this process; NULL: the next three are set */
    vkn_context *context;
    const char *checkpoint;
    enum vkn_precision precision;
    uint64_t model_version; /* incremented whenever the parameters change */
    double ray_rate[2];     /* measured rays per second, without and with normals */
    double moving_seconds;  /* seconds for a frame of a moving camera */
    double strip_seconds;   /* seconds for a strip of a still picture */
    double time_share;      /* share of the time that rendering may take; 1 outside of training */
};

#define METRIC_PARTS 3 /* distortion_loss, interlevel_loss, coarse_loss */

struct metric {
    double step, seconds, loss, psnr;
    double parts[METRIC_PARTS]; /* other parts of the loss; NaN: no part */
    double learning_rate, loss_scale;
};
struct evaluation {
    double step, psnr, ssim;
};
/* Quality of a held-out view in the last evaluation. */
struct view_quality {
    char name[32]; /* "test_003": split and index of the view */
    double psnr;
};
/* Curves of the run, read from its folder by the worker. */
struct curves {
    struct metric *metrics;
    size_t metric_count, metric_capacity;
    struct evaluation *evaluations;
    size_t evaluation_count;
    struct view_quality *views;
    size_t view_count;
    double steps_per_second; /* the latest */
    /* Used by the worker only: */
    long offset;                          /* in metrics.jsonl after the last complete line */
    uint64_t metrics_inode, summary_time; /* summary_time: modification time of summary.json */
};

/* What the program does. Frames are rendered in all states but the first and STATE_ENDING. */
enum viewer_state {
    STATE_OPENING,
    STATE_TRAINING,
    STATE_PAUSED,
    STATE_SAVING,
    STATE_ENDING,   /* the training has ended; it is being saved and evaluated */
    STATE_FINISHED, /* this state and the following ones show a checkpoint */
    STATE_STOPPED,
    STATE_FAILED,
    STATE_VIEWING
};

/* Progress of work without frames: "loading images", 12 of 50. */
struct activity {
    char what[256]; /* "": unknown */
    size_t done, total;
};

enum task_state { TASK_NONE, TASK_RUNNING, TASK_DONE, TASK_FAILED, TASK_CANCELLED };

#define TASK_ARGUMENTS 80

/* A command that the viewer runs for a page, or the last one. */
struct task {
    enum task_state state;
    bool cancelled; /* a page has cancelled it */
    uint64_t number;
    char kind[8];                    /* video, mesh, points, splats */
    char *arguments[TASK_ARGUMENTS]; /* malloc'd, as for execve */
    size_t argument_count;
    char *command;                /* for users to copy */
    char *file;                   /* path of the result */
    char name[192];               /* of the result in the run folder: "videos/turn.mp4" */
    char folder[1024];            /* of the result */
    char what[64];                /* present work, or how the command has ended */
    char message[VIEWER_MESSAGE]; /* last line of the command's output */
    char line[VIEWER_MESSAGE];    /* of its output, being read */
    size_t line_size;
    double share;          /* of the present work that is done */
    double began, seconds; /* viewer_now() at the begin; duration */
    uint64_t size;         /* bytes of the result */
    bool has_thread;
    pthread_t thread; /* runs the command */
};

struct viewer {
    char token[VIEWER_NAME + 1], host[256], address[512];
    bool is_open; /* other machines can connect */
    uint16_t port;
    volatile sig_atomic_t *stop;
    struct MHD_Daemon *daemon;
    struct acceptor *acceptor;
    pthread_t worker;
    bool worker_started;
    pthread_mutex_t lock;
    pthread_cond_t wake_renderer, wake_worker;
    struct connection connections[VIEWER_CONNECTIONS];
    uint32_t handed_over;   /* connections that libmicrohttpd has or is about to get */
    uint64_t last_exchange; /* number of the latest exchange */
    struct client clients[VIEWER_CLIENTS];
    uint64_t last_client;    /* number of the latest client */
    uint32_t last_served;    /* index in `clients` */
    struct exchange *jobs;   /* the worker's queue */
    struct exchange *probes; /* parked requests for what a picture shows */
    uint32_t job_count;
    bool ending; /* the program is ending */

    enum viewer_state state;
    struct task task;
    uint64_t last_task;                          /* number of the latest task */
    const char *const *program, *const *options; /* as in viewer_params */
    char *folder, *run; /* folder of curves and paths, or NULL; the run as the user named it */
    char *facts;        /* JSON of /api/scene; NULL: not known yet */
    vkn_scene *scene;   /* only read once `facts` is set; NULL: not found */
    /* Constant once `facts` is set: distance of the focus point, default background. */
    double focus_distance;
    enum vkn_background background;
    double *poses; /* [pose_count][12], refined poses of the training views; NULL: none */
    size_t pose_count;
    uint64_t poses_version; /* number of changes of `poses` */
    struct curves curves;
    uint64_t step;
    double seconds;    /* of training */
    double used_share; /* share of the recent training time that the viewer took */
    char message[256]; /* last error */
    struct activity activity;
    /* Of a training that has ended: a sentence and a command to copy; "": not known yet, none. */
    char result[512], command[512];
    double psnr, ssim;               /* of the held-out views; NaN: not evaluated */
    enum viewer_state outcome;       /* state in which the viewer stays open after the training */
    bool stays;                      /* it stays open */
    double step_limit, second_limit; /* of the training; 0: none */
    double state_polled_at;          /* viewer_now() of the last request of the state */
    bool pause_requested, save_requested; /* by a page */
    double saved_at;                      /* viewer_now() of the last checkpoint's request or end */
    struct allowance commands;            /* limits requests that change something */
    struct allowance reading; /* limits the worker's seconds during training; the worker's only */
    bool can_pause, callbacks_opened; /* callbacks_opened: a training has begun */
    double time_share; /* share of a training's time for rendering, as pages have set it */
    double moved_at;   /* viewer_now() of the last request of a frame with another camera */
    struct renderers renderers; /* used by the renderer's thread only */
    struct vkn_train_callbacks callbacks;
    /* Rendering time during training: its limit, the seconds used since `used_share` was updated,
     * and viewer_now() of that update. Used by the renderer's thread only. */
    struct {
        struct allowance time;
        double rendering_time, reported_at;
    } budget;
    double poses_read_at; /* viewer_now() of the last read; used by the renderer's thread only */
};

/* Returns the seconds of a monotonic clock. */
double viewer_now(void);

/* ---- viewer.c, train.c ----------------------------------------------------------------------- */

/* Waits at most `seconds`, or until a frame is requested. Called by the renderer's thread. */
void viewer_wait_for_request(struct viewer *viewer, double seconds);
/* Marks all frames as outdated: the parameters have changed. */
void viewer_new_model(struct viewer *viewer, uint64_t step);
/* Fills viewer->callbacks. */
void train_set_callbacks(struct viewer *viewer);

/* ---- activity.c: what pages show of the program ---------------------------------------------- */

/* Sets the message that pages show. Takes the lock, like viewer_set_state. */
void viewer_set_message(struct viewer *viewer, const char *format, ...)
    __attribute__((format(__printf__, 2, 3)));
void viewer_set_state(struct viewer *viewer, enum viewer_state state);
/* Writes what the program does besides training and rendering, "" for nothing, for pages to show.
 * Returns whether that is why no frames are rendered at present. Called under the lock. */
bool viewer_is_busy(const struct viewer *viewer, char text[VIEWER_MESSAGE]);
/* Shows on pages that work without counts has begun; NULL: none. Takes the lock. */
void viewer_begin_activity(struct viewer *viewer, const char *what);

/* ---- address.c ------------------------------------------------------------------------------- */

/* Creates the token, listens, and sets viewer->address. Returns the descriptor, or -1. */
int address_listen(struct viewer *viewer, const struct viewer_params *params, char *message);
/* Compares with the token in constant time. */
bool address_token_is(const struct viewer *viewer, const char *token);
/* Return whether a Host or an Origin header names this viewer. */
bool address_host_is(const struct viewer *viewer, const char *host);
bool address_origin_is(const struct viewer *viewer, const char *origin);
/* Fills memory with random bytes. */
bool address_random(void *bytes, size_t size);
/* Writes 2 * size hexadecimal digits and a zero. */
void address_hex(const uint8_t *bytes, size_t size, char *text);

/* ---- limits.c, accept.c ---------------------------------------------------------------------- */

/* Refills the credit and returns it. */
double allowance_left(struct allowance *allowance, double now);
/* Takes 1 of the credit; false: less than 1 is left. */
bool allowance_take(struct allowance *allowance, double now);
/* Handles MHD_OPTION_NOTIFY_CONNECTION; `context`: the viewer. */
void connection_notice(void *context, struct MHD_Connection *connection, void **data,
                       enum MHD_ConnectionNotificationCode what);
/* Returns the viewer's data of a connection, or NULL. */
struct connection *connection_of(struct MHD_Connection *connection);
/* Starts a phase's time limit; ignores NULL. Called under the lock, like the next two. */
void connection_begin_phase(struct connection *connection, enum phase phase);
/* Shuts down the connections whose time limit has ended. */
void connections_expire(struct viewer *viewer, double now);
/* Counts the connections that have shown the token. */
uint32_t connections_with_token(const struct viewer *viewer);
/* Starts the acceptor's thread on a listening socket and, on success, takes ownership of it. */
bool accept_start(struct viewer *viewer, int socket);
void accept_stop(struct viewer *viewer);

/* ---- server.c, answer.c ---------------------------------------------------------------------- */

/* Starts libmicrohttpd and the acceptor. False: `message` says why. */
bool server_start(struct viewer *viewer, int socket, char *message);
void server_stop(struct viewer *viewer);
/* Sets the answer, whose data the exchange then owns, and resumes a parked connection. Called under
 * the lock, like answer_fail and answer_park. */
void answer_set(struct exchange *exchange, const struct answer *answer);
/* Frees what an answer owns. */
void answer_clear(struct answer *answer);
/* Answers with {"error": message}. */
void answer_fail(struct exchange *exchange, unsigned code, const char *format, ...)
    __attribute__((format(__printf__, 3, 4)));
/* Parks the exchange until answer_set. */
void answer_park(struct exchange *exchange);

/* Passes the answer to libmicrohttpd. */
enum MHD_Result answer_queue(struct exchange *exchange);
/* Creates an answer that owns the malloc'd `text`; NULL: out of memory, which answers 500. */
struct answer answer_text(unsigned code, const char *type, char *text);
/* Creates an answer from a tree, which it deletes; NULL: out of memory. */
struct answer answer_json(unsigned code, struct cJSON *json);
/* Adds a text, replacing bytes that are not UTF-8 by U+FFFD; false: out of memory or no text. */
bool answer_add_text(struct cJSON *json, const char *name, const char *text);
/* Creates the answer {"error": message}. */
struct answer answer_error(unsigned code, const char *message);
/* Creates the answer of a page, with a fresh nonce. */
struct answer answer_page(unsigned code, const char *begin, const char *end);

/* ---- request.c ------------------------------------------------------------------------------- */

/* Read the parameters of a request. False: `problem` names the invalid parameter. */
bool request_frame(struct MHD_Connection *connection, struct frame_request *request,
                   char problem[128]);
bool request_probe(struct MHD_Connection *connection, struct exchange *exchange, char problem[128]);
bool request_photo(struct MHD_Connection *connection, struct photo_request *request,
                   char problem[128]);
/* Returns whether two requests are equal in everything but `still`. */
bool frame_same(const struct frame_request *a, const struct frame_request *b);
/* Returns the number of maps of a request's picture: 1 or 2. */
uint32_t frame_maps(const struct frame_request *request);
/* Returns whether a request shows normals. */
bool frame_has_normals(const struct frame_request *request);

/* ---- clients.c: called under the lock -------------------------------------------------------- */

/* Parks or refuses the request of a frame by the client `name`. */
void clients_wait(struct viewer *viewer, const char *name, struct exchange *exchange);
/* Returns whether a page is open. */
bool clients_present(const struct viewer *viewer, double now);
/* Returns the next client, round robin, whose frame can be rendered; NULL: none. */
struct client *clients_next(struct viewer *viewer, double now);
/* Makes all clients ready: the parameters have changed. */
void clients_refresh(struct viewer *viewer);
/* Returns whether a client waits for a frame. */
bool clients_waiting(const struct viewer *viewer);
/* Refuses all waiting requests. */
void clients_refuse_waiting(struct viewer *viewer, const char *why);
/* Returns the earliest viewer_now() at which a frame can be rendered; HUGE_VAL: none waits. */
double clients_ready_at(const struct viewer *viewer);
/* Answers requests that have waited for longer than their time limit. */
void clients_expire(struct viewer *viewer, double now);
/* Removes an exchange that has ended from its client and from the worker's queue. */
void clients_forget(struct viewer *viewer, const struct exchange *exchange);
/* Parks or refuses a request for what a picture shows. */
void probe_wait(struct viewer *viewer, struct exchange *exchange);

/* ---- frames: called by the renderer's thread ------------------------------------------------- */

/* Renders a frame or a strip for the next client and answers if the picture is whole. Returns the
 * seconds taken; 0: nothing to do. */
double frames_work(struct viewer *viewer);
/* Part [x, x + width) x [y, y + height) of a picture of `full` pixels, supersample^2 rays per
 * pixel. */
struct part {
    uint32_t full[2], x, y, width, height, supersample;
};
/* Renders a part of a picture. The caller frees *picture. */
vkn_status frames_picture(struct viewer *viewer, const struct frame_request *request,
                          const struct part *part, struct vkn_picture **picture);
/* Renders a part as RGB8, `pitch` bytes per row; the second map is full[1] rows below the first.
 * False: failed, see viewer->message. */
bool frames_render(struct viewer *viewer, const struct frame_request *request,
                   const struct part *part, uint8_t *rgb, size_t pitch);
/* Returns the expected rays per second. */
double frames_ray_rate(const struct renderers *renderers, const struct frame_request *request);
/* Computes the size of a picture with about `rays` pixels, at most the requested size. */
void frames_size(const struct frame_request *request, double rays, uint32_t size[2]);
/* Answers the exchange if the client still waits for it. Takes ownership of answer->data. */
bool frames_answer(struct viewer *viewer, struct client *client, uint64_t exchange,
                   const struct answer *answer);
/* Answers the exchange with a JPEG. False: the client does not wait for it any more. */
bool frames_send(struct viewer *viewer, struct client *client, uint64_t exchange,
                 const uint8_t *rgb, const struct frame_facts *facts, int quality);
/* Renders a strip of a still picture, and sends the picture when it is whole. False: failed. */
bool refine_work(struct viewer *viewer, struct client *client, const struct frame_request *request,
                 uint64_t exchange);
void refine_free(struct refinement *refinement);
/* Converts `map` of a picture to RGB8. Without a range in the request, depths are shown up to twice
 * `focus_distance`. */
void picture_colors(const struct vkn_picture *picture, const struct frame_request *request,
                    enum viewer_map map, double focus_distance, uint8_t *rgb, size_t pitch);
/* Computes a palette's colour at 0..1. */
void picture_palette(enum viewer_palette palette, double at, double rgb[3]);
/* Names of the palettes, in order. */
extern const char *const picture_palettes[PALETTES + 1];

/* Returns the renderer for a request's map; creates it on first use. */
vkn_status renderers_get(struct renderers *renderers, const struct frame_request *request,
                         vkn_renderer **renderer);
void renderers_close(struct renderers *renderers);

/* ---- probe.c --------------------------------------------------------------------------------- */

/* Answers the oldest request. Returns the seconds taken; 0: nothing to do. Called by the renderer's
 * thread. */
double probe_work(struct viewer *viewer);

/* ---- facts.c, state.c, curves.c, photo.c, path.c, poses.c
 * --------------------------------------------- */

/* Opens the scene and sets viewer->facts, before which no request uses the scene. */
vkn_status facts_find(struct viewer *viewer, const char *run, const char *scene,
                      enum vkn_scene_format format, const vkn_config *config);
/* Returns whether a setting has the value. */
bool facts_config_is(const vkn_config *config, const char *key, const char *expected);
/* Answers /api/state with log lines from index `from` on. Called under the lock. */
struct answer state_answer(struct viewer *viewer, size_t from);
const char *state_name(enum viewer_state state);
/* Returns whether a training runs or is paused. Called under the lock. */
bool state_trains(const struct viewer *viewer);
/* Reads new lines of the run's files. Like photo_answer and path_answer, called by the worker. */
void curves_read(struct viewer *viewer);
void curves_free(struct curves *curves);
struct answer photo_answer(struct viewer *viewer, const struct photo_request *request);
/* Answers requests that save, delete and convert paths, and for the list of paths or a path. */
struct answer path_answer(struct viewer *viewer, const char *body);
struct answer path_read_answer(struct viewer *viewer, const char *name);
/* Answers /api/file: a file that a task has made, "videos/turn.mp4"; without `name` their list. */
struct answer file_answer(const struct viewer *viewer, const char *name);
bool worker_start(struct viewer *viewer);
void worker_stop(struct viewer *viewer);
/* Reads the refined poses, if there are any, from the renderer of the last frame. Called by the
 * renderer's thread, which alone writes them. */
void poses_read(struct viewer *viewer);
/* Answers /api/poses. Called under the lock. */
struct answer poses_answer(const struct viewer *viewer);
/* Parks the exchange and queues it for the worker, under the lock; false: the queue is full. */
bool worker_enqueue(struct exchange *exchange, enum job job);

/* ---- control.c: pause, resume, save, stop, end, share ------------------------------------------
 */

/* Handles a command. Called under the lock. */
struct answer control_answer(struct viewer *viewer, const char *body);

/* ---- names.c --------------------------------------------------------------------------------- */

/* Returns why a page's name for a file is refused; NULL: it is valid on all systems. */
const char *name_problem(const char *name);
/* Returns FOLDER/NAME.EXTENSION in the run's folder, in fresh memory; "" for `name`: the folder. */
char *name_path(const struct viewer *viewer, const char *folder, const char *name,
                const char *extension);

/* ---- task.c, task_command.c ------------------------------------------------------------------ */

/* Answers requests that start or cancel a command, and for its progress. Called under the lock. */
struct answer task_answer(struct viewer *viewer, const char *body);
struct answer task_state_answer(const struct viewer *viewer);
/* Cancels the running command and waits for its end. */
void task_stop(struct viewer *viewer);
/* Makes a command from a page's request. False: `problem` says why not. The caller frees the
 * arguments, `command` and `file` in both cases. */
bool task_command(const struct viewer *viewer, const struct cJSON *json, struct task *task,
                  char problem[VIEWER_MESSAGE]);

/* ---- the pages, generated by cmake/Page.cmake ------------------------------------------------ */

extern const char viewer_page[], viewer_page_end[];     /* the viewer */
extern const char viewer_denied[], viewer_denied_end[]; /* shown without the token */

#define PAGE_NONCE "@NONCE" /* placeholder of the answer's nonce in both pages */

#endif
