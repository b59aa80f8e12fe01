/* Finds and measures images and masks of frames, and decides on EXIF orientations. */
#include "scene/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding --------------------------------------------------------------------------------- */

/* A file of a frame to search: its image or its mask. */
struct sought {
    const char *name;
    char **path;
    unsigned *differences;
};

static struct sought sought_of(struct transforms_frame *frame, bool masks)
{
    return masks ? (struct sought){frame->mask_name, &frame->mask_path, &frame->mask_differences}
                 : (struct sought){frame->file_path, &frame->image_path, &frame->image_differences};
}

static vkn_status set_path(const struct transforms *transforms,
                           const struct transforms_frame *frame, const struct sought *sought,
                           struct found *found)
{
    if (found->other == NULL) {
        *sought->path = found->path;
        *sought->differences = found->path != NULL ? found->differences : 0;
        return VKN_OK;
    }
    base_fail(VKN_BAD_INPUT, "%s: %s[%zu]: %s does not exist, and both %s and %s match it",
              transforms->file, transforms->list, frame->index, sought->name, found->path,
              found->other);
    free(found->path);
    free(found->other);
    return VKN_BAD_INPUT;
}

static vkn_status find_frame(struct finder *finder, const struct transforms *transforms, bool masks,
                             bool elsewhere, struct transforms_frame *frame)
{
    struct sought sought = sought_of(frame, masks);
    struct found found = {0};
    bool has_size = frame->lens.size[0] > 0 || frame->lens.angle[0] > 0 || frame->lens.angle[1] > 0;
    vkn_status status = elsewhere
                            ? finder_find_elsewhere(finder, sought.name, has_size && !masks, &found)
                            : finder_find_as_written(finder, sought.name, &found);
    return status == VKN_OK ? set_path(transforms, frame, &sought, &found) : status;
}

static vkn_status find_files(struct finder *finder, bool masks, bool elsewhere,
                             struct scene_findings *findings, struct transforms *transforms)
{
    for (size_t i = 0; i < transforms->count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        const struct sought sought = sought_of(frame, masks);
        if (sought.name == NULL || *sought.path != NULL || frame->skipped)
            continue;
        BASE_TRY(findings_skip_frame(findings, frame,
                                     find_frame(finder, transforms, masks, elsewhere, frame)));
    }
    return VKN_OK;
}

static int by_path(const void *a, const void *b)
{
    const struct sought *x = a, *y = b;
    int order = strcmp(*x->path, *y->path);
    return order != 0 ? order : strcmp(x->name, y->name);
}

/* Checks that only one name leads to a file, unless all match it exactly: cam1/a.jpg and cam2/a.jpg
 * cannot both be a.jpg. */
static vkn_status check_shared(const struct transforms *transforms, bool masks)
{
    struct sought *all = base_alloc(transforms->count, sizeof(*all));
    size_t count = 0;
    vkn_status status = all != NULL ? VKN_OK : VKN_ERROR;
    for (size_t i = 0; i < transforms->count && all != NULL; i++) {
        all[count] = sought_of(&transforms->frames[i], masks);
        count += all[count].name != NULL && *all[count].path != NULL ? 1 : 0;
    }
    if (count > 1)
        qsort(all, count, sizeof(*all), by_path);
    for (size_t i = 0; i + 1 < count && status == VKN_OK; i++) {
        const struct sought *a = &all[i], *b = &all[i + 1];
        if (strcmp(*a->path, *b->path) == 0 && strcmp(a->name, b->name) != 0 &&
            (*a->differences | *b->differences) != 0)
            status = base_fail(VKN_BAD_INPUT, "%s: %s: both %s and %s match %s", transforms->file,
                               transforms->list, a->name, b->name, *a->path);
    }
    free(all);
    return status;
}

/* Drops masks that are the image itself, which a search for a similar name can find. */
static void drop_images(struct transforms *transforms)
{
    for (size_t i = 0; i < transforms->count; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        bool same = frame->mask_differences != 0 && frame->mask_path != NULL &&
                    frame->image_path != NULL && strcmp(frame->mask_path, frame->image_path) == 0;
        if (!same)
            continue;
        free(frame->mask_path);
        frame->mask_path = NULL;
        frame->mask_differences = 0;
    }
}

static vkn_status find_all(const char *folder, const char *const *subfolders, bool masks,
                           struct scene_findings *findings, struct transforms *transforms)
{
    struct finder *finder = NULL;
    BASE_TRY(finder_open(folder, subfolders, &finder));
    vkn_status status = find_files(finder, masks, false, findings, transforms);
    if (status == VKN_OK)
        status = find_files(finder, masks, true, findings, transforms);
    finder_close(&finder);
    if (masks)
        drop_images(transforms);
    return status == VKN_OK ? check_shared(transforms, masks) : status;
}

