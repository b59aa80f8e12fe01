/* Makes scenes from photographs and videos with ffmpeg and COLMAP (internal to module prepare). */
#ifndef PREPARE_INTERNAL_H
#define PREPARE_INTERNAL_H

#include <vknerf/prepare.h>

#include "base/base.h"
#include "config/config.h"
#include "report/report.h"
#include "scene/scene.h"

/* ---- input ----------------------------------------------------------------------------------- */

/* A photograph of the input folder. */
struct source_picture {
    char *file;           /* path relative to the input folder */
    char *name;           /* name in SCENE/images */
    char *problem;        /* why it is skipped; NULL: it is used */
    bool is_converted;    /* ffmpeg converts it, because vknerf and COLMAP cannot read its format */
    bool is_heif;         /* HEIC or AVIF */
    uint32_t longest;     /* longer side in pixels, of a HEIF image; 0: unknown */
    const char *demuxer;  /* ffmpeg's demuxer for the content; NULL: by the extension */
    unsigned orientation; /* EXIF orientation, 1 to 8 */
    double focal;         /* focal length from EXIF, mm; 0: unknown */
    uint64_t size;        /* bytes of the file */
    uint32_t head_checksum; /* CRC-32C of the first bytes of the file */
    size_t frame;           /* number of its camera in the import, counted from 1; 0: none */
};

/* What ffprobe reports about a video. */
struct source_video {
    uint64_t frames;
    bool is_hdr; /* the transfer curve is PQ or HLG */
};

/* The input: a folder of photographs, or a video. */
struct source {
    bool is_video;
    char *folder; /* folder of the photographs */
    char *masks;  /* folder of the masks; NULL: none */
    struct source_picture *pictures;
    size_t count;
    struct source_video video;
    uint32_t checksum; /* of everything that the scene's images depend on */
};

/* ---- progress on disk ------------------------------------------------------------------------ */

/* The stages of a preparation. */
enum stage { STAGE_IMAGES, STAGE_FEATURES, STAGE_MATCHES, STAGE_MODELS, STAGE_COUNT };
#define MAX_ATTEMPTS 2 /* with the usual settings, then with more features */

/* Content of SCENE/prepare.json. A stage is done when its checksum, over everything that the stage
 * depends on, is recorded. */
struct record {
    char *pictures;                             /* path of the input, for messages */
    uint32_t stages[MAX_ATTEMPTS][STAGE_COUNT]; /* checksums; 0: not done; images: attempt 0 only */
    uint32_t database[MAX_ATTEMPTS];  /* features' checksum when the database was created */
    uint32_t extracted[MAX_ATTEMPTS]; /* number of images with features in the database */
};

struct import;
/* The state of one call of vkn_prepare. */
struct preparation {
    const struct vkn_prepare_params *params;
    struct vkn_job job;
    const char *out;
    char *work;   /* out/prepare */
    char *images; /* out/images */
    int lock;     /* file descriptor; -1: none */
    struct source source;
    struct import *import; /* the input has poses of another program; NULL: it has none */
    struct record record;
    struct report_progress *progress;
    char **names; /* of the images in out/images, sorted */
    size_t count;
    uint32_t longest; /* longer side of the smallest image, pixels */
    bool one_camera;  /* all images are of one camera */
    bool has_masks;
    struct vkn_prepare_result result;
};

/* Returns VKN_INTERRUPTED when the job's stop has been requested. */
vkn_status prepare_check_stop(const struct preparation *preparation);

/* Read, write and free prepare.json. */
vkn_status record_read(struct preparation *preparation);
vkn_status record_write(const struct preparation *preparation);
void record_free(struct record *record);

/* ---- files ----------------------------------------------------------------------------------- */

/* Removes a file, or a folder with its contents. An absent path is no error. */
vkn_status files_remove(const char *path);
/* Renames a file or folder. */
vkn_status files_move(const char *from, const char *to);
/* Returns VKN_BAD_INPUT unless the path is absent, a file, or a folder of files and folders:
 * through a link, prepare or COLMAP would write elsewhere. */
