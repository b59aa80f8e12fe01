/* Uploads and reads the appearance of training views: exposures, white balance, vignetting and
 * response curves that a training estimates. */
#include <math.h>
#include <stdlib.h>

#include "step/internal.h"
#include "volume/volume.h"

#define WORD(member, word) \
    _Static_assert(offsetof(struct Appearance, member) == 4 * (word), "shaders find " #member)
WORD(values, 0);
WORD(moment1, APPEARANCE_PARAMETERS);
WORD(moment2, 2 * APPEARANCE_PARAMETERS);
WORD(updates, APPEARANCE_UPDATES);
WORD(camera_updates, APPEARANCE_UPDATES + 1);
WORD(group, APPEARANCE_GROUP);
WORD(given, APPEARANCE_GIVEN);
_Static_assert(sizeof(struct Appearance) == 4 * APPEARANCE_WORDS, "shaders find the next view");
_Static_assert(sizeof(struct Appearance) % sizeof(struct ErrorCell) == 0,
               "checkpoints know the state");

bool step_has_appearance(const struct step *step)
{
    return volume_appearance_kind(&step->setup.config) != 0;
}

bool step_appearance_is_finite(const struct Appearance *appearance)
{
    bool finite = true;
    for (int i = 0; i < APPEARANCE_PARAMETERS; i++)
        finite = finite && fabsf(appearance->values[i]) <= 2 * SCENE_MOST_EXPOSURE;
    return finite;
}

bool step_same_camera(const struct scene_camera *a, const struct scene_camera *b)
{
    return a->width == b->width && a->height == b->height && a->lens == b->lens;
}

/* Sets groups[n] to the first view of the same camera. */
static void group_cameras(const struct scene_split *train, uint32_t *groups)
{
    for (uint32_t n = 0; n < train->camera_count; n++) {
        uint32_t first = 0;
        while (first < n && (groups[first] != first ||
                             !step_same_camera(&train->cameras[first], &train->cameras[n])))
            first++;
        groups[n] = first;
    }
}

vkn_status step_begin_appearances(const struct step *step, const struct scene_split *train)
{
    const size_t count = train->camera_count;
    if (!step_has_appearance(step))
        return VKN_OK;
    struct Appearance *appearances = base_alloc(count, sizeof *appearances);
    uint32_t *groups = base_alloc(count, sizeof *groups);
    vkn_status status = appearances && groups ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        group_cameras(train, groups);
        for (size_t i = 0; i < count; i++) {
            appearances[i].group = groups[i];
            appearances[i].given = scene_relative_exposure(train, &train->cameras[i]);
            appearances[i].values[0] = appearances[i].given;
        }
        status = gpu_upload(step->device, &step->buffers.at[BIND_STATE],
                            4ull * step->setup.constants.first_appearance_word, appearances,
                            count * sizeof *appearances);
    }
    free(appearances);
    free(groups);
    return status;
}

vkn_status step_read_appearances(const struct step *step, size_t first, size_t count,
                                 struct Appearance *appearances)
{
    uint64_t at = 4ull * step->setup.constants.first_appearance_word;
    return gpu_download(step->device, &step->buffers.at[BIND_STATE],
                        at + first * sizeof *appearances, appearances, count * sizeof *appearances);
}
