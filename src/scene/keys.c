/* Checks the keys of a transforms.json against a table of the keys that instant-ngp, nerfstudio and
 * their converters, D-NeRF, BlenderNeRF, Neuralangelo and ScanNet++ read or write. The table
 * follows their loaders: instant-ngp's src/nerf_loader.cu, nerfstudio's data/dataparsers and
 * process_data, as of 2026. docs/scenes.md lists the keys for users. */
#include "scene/keys.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>

#define MOST_UNREAD 32 /* most different unread keys that are listed for a file */
#define MOST_NAMED  8  /* most unread keys that a message names */
#define SHORTEST    6  /* shortest name that `is_nearly` compares */

enum level { TOP = 1, FRAME = 2, BOTH = TOP | FRAME };

enum use {
    READ,    /* read by the functions that fill struct transforms */
    PASSED,  /* ignored silently: does not affect cameras, colours or masks */
    NOTED,   /* ignored, although it would change the result; listed as unread, with `what` */
    REFUSED, /* an error with `what`, unless the value is empty */
};

struct key {
    const char *name;
    enum level level;
    enum use use;
    const char *what; /* explanation for messages; NULL for READ and PASSED */
};

static const char no_ftheta[] = "f-theta lenses are not supported";
static const char no_skew[] = "lenses with skew are not supported; undistort the images first";
static const char no_latent[] = "appearance is not learnt for each image";
static const char region[] = "is not used; scale and offset define the training space";
static const char near[] = "is not used; rays begin at march.near_distance";
static const char far[] = "is not used; rays end at march.far_distance";

