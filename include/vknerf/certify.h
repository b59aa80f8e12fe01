/* vknerf/certify.h: tests a device and writes a certificate of what is right, wrong and how fast.
 */
#ifndef VKNERF_CERTIFY_H
#define VKNERF_CERTIFY_H

#include <vknerf/run.h>

VKN_BEGIN_DECLARATIONS

/* Parameters of vkn_certify. */
struct vkn_certify_params {
    size_t size;
    const struct vkn_job *job; /* NULL: all defaults */
    /* Words of the command that starts the program vknerf, a path first: each part of the
     * certificate runs in a process of its own, so that a hang or a crash ends only that part. */
    const char *const *command;
    size_t command_count;
    const char *only;  /* names of parts, separated by commas; NULL: all */
    const char *scene; /* scene of the trainings, the bundled one; needed unless `only` leaves the
                          trainings out */
    bool full;         /* CPU devices: every case, longer trainings; GPUs: all of vknerf bench */
    uint32_t limit;    /* seconds without any progress after which a part counts as hung; 0: 120, on
                          CPU devices 600 */
    const char *out;   /* folder for certificate.json, certificate.html, certify.log and the folders
                          of the trainings and of vknerf bench */
};

/* Tests a device. *json becomes the certificate (docs/gpus.md), in memory that the caller frees:
 * with VKN_OK, also if tests fail, and with VKN_INTERRUPTED, with the results so far. A complete
 * certificate is also kept in the user's cache folder: vkn_info_json shows it, and features whose
 * tests have failed are switched off on this device and driver. VKN_NO_DEVICE: the device cannot be
 * opened. */
VKN_API vkn_status vkn_certify(const struct vkn_certify_params *params, char **json);
/* Runs the tests of one part in this process, from the one after `after` (NULL: the first) on, and
 * writes events to standard output, for vkn_certify: the command's words are followed by "certify
 * --part PART" and the options of the job. Sets environment variables of this process. */
VKN_API vkn_status vkn_certify_part(const struct vkn_job *job, const char *part, const char *after,
                                    bool full);

VKN_END_DECLARATIONS

#endif