vkn_status files_check_no_links(const char *path);
/* Makes a hard link or, when that fails, a copy. VKN_BAD_INPUT: `from` cannot be read. */
vkn_status files_link(const char *from, const char *to);
/* Replaces a file. Returns VKN_ERROR for any failure: a failed write is no fault of the input. */
vkn_status files_write(const char *path, const void *data, size_t size);
/* Compares names in natural order: IMG_9 comes before IMG_10. */
int files_natural_order(const char *a, const char *b);
/* Adds a string to a checksum, which depends on the order of the strings. */
uint32_t files_checksum(uint32_t sum, const char *text);
/* Returns whether a name has one of the extensions in a list ("jpg jpeg png"), in any case. */
bool files_ends_with(const char *name, const char *endings);

/* ---- programs -------------------------------------------------------------------------------- */

/* Arguments of a child process. arguments_add formats one; arguments_free frees all. */
struct arguments {
    char **items; /* NULL-terminated */
    size_t count, capacity;
    bool failed;
};
__attribute__((format(__printf__, 2, 3))) void arguments_add(struct arguments *arguments,
                                                             const char *format, ...);
void arguments_free(struct arguments *arguments);

/* Size of the error message of a child process, bytes. */
#define ERROR_SIZE 300

/* Options of ffmpeg and ffprobe before the input: ffmpeg opens only the file itself, even when the
 * file is a list of files or addresses (m3u8, concat, DASH). FFMPEG_VIDEOS has no such format. */
#define FFMPEG_ONE_FILE  "-protocol_whitelist", "file"
#define FFMPEG_ONE_VIDEO FFMPEG_ONE_FILE, "-format_whitelist", FFMPEG_VIDEOS
#define FFMPEG_VIDEOS                                                                             \
    ("mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,obu,ivf,flv," \
     "asf,ogg,gif,apng,mxf,"                                                                      \
     "dv,mjpeg,nut,rm,wtv,yuv4mpegpipe")

/* One run of ffmpeg, ffprobe or COLMAP. */
struct program {
    const char *name;           /* "ffmpeg" */
    struct arguments arguments; /* including the name as the first */
    /* Callbacks: lines of both streams, or bytes of standard output; NULL: log only. */
    void (*line)(void *context, const char *line);
    void (*bytes)(void *context, const char *data, size_t size);
    void *context;
    bool failed_itself;             /* result: the program failed and was not killed from outside */
    char error_message[ERROR_SIZE]; /* result: the program's error message */
};
/* Runs a program to its end and frees its arguments. Its errors and lines go to
 * SCENE/prepare/NAME.log. VKN_ERROR: the program is missing or failed; VKN_INTERRUPTED: stopped. */
vkn_status program_run(const struct preparation *preparation, struct program *program);
#define MIN_PICTURES 3u /* smallest number of images of a scene */
/* Returns VKN_ERROR, with the name of the package to install, when the program is not in PATH. */
vkn_status program_require(const char *name, const char *what_for);

/* ---- stages ---------------------------------------------------------------------------------- */

/* Reads the input: lists photographs and masks, or opens a video. Files that are not readable
 * photographs get a problem. Broken links, folders, pipes and devices are never opened. source_free
 * frees the input. */
vkn_status source_open(struct preparation *preparation);
void source_free(struct source *source);
/* Lists the photographs of the folder without opening them; warns of similar files. */
vkn_status listing_find(struct source *source, const char *given);
/* Lists the photographs of the folder and of its subfolders. */
vkn_status listing_find_all(struct source *source, const char *folder);
/* File name extensions of photographs. */
#define PREPARE_PHOTOGRAPHS \
    "jpg jpeg png jpe jfif heic heif hif avif webp tif tiff bmp jp2 ppm pgm tga"
/* Skips a photograph: its problem becomes the last error's message, without the leading `path`. */
vkn_status source_reject(struct source_picture *picture, const char *path);
/* Skips the photograph called `name` in SCENE/images in the same way, with the problem `message`.
 * For video frames and panorama views, which come from no photograph, only logs a warning. */