static const struct key keys[] = {
    /* images and poses */
    {"frames", TOP, READ, NULL},
    {"file_path", FRAME, READ, NULL},
    {"transform_matrix", FRAME, READ, NULL},
    {"transform_matrix_start", FRAME, READ, NULL},
    {"transform_matrix_end", FRAME, READ, NULL},
    {"rolling_shutter", BOTH, READ, NULL},
    {"time", FRAME, READ, NULL},
    {"sharpness", FRAME, READ, NULL},
    {"mask_path", FRAME, READ, NULL},
    {"has_mask", TOP, READ, NULL},
    {"n_frames", TOP, READ, NULL},
    {"train_filenames", TOP, READ, NULL},
    {"val_filenames", TOP, READ, NULL},
    {"test_filenames", TOP, READ, NULL},
    {"ply_file_path", TOP, READ, NULL},
    {"enable_ray_loading", TOP, READ, NULL},
    /* lenses */
    {"camera_angle_x", BOTH, READ, NULL},
    {"camera_angle_y", BOTH, READ, NULL},
    {"x_fov", BOTH, READ, NULL},
    {"y_fov", BOTH, READ, NULL},
    {"fl_x", BOTH, READ, NULL},
    {"fl_y", BOTH, READ, NULL},
    {"cx", BOTH, READ, NULL},
    {"cy", BOTH, READ, NULL},
    {"w", BOTH, READ, NULL},
    {"h", BOTH, READ, NULL},
    {"k1", BOTH, READ, NULL},
    {"k2", BOTH, READ, NULL},
    {"k3", BOTH, READ, NULL},
    {"k4", BOTH, READ, NULL},
    {"k5", BOTH, READ, NULL},
    {"k6", BOTH, READ, NULL},
    {"p1", BOTH, READ, NULL},
    {"p2", BOTH, READ, NULL},
    {"sx1", BOTH, READ, NULL},
    {"sy1", BOTH, READ, NULL},
    {"distortion_params", BOTH, READ, NULL},
    {"camera_model", BOTH, READ, NULL},
    {"is_fisheye", BOTH, READ, NULL},
    {"fisheye_crop_radius", BOTH, READ, NULL},
    {"latlong", BOTH, READ, NULL},
    {"equirectangular", BOTH, REFUSED,
     "instant-ngp's equal-area pictures are not supported (latlong and camera_model "
     "EQUIRECTANGULAR are)"},
    {"orthographic", BOTH, REFUSED, "orthographic cameras are not supported"},
    {"ftheta_p0", BOTH, REFUSED, no_ftheta},
    {"ftheta_p1", BOTH, REFUSED, no_ftheta},
    {"ftheta_p2", BOTH, REFUSED, no_ftheta},
    {"ftheta_p3", BOTH, REFUSED, no_ftheta},
    {"ftheta_p4", BOTH, REFUSED, no_ftheta},
    {"sk_x", BOTH, REFUSED, no_skew},
    {"sk_y", BOTH, REFUSED, no_skew},
    {"omega", BOTH, REFUSED, "FOV lenses are not supported; undistort the images first"},
    /* the training space */
    {"aabb_scale", TOP, READ, NULL},
    {"scale", TOP, READ, NULL},
    {"offset", TOP, READ, NULL},
    {"aabb", TOP, READ, NULL},
    {"unit_length", TOP, READ, NULL},
    {"from_mitsuba", TOP, READ, NULL},
    {"normal_mts_args", TOP, READ, NULL},
    {"aabb_range", TOP, NOTED, region},
    {"sphere_center", TOP, NOTED, region},
    {"sphere_radius", TOP, NOTED, region},
    {"near", BOTH, NOTED, near},
    {"far", BOTH, NOTED, far},
    {"applied_transform", TOP, PASSED, NULL},
    {"applied_scale", TOP, PASSED, NULL},
    {"orientation_override", TOP, PASSED, NULL},
    {"auto_scale_poses_override", TOP, PASSED, NULL},
    {"up", TOP, PASSED, NULL},
    {"render_aabb", TOP, NOTED, "is not used; what is exported is limited by --crop"},
    /* colours */
    {"white_transparent", TOP, REFUSED,
     "white pixels are not made transparent; give the images an alpha channel"},
    {"black_transparent", TOP, REFUSED,
     "black pixels are not made transparent; give the images an alpha channel"},
    {"sharpen", TOP, NOTED, "the images are not sharpened"},
    {"fix_premult", TOP, PASSED, NULL}, /* applies to OpenEXR images, which are not read */
    {"envmap", TOP, NOTED, "is not read; the background is a colour"},
    {"n_extra_learnable_dims", TOP, NOTED, no_latent},
    {"driver_parameters", FRAME, NOTED, "directions of light are not read"},
    /* which frames */
    {"sharpness_discard_threshold", TOP, NOTED, "no blurred image is left out"},
    {"test_frames", TOP, NOTED, "these frames are not read; test_filenames and frames are"},
    {"is_bad", FRAME, NOTED, "blurred images are not left out"},
    /* depths and descriptions of the capture */
    {"integer_depth_scale", TOP, READ, NULL},
    {"enable_depth_loading", TOP, READ, NULL},
    {"depth_path", FRAME, READ, NULL},
    {"depth_file_path", FRAME, READ, NULL},
    {"depth_unit_scale_factor", TOP, READ, NULL},
    {"importance_sampling", TOP, PASSED, NULL},
    {"rotation", FRAME, PASSED, NULL},
    {"colmap_im_id", FRAME, PASSED, NULL},
    {"timestamp", FRAME, PASSED, NULL},
    {"fovx", BOTH, PASSED, NULL}, /* degrees; colmap2nerf.py writes them beside camera_angle_x */
    {"fovy", BOTH, PASSED, NULL},
    {"fps", TOP, PASSED, NULL},
};

#define KEYS BASE_COUNT(keys)

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

/* ---- misspelt keys --------------------------------------------------------------------------- */

/* Compares letters and digits only, regardless of case: Fl-X equals fl_x. */
static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a != '\0' && isalnum((unsigned char)*a) == 0)
            a++;
        while (*b != '\0' && isalnum((unsigned char)*b) == 0)
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

/* Returns whether at most two neighbouring letters differ, are missing or are added. */
static bool is_nearly(const char *a, const char *b)
{
    size_t size_a = strlen(a), size_b = strlen(b);
    size_t longer = size_a > size_b ? size_a : size_b, shorter = size_a + size_b - longer;
    size_t head = 0, tail = 0;
    if (shorter < SHORTEST || longer > shorter + 2)
        return false;
    while (head < shorter && a[head] == b[head])
        head++;
    while (head + tail < shorter && a[size_a - 1 - tail] == b[size_b - 1 - tail])
        tail++;
    return head + tail + 2 >= longer;
}

