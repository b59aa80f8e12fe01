/* Reads and writes the list of a rendering's files, and removes files of earlier renderings. */
#include "render/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#define LIST        "vknerf_frames.json"
#define DEPTH_SCALE "depth_scale.json"
#define LIST_LIMIT  ((size_t)1 << 16) /* bytes */
#define MOST_FRAMES 1e6               /* lists with more frames are rejected */

/* The kind's name in the list, and the suffix of its files after the frame number. */
static const struct {
    const char *name, *suffix;
} kinds[RENDER_KINDS] = {
    [RENDER_KIND_COLOR] = {"rgb", ".png"},
    [RENDER_KIND_DEPTH] = {"depth", "_depth.png"},
    [RENDER_KIND_DEPTH16] = {"depth16", "_depth16.png"},
    [RENDER_KIND_DEPTH_VALUES] = {"depth_values", "_depth.npy"},
    [RENDER_KIND_OPACITY] = {"opacity", "_opacity.png"},
    [RENDER_KIND_NORMAL] = {"normal", "_normal.png"},
};

static char *frame_name(size_t frame, enum render_kind kind)
{
    return base_format("frame_%04zu%s", frame, kinds[kind].suffix);
}

char *render_frame_path(const char *folder, size_t frame, enum render_kind kind)
{
    char *name = frame_name(frame, kind);
    char *path = name ? base_path_join(folder, name) : NULL;
    free(name);
    return path;
}

/* ---- the list ------------------------------------------------------------------------------ */

static vkn_status read_list(const char *path, struct render_listing *listing)
{
    struct cJSON *json = NULL;
    BASE_TRY(base_json_read(path, LIST_LIMIT, &json));
    vkn_status status = VKN_OK;
    for (unsigned kind = 0; kind < RENDER_KINDS && status == VKN_OK; kind++) {
        double count = 0.0;
        status = base_json_number(json, kinds[kind].name, path, false, 0.0, MOST_FRAMES, &count);
        listing->counts[kind] = (size_t)count;
    }
    cJSON_Delete(json);
    return status;
}

static vkn_status write_list(const struct render_listing *listing)
{
    struct base_text text = {0};
    for (unsigned kind = 0; kind < RENDER_KINDS; kind++)
        base_text_add(&text, "%s\"%s\": %zu", kind > 0 ? ", " : "{", kinds[kind].name,
                      listing->counts[kind]);
    base_text_add(&text, "}\n");
    char *path = base_path_join(listing->folder, LIST);
    vkn_status status =
        path && !text.failed ? base_file_replace(path, text.data, text.size) : VKN_ERROR;
    free(path);
    free(text.data);
    return status;
}

static bool frame_exists(const struct render_listing *listing, size_t frame, enum render_kind kind)
{
    char *path = render_frame_path(listing->folder, frame, kind);
    bool exists = !path || access(path, F_OK) == 0;
    free(path);
    return exists;
}

/* The list is written before the first frame, so that it is right even if the process is killed:
 * files that existed before and were in no list are never listed. */
vkn_status render_listing_begin(struct render_listing *listing, size_t frames)
{
    char *path = base_path_join(listing->folder, LIST);
    if (!path)
        return VKN_ERROR;
    if (base_file_exists(path) && read_list(path, listing) != VKN_OK) {
        base_log(BASE_LOG_WARNING, "%s; frames of earlier renderings are not removed",
                 vkn_last_error());
        memset(listing->counts, 0, sizeof(listing->counts));
    }
    free(path);
    for (unsigned kind = 0; kind < RENDER_KINDS; kind++)
        while (listing->wanted[kind] && listing->counts[kind] < frames &&
               !frame_exists(listing, listing->counts[kind], kind))
            listing->counts[kind]++;
    return write_list(listing);
}

/* ---- older frames -------------------------------------------------------------------------- */

struct older {
    size_t removed, kept;
    char *example; /* one of the kept files */
};

/* Removes the file and frees `path`. */
static void remove_file(struct older *older, char *path)
{
    if (path && unlink(path) == 0)
        older->removed++;
    else if (path && errno != ENOENT)
        base_log(BASE_LOG_WARNING, "%s: cannot be removed: %s", path, strerror(errno));
    free(path);
}

/* Returns how many files of a kind this rendering wrote. */
static size_t written(const struct render_listing *listing, unsigned kind, size_t frames)
{
    return listing->wanted[kind] ? frames : 0;
}

static bool has_scale(const struct render_listing *listing)
{
    return listing->wanted[RENDER_KIND_DEPTH] || listing->wanted[RENDER_KIND_DEPTH16];
}

static void remove_listed(const struct render_listing *listing, size_t frames, struct older *older)
{
    size_t listed = listing->counts[RENDER_KIND_DEPTH] + listing->counts[RENDER_KIND_DEPTH16];
    if (listed > 0 && !has_scale(listing))
        remove_file(older, base_path_join(listing->folder, DEPTH_SCALE));
    for (unsigned kind = 0; kind < RENDER_KINDS; kind++)
        for (size_t frame = listing->counts[kind]; frame > written(listing, kind, frames);)
            remove_file(older, render_frame_path(listing->folder, --frame, kind));
}

/* Returns whether a file has the name of a frame but was not written by this rendering. */
static bool looks_older(const struct render_listing *listing, const char *name, size_t frames)
{
    static const char prefix[] = "frame_";
    if (strcmp(name, DEPTH_SCALE) == 0)
        return !has_scale(listing);
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return false;
    size_t frame = strtoul(name + sizeof(prefix) - 1, NULL, 10);
    for (unsigned kind = 0; kind < RENDER_KINDS; kind++) {
        char *expected = frame_name(frame, kind);
        bool matches = expected && strcmp(expected, name) == 0;
        free(expected);
        if (matches)
            return frame >= written(listing, kind, frames);
    }
    return false;
}

static void count_kept(const struct render_listing *listing, size_t frames, struct older *older)
{
    DIR *folder = opendir(listing->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        if (!looks_older(listing, entry->d_name, frames))
            continue;
        older->kept++;
        if (!older->example)
            older->example = base_format("%s", entry->d_name);
    }
    if (folder)
        closedir(folder);
}

static void log_older_files(const struct render_listing *listing, const struct older *older,
                            bool is_complete)
{
    if (older->removed > 0)
        base_log(BASE_LOG_INFO, "%s: %zu file%s of an earlier rendering removed", listing->folder,
                 older->removed, older->removed == 1 ? "" : "s");
    if (older->kept > 0)
        base_log(BASE_LOG_WARNING, "%s: %zu older file%s, such as %s, remain%s: %s",
                 listing->folder, older->kept, older->kept == 1 ? "" : "s",
                 older->example ? older->example : "", older->kept == 1 ? "s" : "",
                 is_complete ? LIST " does not list them" : "this rendering is incomplete");
}

vkn_status render_listing_end(struct render_listing *listing, size_t frames, bool is_complete)
{
    struct older older = {0};
    if (is_complete)
        remove_listed(listing, frames, &older);
    for (unsigned kind = 0; kind < RENDER_KINDS; kind++)
        if (is_complete || listing->counts[kind] < written(listing, kind, frames))
            listing->counts[kind] = written(listing, kind, frames);
    count_kept(listing, frames, &older);
    log_older_files(listing, &older, is_complete);
    free(older.example);
    return write_list(listing);
}
