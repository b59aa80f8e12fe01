/* Trials of paths, remembered for a device, a driver and the programs' code in the user's cache
 * folder. */
#ifndef FIELD_RECORDS_H
#define FIELD_RECORDS_H

#include "field/workload.h"

struct field_records;

/* NULL when nothing is kept: no folder, no memory, switched off, or a test breaks something. A file
 * that is damaged or of another driver counts as empty, and so does any with VKNERF_MEASURE=1. */
struct field_records *field_records_open(const struct gpu_device *device);
/* What was found out about the path for such a model. `records` may be NULL. */
bool field_records_find(const struct field_records *records, const struct vkn_config *config,
                        const struct field_path *path, struct field_trial *trial);
void field_records_add(struct field_records *records, const struct vkn_config *config,
                       const struct field_path *path, const struct field_trial *trial);
/* Saves what was added; failing to costs the next start its time and nothing else. */
void field_records_close(struct field_records **records);

#endif