#define ITSELF "" /* the folder itself */

static const char *const all_subfolders[] = {ITSELF, "images", "image", "input", "rgb", NULL};
const char *const *const image_folders = all_subfolders + 1;

vkn_status pictures_find(const char *folder, bool in_subfolders, struct scene_findings *findings,
                         struct transforms *transforms)
{
    static const char *const only_itself[] = {ITSELF, NULL};
    return find_all(folder, in_subfolders ? all_subfolders : only_itself, false, findings,
                    transforms);
}

vkn_status pictures_find_masks(const char *folder, struct scene_findings *findings,
                               struct transforms *transforms)
{
    static const char *const subfolders[] = {"masks", "mask", NULL};
    return find_all(folder, subfolders, true, findings, transforms);
}

/* ---- EXIF orientation ------------------------------------------------------------------------ */

#define OFF_CENTER 0.1 /* largest distance from the middle, as a fraction of the size */

/* Returns whether an image of that size fits the lens: by w and h or, without them, by the optical
 * centre, which is never far from the middle. */
static bool fits(const struct transforms_lens *lens, double width, double height)
{
    if (lens->size[0] > 0)
        return lens_fits_size(lens, (uint32_t)width, (uint32_t)height);
    return fabs(lens->center[0] / width - 0.5) < OFF_CENTER &&
           fabs(lens->center[1] / height - 0.5) < OFF_CENTER;
}

static void apply_orientation(struct transforms_frame *frame)
{
    uint32_t width = frame->width;
    frame->width = frame->height;
    frame->height = width;
    frame->rotated = true;
}

vkn_status pictures_measure(struct transforms_frame *frame)
{
    struct image_header header;
    const struct transforms_lens *lens = &frame->lens;
    BASE_TRY(image_measure(frame->image_path, &header));
    frame->width = header.width;
    frame->height = header.height;
    frame->orientation = header.exif.orientation;
    frame->has_exposure = exif_exposure(&header.exif, &frame->exposure);
    bool is_decidable =
        lens->size[0] > 0 || (!isnan(lens->center[0]) && !isnan(lens->center[1]) && !lens->is_full);
    bool stored_fits = fits(lens, header.width, header.height);
    bool upright_fits = fits(lens, header.height, header.width);
    if (is_decidable && frame->orientation >= IMAGE_FIRST_TRANSPOSED &&
        stored_fits != upright_fits) {
        frame->orientation_known = true;
        if (upright_fits)
            apply_orientation(frame);
    }
    return VKN_OK;
}

/* Returns whether a frame shares the top-level intrinsics and gives no size. Such frames have one
 * aspect ratio: that of the first image whose orientation does not swap its sides. */
static bool shares_lens(const struct transforms *transforms, const struct transforms_frame *frame)
{
    const struct transforms_lens *lens = &frame->lens, *shared = &transforms->lens;
    bool has_own = false;
    for (int axis = 0; axis < 2; axis++)
        has_own = has_own || lens->focal[axis] != shared->focal[axis] ||
                  lens->angle[axis] != shared->angle[axis];
    return frame->image_path != NULL && frame->width > 0 && lens->size[0] == 0 && !has_own;
}

void pictures_orient_like_first(struct transforms *transforms)
{
    struct transforms_lens sized = {.size = {0}};
    for (size_t i = 0; i < transforms->count && sized.size[0] == 0; i++) {
        const struct transforms_frame *frame = &transforms->frames[i];
        if (!shares_lens(transforms, frame) ||
            (frame->orientation >= IMAGE_FIRST_TRANSPOSED && !frame->rotated))
            continue;
        sized.size[0] = frame->width;
        sized.size[1] = frame->height;
    }
    for (size_t i = 0; i < transforms->count && sized.size[0] > 0; i++) {
        struct transforms_frame *frame = &transforms->frames[i];
        if (shares_lens(transforms, frame) && frame->orientation >= IMAGE_FIRST_TRANSPOSED &&
            !frame->rotated && !fits(&sized, frame->width, frame->height) &&
            fits(&sized, frame->height, frame->width))
            apply_orientation(frame);
    }
}

/* ---- reporting ------------------------------------------------------------------------------- */

/* Number of all frames; number, differences and first one of the frames that are counted. */
struct tally {
    size_t all, counted;
    unsigned differences;
    const struct transforms_frame *first;
};

static void count_frame(struct tally *tally, const struct transforms_frame *frame, bool counts,
                        unsigned differences)
{
    tally->all++;
    tally->counted += counts ? 1 : 0;
    tally->differences |= differences;
    tally->first = counts && tally->first == NULL ? frame : tally->first;
}

