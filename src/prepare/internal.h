/* Inside of the prepare room: photographs or a video become the folder of a scene, by ffmpeg and
 * COLMAP. */
#ifndef PREPARE_INTERNAL_H
#define PREPARE_INTERNAL_H

#include <vknerf/prepare.h>

#include "base/base.h"
#include "config/config.h"
#include "report/report.h"
#include "scene/scene.h"

/* ---- what is prepared ------------------------------------------------------------------------ */

/* A photograph as it was given. */
struct source_picture {
    char *file;             /* its name in the folder */
    char *name;             /* the one that it gets in SCENE/images */
    char *problem;          /* why it is left out; NULL: it is used */
    bool converted;         /* by ffmpeg, since vknerf and COLMAP do not read its format */
    bool is_heif;           /* HEIC or AVIF */
    uint32_t longest;       /* side of the whole picture, of HEIF; 0: not known */
    const char *demuxer;    /* ffmpeg's of what the file holds; NULL: as its name says */
    unsigned orientation;   /* Exif's, 1 to 8 */
    double focal;           /* of its EXIF, mm; 0: not known */
    uint64_t size;          /* bytes of the file */
    uint32_t head_checksum; /* of its beginning */
};

/* What is in a video, as ffprobe says. */
struct source_video {
    uint64_t frames;
    bool hdr; /* its curve is PQ's or HLG's */
};

/* What has been given. */
struct source {
    bool is_video;
    char *folder; /* of the photographs */
    char *masks;  /* folder of their masks; NULL: there is none */
    struct source_picture *pictures;
    size_t count;
    struct source_video video;
    uint32_t sum; /* of all that the pictures of the scene are made from */
};

/* ---- what has been done ---------------------------------------------------------------------- */

enum stage { STAGE_IMAGES, STAGE_FEATURES, STAGE_MATCHES, STAGE_MODELS, STAGE_COUNT };
#define MAX_ATTEMPTS 2 /* at finding poses: as usual, then with more features */

/* SCENE/prepare.json: a stage is done when its sum stands there, which is one of all that it
 * depends on. */
struct record {
    char *pictures;                             /* what was prepared, for messages */
    uint32_t stages[MAX_ATTEMPTS][STAGE_COUNT]; /* 0: not done; images are attempt 0's alone */
    uint32_t database[MAX_ATTEMPTS];            /* the features that a database was begun for */
    uint32_t extracted[MAX_ATTEMPTS];           /* pictures in it, at least, when it was left */
};

struct preparation {
    const struct vkn_prepare_params *params;
    struct vkn_job job;
    const char *out;
    char *work;   /* out/prepare */
    char *images; /* out/images */
    int lock;     /* descriptor; -1: none */
    struct source source;
    struct record record;
    struct report_progress *progress;
    char **names; /* of the pictures in out/images, in order */
    size_t count;
    uint32_t longest; /* side of the smallest picture */
    bool one_camera;
    bool masked;
    struct vkn_prepare_result result;
};

/* VKN_INTERRUPTED when the job is to end. */
vkn_status prepare_check_stop(const struct preparation *preparation);

vkn_status record_read(struct preparation *preparation);
vkn_status record_write(const struct preparation *preparation);
void record_free(struct record *record);

/* ---- files ----------------------------------------------------------------------------------- */

/* Removes a file, or a folder with all that is in it; what is not there is fine. */
vkn_status files_remove(const char *path);
vkn_status files_move(const char *from, const char *to);
/* VKN_BAD_INPUT for anything but files and folders below the path, which may be absent: through a
 * link, prepare or COLMAP would write elsewhere. */
vkn_status files_check_no_links(const char *path);
/* The same file by another name, or a copy of it. VKN_BAD_INPUT: `from` cannot be read. */
vkn_status files_link(const char *from, const char *to);
/* base_file_replace, but every failure is VKN_ERROR: what cannot be written is no fault of what it
 * was made from. */
vkn_status files_write(const char *path, const void *data, size_t size);
/* As people sort names: IMG_9 comes before IMG_10. */
int files_natural_order(const char *a, const char *b);
/* Sums of texts, in which order counts. */
uint32_t files_checksum(uint32_t sum, const char *text);
/* How a name ends, compared without case, as one of "jpg jpeg png". */
bool files_ends_with(const char *name, const char *endings);

/* ---- programs -------------------------------------------------------------------------------- */

/* Arguments of a program; free with arguments_free. */
struct arguments {
    char **items; /* NULL behind the last */
    size_t count, capacity;
    bool failed;
};
__attribute__((format(printf, 2, 3))) void arguments_add(struct arguments *arguments,
                                                         const char *format, ...);
void arguments_free(struct arguments *arguments);

#define MOST_WORDS 300

/* Options of ffmpeg and ffprobe in front of the input's: it opens the file alone, also where that
 * is a list of files or addresses (m3u8, concat, DASH), which no format below is. */
#define FFMPEG_ONE_FILE  "-protocol_whitelist", "file"
#define FFMPEG_ONE_VIDEO FFMPEG_ONE_FILE, "-format_whitelist", FFMPEG_VIDEOS
#define FFMPEG_VIDEOS                                                                             \
    ("mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,obu,ivf,flv," \
     "asf,ogg,gif,apng,mxf,"                                                                      \
     "dv,mjpeg,nut,rm,wtv,yuv4mpegpipe")