static const char *find_similar(const char *name)
{
    for (size_t i = 0; i < KEYS; i++)
        if (keys[i].use == READ && same_letters(name, keys[i].name))
            return keys[i].name;
    for (size_t i = 0; i < KEYS; i++)
        if (keys[i].use == READ && is_nearly(name, keys[i].name))
            return keys[i].name;
    return NULL;
}

/* ---- unread keys ----------------------------------------------------------------------------- */

static cJSON *entry_of(const cJSON *list_keys, const char *name)
{
    cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, list_keys) {
        if (strcmp(cJSON_GetObjectItemCaseSensitive(entry, "key")->valuestring, name) == 0)
            return entry;
    }
    return NULL;
}

static const char unknown[] = "unknown";

vkn_status keys_add_unread(const char *name, const char *note, struct transforms *transforms)
{
    if (transforms->unread == NULL)
        transforms->unread = cJSON_CreateArray();
    cJSON *entry = entry_of(transforms->unread, name);
    if (entry != NULL) {
        cJSON *count = cJSON_GetObjectItemCaseSensitive(entry, "count");
        cJSON_SetNumberHelper(count, count->valuedouble + 1);
        return VKN_OK;
    }
    if (cJSON_GetArraySize(transforms->unread) >= MOST_UNREAD)
        return VKN_OK;
    const char *meant = note == unknown ? find_similar(name) : NULL;
    entry = cJSON_CreateObject();
    bool added = cJSON_AddItemToArray(transforms->unread, entry) != 0;
    bool made = added && cJSON_AddStringToObject(entry, "key", name) != NULL &&
                cJSON_AddNumberToObject(entry, "count", 1) != NULL &&
                cJSON_AddStringToObject(entry, "file", transforms->file) != NULL &&
                cJSON_AddStringToObject(entry, "note", note) != NULL;
    if (made && meant != NULL)
        made = cJSON_AddStringToObject(entry, "meant", meant) != NULL;
    if (!added)
        cJSON_Delete(entry);
    return made ? VKN_OK : base_fail(VKN_ERROR, "out of memory (keys of %s)", transforms->file);
}

/* ---- checking -------------------------------------------------------------------------------- */

bool keys_is_empty_value(const struct cJSON *value)
{
    if (cJSON_IsArray(value)) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach (item, value) {
            if (!cJSON_IsNumber(item) || item->valuedouble != 0)
                return false;
        }
        return true;
    }
    return cJSON_IsNull(value) || cJSON_IsFalse(value) ||
           (cJSON_IsNumber(value) && value->valuedouble == 0) ||
           (cJSON_IsString(value) && value->valuestring[0] == '\0');
}

/* Returns whether an unknown key may name a mask file. Ignoring such a key would use pixels that
 * the mask hides. A value that is no file name is something else, such as a colour. */
static bool names_mask(const cJSON *item)
{
    const char *at = item->string;
    while (*at != '\0' && strncasecmp(at, "mask", 4) != 0)
        at++;
    return *at != '\0' && cJSON_IsString(item) && strpbrk(item->valuestring, "./") != NULL;
}

/* Checks a known key. *first: the first item of the key, NULL before that item. Of a duplicate key
 * cJSON finds the first item, while other tools' loaders find the last. */
static vkn_status check_known(const struct key *key, const cJSON *item, const char *where,
                              const cJSON **first, struct transforms *transforms)
{
    if (key->use == REFUSED && !keys_is_empty_value(item))
        return base_json_fail(where, item->string, "%s", key->what);
    const cJSON *earlier = *first;
    *first = item;
    bool compound = cJSON_IsArray(item) || cJSON_IsObject(item); /* comparing could take too long */
    if (earlier != NULL && (compound || !cJSON_Compare(earlier, item, true)))
        return keys_add_unread(item->string, "given twice; the first is read", transforms);
    bool noted = key->use == NOTED && !keys_is_empty_value(item);
    return noted ? keys_add_unread(item->string, key->what, transforms) : VKN_OK;
}

