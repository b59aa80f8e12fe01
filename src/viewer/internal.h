/* What the viewer's files share.
 *
 * Four threads: one accepts connections, and ends those whose time is over; libmicrohttpd's takes
 * requests and answers what it can at once; the worker reads files, for photographs, paths and
 * curves, and ends waits that have become too long; the one that has the device, the caller's,
 * renders (stage, refinement). Everything below is the lock's, but for what says otherwise. */
#ifndef VIEWER_INTERNAL_H
#define VIEWER_INTERNAL_H

#include <pthread.h>
#include <stdint.h>

#include "pixels/pixels.h"
#include "viewer/libraries.h"
#include "viewer/viewer.h"

struct cJSON;

#define VIEWER_CLIENTS         8u
#define VIEWER_CONNECTIONS     192u        /* that have shown the token */
#define VIEWER_JOBS            24u         /* that wait for the worker */
#define VIEWER_BODY            (64u << 10) /* bytes of a request's body */
#define VIEWER_NAME            32          /* characters of a client's, and of a token */
#define VIEWER_PIXELS          (1u << 22)  /* of a picture; larger ones are shown smaller */
#define VIEWER_MOST_SIDE       4096u
#define VIEWER_STILL_TIMEOUT   2.0  /* seconds that a still picture waits for something new */
#define VIEWER_REQUEST_TIMEOUT 20.0 /* and any other request for its answer */
#define VIEWER_PRESENT_SECONDS 3.0  /* seconds without a request until nobody looks */

/* ---- limits ---------------------------------------------------------------------------------- */

/* Refills by `rate` a second, up to `most`. */
struct allowance {
    double rate, most, credit, at; /* at: viewer_now() of the last refill */
};

/* Phases of a request, each with a time that it may take in all. */
enum phase { PHASE_HEAD, PHASE_BODY, PHASE_WORK, PHASE_ANSWER };

/* Of libmicrohttpd's. */
struct connection {
    bool open, token; /* token: it has shown it */
    int socket;
    double until; /* viewer_now() when the phase is over */
};

/* ---- requests and answers ------------------------------------------------------------------- */

enum viewer_map { MAP_RGB, MAP_DEPTH, MAP_NORMAL, MAP_OPACITY };

/* Of /api/frame. */
struct frame_request {
    double pose[12], fov, time, crop[6]; /* fov: degrees, vertical */
    double center[2]; /* where the optical axis meets the picture: shares of its width and height */
    uint32_t width, height;
    uint32_t map, background; /* enum viewer_map, vkn_background */
    uint32_t cropped, still;
};

struct photo_request {
    enum vkn_split split;
    size_t view;
    uint32_t width;
};

/* Of a frame, for its headers. */
struct frame_facts {
    uint32_t width, height;
    uint64_t step;
    double milliseconds, refined;
};

struct answer {
    unsigned code;
    const char *type; /* of the content */
    void *data;       /* malloc'd; NULL: nothing */
    size_t size;
    bool framed; /* has: */
    struct frame_facts facts;
    char policy[360]; /* content security policy of a page; "": none */
};

enum job { JOB_NONE, JOB_PHOTO, JOB_PATH };

/* A request from its head to its end. */
struct exchange {
    struct viewer *viewer;
    struct MHD_Connection *connection;
    struct connection *own; /* of it */
    uint64_t number;        /* of no other */
    double since;           /* when it was parked */
    bool parked, answered;
    bool closes; /* the connection, behind the answer */
    enum job job;
    char *body; /* of a POST, zero behind it */
    size_t size;
    struct frame_request frame;
    struct photo_request photo;
    struct answer answer;
    struct exchange *next; /* in the worker's queue */
};

/* ---- clients --------------------------------------------------------------------------------- */

