/* Converts captures of other programs, which have poses, into scenes (internal to module prepare).
 * scene_find_program recognises a capture; import.c has the list of readers, one file each. */
#ifndef PREPARE_IMPORT_H
#define PREPARE_IMPORT_H

#include <cjson/cJSON.h>

#include "prepare/internal.h"

/* Largest focal length, centre and size (pixels), coefficient, and coordinate of a capture. */
#define IMPORT_MAX_PIXELS      1e7
#define IMPORT_MAX_COEFFICIENT 1e3
#define IMPORT_MAX_COORDINATE  1e9

/* A lens. Coefficients are OpenCV's, for y down. */
struct import_lens {
    char *key;         /* its name in the program's file */
    const char *model; /* camera_model of transforms.json; static */
    double size[2];    /* pixels of the pictures; 0: not given */
    double focal[2];   /* pixels; 0: a full panorama */
    double center[2];  /* pixels from the corner of the picture */
    bool is_relative;  /* focal lengths are in units of the larger side, and so is the centre, which
                          is measured from the middle of the picture */
    double k1, k2, k3, k4, p1, p2;
};

/* A camera with a pose. */
struct import_frame {
    char *name;       /* of its picture: a path or its end, perhaps without extension */
    char *depth;      /* depth picture relative to the capture's folder; NULL: none */
    char *confidence; /* picture that is 0 where depths are unreliable, likewise */
    size_t lens;
    double pose[12]; /* camera to world, 3 rows x 4 columns, as in transforms.json */
    bool is_found;   /* there is a picture of this name */
};

/* A capture of another program. */
struct import {
    enum scene_program program;
    char *file;     /* where reading starts */
    char *folder;   /* folder of the capture */
    char *pictures; /* folder that is searched for pictures, with its subfolders */
    struct import_lens *lenses;
    size_t lens_count, lens_capacity;
    struct import_frame *frames;
    size_t frame_count, frame_capacity;
    size_t unposed;          /* cameras without a pose */
    char *first_unposed;     /* name of the first of them */
    char *cloud;             /* PLY file with points; NULL: none */
    struct base_text points; /* lines "x y z red green blue", when the points are in no PLY file */
    size_t point_count;
    struct base_text unread; /* keys that are not understood, "a, b" */
    size_t unread_count;
    double unit_length; /* metres of a unit of the poses; 0: unknown */
    double depth_unit;  /* of the depth pictures' values, in units of the poses; 0: unknown */
    uint32_t checksum;  /* of all files that were read */
};

/* ---- the readers ----------------------------------------------------------------------------- */

/* Read a capture: lenses, frames and points. Errors name the file and the field. */
vkn_status import_metashape(struct import *import);
vkn_status import_realitycapture(struct import *import);
vkn_status import_polycam(struct import *import);
vkn_status import_record3d(struct import *import);
vkn_status import_opensfm(struct import *import);
vkn_status import_opf(struct import *import);

/* ---- parts for readers (import_parts.c) ------------------------------------------------------ */

/* Read a whole file as text, or as JSON, and add it to the checksum. The caller frees the text, or
 * calls cJSON_Delete. */
vkn_status import_read_text(struct import *import, const char *path, char **text, size_t *size);
vkn_status import_read_json(struct import *import, const char *path, struct cJSON **json);
/* Reads XML into a tree of cJSON: an element is an object with its name, its attributes are strings
 * "@name", its text is a string "#text", and equal names may occur more than once. Needs libexpat.
 * (import_xml.c) */
vkn_status import_read_xml(struct import *import, const char *path, struct cJSON **root);
/* Return the text of an element or of its child `name` (NULL: the element itself); NULL: none. */
const char *import_xml_text(const struct cJSON *element, const char *name);

/* Adds a lens or a frame; NULL: out of memory. The pointer is valid until the next one is added. */
struct import_lens *import_add_lens(struct import *import, const char *key);
struct import_frame *import_add_frame(struct import *import, const char *name);
/* Returns the index of the lens with this key; import->lens_count: there is none. */
size_t import_find_lens(const struct import *import, const char *key);
/* Counts a camera without a pose. */
vkn_status import_add_unposed(struct import *import, const char *name);
/* Adds a point in the world's axes; values that are not finite are left out. */
void import_add_point(struct import *import, const double position[3], const double color[3]);
/* Sets the folder that is searched for pictures to one below the capture's folder. */
vkn_status import_set_pictures(struct import *import, const char *subfolder);
/* Sets *found, a picture of a frame, to SUBFOLDER/NAME.ENDING if the capture's folder has it. */
vkn_status import_find_picture(const struct import *import, const struct import_frame *frame,
                               const char *subfolder, const char *ending, char **found);
/* Sets the PLY file of the capture if its folder has exactly one. */
vkn_status import_find_cloud(struct import *import);

/* Sets the pose of a frame from the camera's axes in the world, which are the columns of
 * `rotation`: right, down and forwards, or right, up and backwards if `is_up`. `where` names the
 * file and the camera in messages, `field` the value. */
vkn_status import_set_pose(struct import_frame *frame, const char *where, const char *field,
                           const double rotation[3][3], const double position[3], bool is_up);
/* Transposes a rotation in place. */
void import_transpose(double rotation[3][3]);

/* Parses a number in a text and checks its range. */
vkn_status import_parse(const char *text, const char *where, const char *field, double most,
                        double *value);
/* Parses exactly `count` numbers, separated by spaces. */
vkn_status import_parse_list(const char *text, const char *where, const char *field, size_t count,
                             double *values);
/* Read exactly `count` numbers of an array, or of the array `name` of an object. */
vkn_status import_read_numbers(const struct cJSON *array, const char *name, const char *where,
                               int count, double *values);
vkn_status import_read_array(const struct cJSON *object, const char *name, const char *where,
                             int count, double *values);

/* Notes the keys of an object that are not in `known`, a text of names separated by spaces, as
 * unread: "PREFIX.key". */
vkn_status import_check_keys(struct import *import, const struct cJSON *object, const char *known,
                             const char *prefix);
/* Notes an unread key once. */
vkn_status import_add_unread(struct import *import, const char *prefix, const char *key);
/* Refuses a coefficient that vknerf's lenses do not have, unless it moves no pixel of a picture by
 * more than a quarter of a pixel; then it is noted as unread. */
vkn_status import_refuse_coefficient(struct import *import, const char *where, const char *field,
                                     double pixels);

/* ---- conversion ------------------------------------------------------------------------------ */

/* Finds the pictures of the frames in the list of `source`, from which pictures without a frame are
 * removed; warns of frames and pictures without each other. (import_pictures.c) */
vkn_status import_match_pictures(struct import *import, struct source *source);
/* Writes transforms.json, and the points and depth pictures that it names. (import_write.c) */
vkn_status import_write(struct preparation *preparation);

#endif