vkn_status source_reject_named(struct source *source, const char *name, const char *path,
                               const char *message);
/* Logs one warning with the number of skipped photographs and the first of them, if any. */
void source_warn_problems(const struct source *source);
/* Returns advice on the skipped photographs; NULL: none. */
const char *source_advice(const struct source *source);
/* Returns whether the photographs have equal sizes and focal lengths and so are probably of one
 * camera. */
bool source_one_camera(const struct preparation *preparation);

/* Writes the photographs into a folder, upright and as JPEG or PNG. */
vkn_status photographs_write(struct preparation *preparation, const char *folder);
#define MIN_FRAMES  3u /* smallest number of frames of a video */
#define MOST_FRAMES 5000u
/* Reads a video's frame count and transfer curve by ffprobe. */
vkn_status video_probe(struct preparation *preparation, const char *path);
/* Extracts the chosen frames into a folder. */
vkn_status video_extract_frames(struct preparation *preparation, const char *folder);
/* Replaces frames[0 .. count - 1] by the sharpest frame of each of `count` equal time windows. */
vkn_status video_pick_sharpest(struct preparation *preparation, uint64_t *frames, uint32_t count);
/* Replaces the panoramas of a folder by perspective views. */
vkn_status panoramas_split(struct preparation *preparation, const char *folder);
/* Views of a panorama. */
#define PANORAMA_VIEWS 8
/* Returns the side, in pixels, of the views of a panorama. */
uint32_t panorama_view_size(uint32_t width);

/* Makes images, images_N and masks unless they exist; sets names, count, longest and masked. */
vkn_status images_make(struct preparation *preparation);

/* Sets preparation->import if the input is a capture of another program, and reads it. Either way
 * the caller calls import_close. */
vkn_status import_open(struct preparation *preparation);
/* Frees an import and sets the pointer to NULL. */
void import_close(struct import **import);

/* Finds the poses and writes the model with them to SCENE/sparse/0. */
vkn_status poses_find(struct preparation *preparation);

/* One attempt at finding poses, in a folder of its own. */
struct attempt {
    struct preparation *preparation;
    unsigned number;                              /* from 0 */
    char *folder, *database;                      /* SCENE/prepare/1, and database.db in it */
    uint32_t features_checksum, matches_checksum; /* of the stages when they are done */
    /* Numbers of images and points of the model with the most images; number of models. */
    size_t registered, points, models;
    char *largest; /* folder of the model with the most images; NULL: there is no model */
};
/* Run COLMAP's stages, but skip stages that are done already. */
vkn_status colmap_extract(struct attempt *attempt);
vkn_status colmap_match(struct attempt *attempt);
vkn_status colmap_map(struct attempt *attempt);

/* A prepared run of a COLMAP command. `help`, the command's help text, lists its options. */
struct colmap {
    struct attempt *attempt;
    struct program program;
    struct base_text help;
    const char *what; /* activity, for the progress line */
    size_t total;     /* number of work items, as far as known */
};
/* Prepares a run of a COLMAP command: reads its help text and sets the first arguments. */
vkn_status colmap_begin(struct attempt *attempt, const char *command, const char *what,
                        struct colmap *colmap);
/* Adds an option under the first of the names ("new old") that the installed version has. */
__attribute__((format(__printf__, 3, 4))) void
colmap_option(struct colmap *colmap, const char *names, const char *format, ...);
/* Runs the command; `line` is called with each line of its output. */
vkn_status colmap_run(struct colmap *colmap, void (*line)(void *context, const char *line),
                      void *context);
/* Reads "[3/50]" from a line, or a nested "[1/5, 2/5]" as one count (2 of 25); false: neither. */
bool colmap_read_count(const char *line, size_t *done, size_t *total);
/* Returns the camera model that COLMAP estimates. */
enum vkn_camera_model colmap_camera_model(const struct preparation *preparation);

#endif