/* A picture that becomes better by and by. The renderer's alone. */
struct refinement {
    struct frame_request request; /* that it is of */
    uint32_t width, height, tile, columns, tiles;
    uint32_t *order; /* tiles from the middle */
    uint32_t next;   /* of these */
    uint32_t edge;   /* rays along a pixel's edge, of the pass that is under way */
    uint8_t *rgb;
    uint64_t model; /* that the pass began with, see stage */
    bool whole;     /* a pass is done */
    bool complete;  /* nothing more can be done for this model */
    bool fresh;     /* there is something that was not sent */
    double spent;   /* seconds of rendering since the last picture was sent */
    double sent;    /* viewer_now() of that */
};

/* A page that somebody has open. */
struct client {
    char name[VIEWER_NAME + 1]; /* "": the place is free */
    uint64_t number;            /* of no other */
    double seen;
    struct exchange *waiting;   /* its one outstanding frame */
    struct frame_request asked; /* last */
    double ready;               /* viewer_now() from which on there can be something new */
    uint64_t refined_of;        /* client number that the refinement is for; the renderer's */
    struct refinement refinement;
};

/* ---- what is shown --------------------------------------------------------------------------- */

/* The renderer's alone. */
struct renderers {
    vkn_renderer *color, *normal; /* NULL: not needed yet */
    vkn_trainer *trainer;         /* of a run that is trained here, else: */
    vkn_context *context;
    const char *checkpoint;
    enum vkn_precision precision;
    uint64_t model;     /* raised with every change of the weights */
    double ray_rate[2]; /* rays a second; of normals */
    double moving;      /* seconds that a frame of a moving camera may take */
    double tile;        /* and a part of a still one */
    double allowance;   /* share of the time; 1: all of it */
};

struct metric {
    double step, seconds, loss, psnr;
};
struct evaluation {
    double step, psnr, ssim;
};
/* Read from the run's folder by the worker. */
struct curves {
    struct metric *metrics;
    size_t metric_count, metric_room;
    struct evaluation *evaluations;
    size_t evaluation_count;
    double rate; /* steps a second at the end */
    /* The worker's alone: */
    long offset;                 /* of metrics.jsonl, behind the last whole line */
    uint64_t file, summary_time; /* which file it was, and when summary.json was written */
};

enum viewer_state {
    STATE_TRAINING,
    STATE_PAUSED,
    STATE_SAVING,
    STATE_FINISHED,
    STATE_STOPPED,
    STATE_VIEWING
};

struct viewer {
    char token[VIEWER_NAME + 1], host[256], address[512];
    bool open; /* beyond this machine */
    uint16_t port;
    volatile sig_atomic_t *stop;
    struct MHD_Daemon *daemon;
    struct acceptor *acceptor;
    pthread_t worker;
    bool working;
    pthread_mutex_t lock;
    pthread_cond_t renders, works; /* something to do for the renderer, for the worker */
    struct connection connections[VIEWER_CONNECTIONS];
    uint32_t handed_over; /* connections that libmicrohttpd has, or is about to have */
    uint64_t exchanges;   /* so far */
    struct client clients[VIEWER_CLIENTS];
    uint64_t client_count; /* so far */
    uint32_t turn;         /* client that was served last */
    struct exchange *jobs; /* of the worker, in order */
    uint32_t job_count;
    bool ending; /* everybody is told so */

    enum viewer_state state;
    char *folder, *run;    /* of curves and paths, NULL: there is none; as commands name it */
    char *facts;           /* JSON of /api/scene; NULL: not known yet */
    vkn_scene *scene;      /* the worker's alone once `facts` is there; NULL: missing */
    double focus_distance; /* distance of what is looked at; fixed once `facts` is there, as is: */
    enum vkn_background background; /* where none is asked for */
    struct curves curves;
    uint64_t step;
    double seconds;    /* of training */
    double share;      /* of the time that the viewer took */
    char message[256]; /* the last that went wrong */
    char end[1024]; /* what has come of a training that has ended; empty: it has not, or that is not
                       known yet */
    double state_asked;        /* when a page last asked for the state */
    bool pause, save;          /* asked for */
    double saved;              /* viewer_now() when a checkpoint was asked for, or written, last */
    struct allowance commands; /* requests that change something */
    struct allowance reading;  /* seconds of the worker's while a training goes on; the worker's
                                  alone */
    bool can_pause;
    struct renderers renderers; /* the renderer's */
    struct vkn_train_callbacks callbacks;
    struct {                   /* the renderer's */
        struct allowance time; /* seconds */
        double taken, shown;
    } budget;
};