static vkn_status check_key(const cJSON *item, bool top, const char *where, const cJSON **first,
                            struct transforms *transforms)
{
    const struct key *key = find_key(item->string);
    if (key != NULL && (key->level & (top ? TOP : FRAME)) != 0)
        return check_known(key, item, where, &first[key - keys], transforms);
    if (names_mask(item))
        return base_json_fail(
            where, item->string,
            "not read: masks are given by the mask_path of each frame, bright at used pixels");
    const char *note = key == NULL         ? unknown
                       : key->level == TOP ? "is only read at the top level of the file"
                                           : "is only read in frames";
    return keys_add_unread(item->string, note, transforms);
}

vkn_status keys_check(const struct cJSON *object, bool top, const char *where,
                      struct transforms *transforms)
{
    const cJSON *item = NULL, *first[KEYS] = {0};
    cJSON_ArrayForEach (item, object) {
        BASE_TRY(check_key(item, top, where, first, transforms));
    }
    return VKN_OK;
}

/* ---- reporting ------------------------------------------------------------------------------- */

static void move_unread(struct transforms *transforms, struct scene_findings *findings)
{
    if (findings->unread == NULL) {
        findings->unread = transforms->unread;
        transforms->unread = NULL;
        return;
    }
    while (transforms->unread->child != NULL)
        cJSON_AddItemToArray(findings->unread, cJSON_DetachItemViaPointer(
                                                   transforms->unread, transforms->unread->child));
}

/* Lists each key once, even if several files have it. */
static void list_keys(const struct cJSON *unread, struct base_text *text)
{
    int named = 0, unnamed = 0;
    for (const cJSON *entry = unread->child; entry != NULL; entry = entry->next) {
        const char *name = cJSON_GetObjectItemCaseSensitive(entry, "key")->valuestring;
        if (entry_of(unread, name) != entry)
            continue;
        if (named == MOST_NAMED) {
            unnamed++;
            continue;
        }
        const cJSON *meant = cJSON_GetObjectItemCaseSensitive(entry, "meant");
        base_text_add(text, "%s%.64s (%s%s%s%s)", named++ > 0 ? ", " : "", name,
                      cJSON_GetObjectItemCaseSensitive(entry, "note")->valuestring,
                      meant != NULL ? "; did you mean " : "",
                      meant != NULL ? meant->valuestring : "", meant != NULL ? "?" : "");
    }
    if (unnamed > 0)
        base_text_add(text, " and %d more", unnamed);
}

char *keys_hint(const struct transforms *transforms)
{
    struct base_text text = {0};
    base_text_add(&text, "%s", transforms->unread != NULL ? "; keys that are not read: " : "");
    if (transforms->unread != NULL)
        list_keys(transforms->unread, &text);
    return text.data;
}

vkn_status keys_missing(const char *where, const char *name, const struct transforms *transforms)
{
    char *hint = keys_hint(transforms);
    vkn_status status = hint != NULL ? base_json_fail(where, name, "missing%s", hint) : VKN_ERROR;
    free(hint);
    return status;
}

static vkn_status warn(const struct cJSON *unread)
{
    struct base_text text = {0};
    list_keys(unread, &text);
    vkn_status status = text.failed ? VKN_ERROR : VKN_OK;
    if (status == VKN_OK)
        base_log(BASE_LOG_WARNING, "%s: keys that are not read: %s",
                 cJSON_GetObjectItemCaseSensitive(unread->child, "file")->valuestring, text.data);
    free(text.data);
    return status;
}

vkn_status keys_report(struct transforms files[SCENE_SPLITS], struct scene_findings *findings)
{
    struct scene_findings all = {0};
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        if (files[split].unread != NULL)
            move_unread(&files[split], findings != NULL ? findings : &all);
    vkn_status status = all.unread != NULL ? warn(all.unread) : VKN_OK;
    scene_findings_free(&all);
    return status;
}