static struct tally tally_names(const struct transforms files[SCENE_SPLITS], bool masks)
{
    struct tally tally = {0};
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        for (size_t i = 0; i < files[split].count; i++) {
            const struct transforms_frame *frame = &files[split].frames[i];
            unsigned differences = masks ? frame->mask_differences : frame->image_differences;
            if (!masks || frame->mask_path != NULL)
                count_frame(&tally, frame, differences != 0, differences);
        }
    return tally;
}

/* Treatment of an EXIF orientation. */
enum treatment { ROTATED, AS_STORED, ORIENTATION_UNKNOWN, TREATMENTS };

static struct tally tally_orientations(const struct transforms files[SCENE_SPLITS],
                                       enum treatment treatment)
{
    struct tally tally = {0};
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        for (size_t i = 0; i < files[split].count; i++) {
            const struct transforms_frame *frame = &files[split].frames[i];
            enum treatment actual = frame->rotated             ? ROTATED
                                    : frame->orientation_known ? AS_STORED
                                                               : ORIENTATION_UNKNOWN;
            count_frame(&tally, frame, frame->orientation > EXIF_UPRIGHT && actual == treatment, 0);
        }
    return tally;
}

/* Appends "9 of 9 images are found under another extension: a.png for a.jpg". */
static void add_names(struct base_text *text, const struct transforms files[SCENE_SPLITS],
                      bool masks)
{
    static const char *const words[FOUND_DIFFERENCES] = {"Unicode form (NFC, NFD)", "case",
                                                         "extension", "writing of %20", "folder"};
    struct tally tally = tally_names(files, masks);
    if (tally.counted == 0)
        return;
    base_text_add(text, "%s%zu of %zu %s are found under another ", text->size > 0 ? "; " : "",
                  tally.counted, tally.all, masks ? "masks" : "images");
    const char *between = "";
    for (unsigned bit = 0; bit < FOUND_DIFFERENCES; bit++)
        if ((tally.differences >> bit & 1) != 0) {
            base_text_add(text, "%s%s", between, words[bit]);
            between = " or ";
        }
    const struct transforms_frame *first = tally.first;
    const char *name = masks ? first->mask_name : first->file_path;
    const char *path = masks ? first->mask_path : first->image_path;
    if (name == NULL || path == NULL)
        return;
    bool in_other_folder =
        ((masks ? first->mask_differences : first->image_differences) & FOUND_FOLDER) != 0 ||
        strcmp(base_path_name(path), base_path_name(name)) == 0; /* only a folder differs */
    base_text_add(text, ": %s for %s", in_other_folder ? path : base_path_name(path),
                  in_other_folder ? name : base_path_name(name));
}

static vkn_status describe_names(const struct transforms files[SCENE_SPLITS], char **text)
{
    struct base_text made = {0};
    add_names(&made, files, false);
    add_names(&made, files, true);
    *text = made.data;
    if (!made.failed)
        return VKN_OK;
    free(made.data);
    *text = NULL;
    return base_fail(VKN_ERROR, "out of memory (names of images)");
}

static vkn_status describe_orientations(const struct transforms files[SCENE_SPLITS],
                                        enum treatment treatment, char **text)
{
    static const char *const words[TREATMENTS] = {
        [ROTATED] = "and are rotated upright, because only then they have their cameras' sizes",
        [AS_STORED] = "and are used as stored, because only then they have their cameras' sizes",
        [ORIENTATION_UNKNOWN] = "that their cameras' sizes do not confirm, and are used as stored",
    };
    const struct tally tally = tally_orientations(files, treatment);
    *text = NULL;
    if (tally.counted == 0)
        return VKN_OK;
    *text = base_format("%zu of %zu images have an EXIF orientation (%u in %s) %s", tally.counted,
                        tally.all, tally.first->orientation,
                        base_path_name(tally.first->image_path), words[treatment]);
    return *text != NULL ? VKN_OK : VKN_ERROR;
}

static void log_and_free(enum base_log_level level, const char *path, char *text)
{
    if (text != NULL)
        base_log(level, "%s: %s", path, text);
    free(text);
}

vkn_status pictures_report(const char *path, const struct transforms files[SCENE_SPLITS],
                           struct scene_findings *findings)
{
    struct scene_findings logged = {0}, *target = findings != NULL ? findings : &logged;
    vkn_status status = describe_names(files, &target->other_names);
    if (status == VKN_OK)
        status = describe_orientations(files, ROTATED, &target->rotated);
    if (status == VKN_OK)
        status = describe_orientations(files, AS_STORED, &target->as_stored);
    if (status == VKN_OK)
        status = describe_orientations(files, ORIENTATION_UNKNOWN, &target->orientation_unknown);
    log_and_free(BASE_LOG_INFO, path, logged.other_names);
    log_and_free(BASE_LOG_INFO, path, logged.rotated);
    free(logged.as_stored); /* other programs do the same: not worth a message in training */
    log_and_free(BASE_LOG_WARNING, path, logged.orientation_unknown);
    return status;
}