double viewer_now(void); /* seconds */
void viewer_set_message(struct viewer *viewer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- viewer.c, train.c ----------------------------------------------------------------------- */

/* The renderer's: until somebody wants a frame, at most so long. */
void viewer_wait_for_request(struct viewer *viewer, double seconds);
void viewer_new_model(struct viewer *viewer, uint64_t step);
void viewer_set_state(struct viewer *viewer, enum viewer_state state);
void train_set_callbacks(struct viewer *viewer); /* makes viewer->visitor */

/* ---- address.c ------------------------------------------------------------------------------- */

/* Makes the token, listens, and says where. The descriptor, or -1. */
int address_listen(struct viewer *viewer, const struct viewer_params *params, char *message);
bool address_token_is(const struct viewer *viewer, const char *token); /* in constant time */
/* Of a Host header, or of an Origin. */
bool address_host_is(const struct viewer *viewer, const char *host);
bool address_origin_is(const struct viewer *viewer, const char *origin);
bool address_random(void *bytes, size_t size);
void address_hex(const uint8_t *bytes, size_t size, char *text);

/* ---- limits.c, accept.c ---------------------------------------------------------------------- */

double allowance_left(struct allowance *allowance, double now);
bool allowance_take(struct allowance *allowance, double now); /* one; false: there is none */
/* MHD_OPTION_NOTIFY_CONNECTION, with the viewer. */
void connection_notice(void *context, struct MHD_Connection *connection, void **own,
                       enum MHD_ConnectionNotificationCode what);
struct connection *connection_of(struct MHD_Connection *connection);
/* Under the lock. */
void connection_begins(struct connection *connection, enum phase phase);
void connections_expire(struct viewer *viewer, double now);
uint32_t connections_with_token(const struct viewer *viewer);
/* Begins to accept at a socket that listens, and that is the acceptor's once it has begun. */
bool accept_start(struct viewer *viewer, int socket);
void accept_stop(struct viewer *viewer);

/* ---- server.c, answer.c ---------------------------------------------------------------------- */

bool server_start(struct viewer *viewer, int socket, char *message);
void server_stop(struct viewer *viewer);
/* Gives the exchange its answer, under the lock: the answer's data goes over to the exchange, which
 * goes on if it was parked. */
void answer_give(struct exchange *exchange, const struct answer *answer);
void answer_fail(struct exchange *exchange, unsigned code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Parks the exchange until answer_give. */
void answer_park(struct exchange *exchange);

enum MHD_Result answer_queue(struct exchange *exchange);
struct answer answer_text(unsigned code, const char *type,
                          char *text); /* malloc'd, NULL: out of memory */
/* Prints and deletes the tree; NULL: out of memory. */
struct answer answer_json(unsigned code, struct cJSON *json);
/* Adds a text, of which bytes that are not UTF-8 become U+FFFD; false without memory or text. */
bool answer_add_text(struct cJSON *json, const char *name, const char *text);
struct answer answer_error(unsigned code, const char *message);
/* A page with a nonce of its own. */
struct answer answer_page(unsigned code, const char *begin, const char *end);

/* ---- request.c ------------------------------------------------------------------------------- */

/* False: `problem` names the parameter. */
bool request_frame(struct MHD_Connection *connection, struct frame_request *request,
                   char problem[128]);
bool request_photo(struct MHD_Connection *connection, struct photo_request *request,
                   char problem[128]);
bool frame_same(const struct frame_request *a, const struct frame_request *b); /* but for `still` */

/* ---- clients.c: under the lock --------------------------------------------------------------- */

/* Parks or refuses it. */
void clients_wait(struct viewer *viewer, const char *name, struct exchange *exchange);
/* Why there are no frames of a training that is over. Under the lock. */
const char *clients_after_training(const struct viewer *viewer);
bool clients_present(const struct viewer *viewer, double now);
/* The next by turns whose request can be worked on; NULL: none. */
struct client *clients_next(struct viewer *viewer, double now);
void clients_refresh(struct viewer *viewer); /* there is another model */
bool clients_waiting(const struct viewer *viewer);
void clients_refuse_waiting(struct viewer *viewer, const char *why); /* all who wait */
double clients_ready(const struct viewer *viewer); /* the first time that there can be one;
                                                      HUGE_VAL: nobody waits */
/* Waits that are over. */
void clients_expire(struct viewer *viewer, double now);
void clients_forget(struct viewer *viewer, const struct exchange *exchange);

/* ---- frames.c, refine.c, picture.c: the renderer's ------------------------------------------- */

/* Renders one piece for who is next, and answers if it is due; seconds that it took, 0: nothing to
 * do. */
double frames_work(struct viewer *viewer);
/* The request's part [x, x + width) x [y, y + height) of a picture of `full` pixels, rgb, `pitch`
 * bytes a row. */
struct part {
    uint32_t full[2], x, y, width, height, edge;
};
bool frames_render(struct viewer *viewer, const struct frame_request *request,
                   const struct part *part, uint8_t *rgb, size_t pitch);
double frames_ray_rate(const struct renderers *renderers,
                       const struct frame_request *request); /* rays a second */
/* `rays` of the request's picture, at most all. */
void frames_size(const struct frame_request *request, double rays, uint32_t size[2]);
/* False: nobody waits for it any more. */
bool frames_send(struct viewer *viewer, struct client *client, uint64_t exchange,
                 const uint8_t *rgb, const struct frame_facts *facts, int quality);
/* Of a still camera: a part of its picture, which is sent when it is time. False: it cannot be
 * rendered. */
bool refine_work(struct viewer *viewer, struct client *client, const struct frame_request *request,
                 uint64_t exchange);
void refine_free(struct refinement *refinement);
/* A map of a picture as 8 bits of red, green, blue. */
void picture_colors(const struct vkn_picture *picture, const struct frame_request *request,
                    double focus_distance, uint8_t *rgb, size_t pitch);
void picture_enlarge(const uint8_t *small, const uint32_t from[2], uint8_t *large,
                     const uint32_t to[2]);

vkn_status renderers_get(struct renderers *renderers, const struct frame_request *request,
                         vkn_renderer **renderer);
void renderers_close(struct renderers *renderers);

/* ---- facts.c, state.c, curves.c, photo.c, path.c --------------------------------------------- */

/* Opens the scene, and finds out what /api/scene tells. Before anybody else knows of the run. */
vkn_status facts_find(struct viewer *viewer, const char *run, const char *scene,
                      enum vkn_scene_format format, const vkn_config *config);
struct answer state_answer(struct viewer *viewer, size_t from); /* under the lock */
const char *state_name(enum viewer_state state);
void curves_read(struct viewer *viewer); /* the worker's */
void curves_free(struct curves *curves);
struct answer photo_answer(struct viewer *viewer,
                           const struct photo_request *request);    /* the worker's */
struct answer path_answer(struct viewer *viewer, const char *body); /* the worker's */
bool worker_start(struct viewer *viewer);
void worker_stop(struct viewer *viewer);
bool worker_enqueue(struct exchange *exchange, enum job job); /* under the lock; false: too many */

/* ---- control.c: what somebody asks a training for -------------------------------------------- */

struct answer control_answer(struct viewer *viewer, const char *body); /* under the lock */

/* ---- the page, put together by cmake/Page.cmake ---------------------------------------------- */

extern const char viewer_page[], viewer_page_end[];     /* what shows the run */
extern const char viewer_denied[], viewer_denied_end[]; /* for who comes without the token */

#define PAGE_NONCE "@NONCE" /* stands in both where the answer's nonce goes */

#endif