/* A run of ffmpeg, ffprobe or COLMAP. */
struct program {
    const char *name;           /* "ffmpeg" */
    struct arguments arguments; /* the name first */
    /* Of what it prints: lines of both streams, or bytes of standard output; NULL: into the log
     * alone. */
    void (*line)(void *context, const char *line);
    void (*bytes)(void *context, const char *data, size_t size);
    void *context;
    bool refused;          /* it ran, and failed by itself: nothing ended it from outside */
    char said[MOST_WORDS]; /* why, in its own words */
};
/* Runs it to its end and frees its arguments. SCENE/prepare/NAME.log gets its errors, and its
 * lines. VKN_ERROR: it is not there, or fails: its last words; VKN_INTERRUPTED: it was ended. */
vkn_status program_run(const struct preparation *preparation, struct program *program);
#define MIN_PICTURES 3u /* pictures of a scene */
/* VKN_ERROR names the package where the program is not in PATH. */
vkn_status program_require(const char *name, const char *what_for);

/* ---- stages ---------------------------------------------------------------------------------- */

/* What was given: photographs and masks are listed, a video is looked at. What is no photograph
 * that can be read gets a problem: links that lead nowhere, folders, pipes, devices; they are never
 * opened. */
vkn_status source_open(struct preparation *preparation);
void source_free(struct source *source);
/* Lists the photographs of the folder, without a look into them; warns of other files that may be
 * taken for some. */
vkn_status listing_find(struct source *source, const char *given);
/* Endings of names. */
#define PREPARE_PHOTOGRAPHS \
    "jpg jpeg png jpe jfif heic heif hif avif webp tif tiff bmp jp2 ppm pgm tga"
/* Gives it the last error's message as its problem, without the path that this begins with. */
vkn_status source_reject(struct source_picture *picture, const char *path);
/* The same of the picture that has the name in SCENE/images; of what is no photograph, frames and
 * views, a warning. */
vkn_status source_reject_named(struct source *source, const char *name, const char *path,
                               const char *message);
/* A warning of one line about the photographs that have a problem, if any: how many, and the first
 * of them. */
void source_warn_problems(const struct source *source);
/* What else to do about those that have one; NULL: nothing. */
const char *source_advice(const struct source *source);
/* Whether the photographs are of one camera, as far as can be known: of one size and focal length.
 */
bool source_one_camera(const struct preparation *preparation);

/* Pictures into a folder. */
vkn_status photographs_write(struct preparation *preparation, const char *folder);
#define MIN_FRAMES  3u /* of a video */
#define MOST_FRAMES 5000u
vkn_status video_probe(struct preparation *preparation, const char *path);
vkn_status video_extract_frames(struct preparation *preparation, const char *folder);
/* The frame to take of each of `count` windows: the sharpest. */
vkn_status video_pick_sharpest(struct preparation *preparation, uint64_t *frames, uint32_t count);
/* Replaces the panoramas of a folder by their views. */
vkn_status panoramas_split(struct preparation *preparation, const char *folder);
#define PANORAMA_VIEWS 8
uint32_t panorama_view_size(uint32_t width);

/* Makes images, images_N and masks; sets names, count, longest and masked, also where they are
 * there. */
vkn_status images_make(struct preparation *preparation);

/* Finds poses: SCENE/sparse/0. */
vkn_status poses_find(struct preparation *preparation);

/* One try at finding poses, in a folder of its own. */
struct attempt {
    struct preparation *preparation;
    unsigned number;            /* from 0 */
    char *folder, *database;    /* SCENE/prepare/1, database.db in it */
    uint32_t features, matches; /* what the stages' sums have to be */
    /* Of the model with the most pictures; how many models there are. */
    size_t registered, points, models;
    char *largest; /* its folder; NULL: there is none */
};
/* COLMAP's stages; what is done already is not done again. */
vkn_status colmap_extract(struct attempt *attempt);
vkn_status colmap_match(struct attempt *attempt);
vkn_status colmap_map(struct attempt *attempt);

/* A run of COLMAP in the making: its command's help tells which options this version knows. */
struct colmap {
    struct attempt *attempt;
    struct program program;
    struct base_text help;
    const char *what; /* it does, for the progress line */
    size_t total;     /* of what it does, as far as that is known: the pictures */
};
vkn_status colmap_begin(struct attempt *attempt, const char *command, const char *what,
                        struct colmap *colmap);
/* The option, under the first of these names ("new old") that is known; none is: it is left out. */
__attribute__((format(printf, 3, 4))) void colmap_option(struct colmap *colmap, const char *names,
                                                         const char *format, ...);
vkn_status colmap_run(struct colmap *colmap, void (*line)(void *context, const char *line),
                      void *context);
/* "[3/50]" in a line, or "[1/5, 2/5]" counted through. */
bool colmap_read_count(const char *line, size_t *done, size_t *total);
/* Which lens is looked for. */
enum vkn_camera_model colmap_camera_model(const struct preparation *preparation);

#endif
