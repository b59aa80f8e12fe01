/* A small workload that every path of a device can run: whether its programs are right, and how
 * fast. */
#ifndef FIELD_WORKLOAD_H
#define FIELD_WORKLOAD_H

#include "field/path.h"

/* What came of running a path. */
struct field_trial {
    double milliseconds; /* of field_forward and field_backward, the shortest of a few runs */
    char fault[256];     /* the program that is wrong and how; empty: the results are fp32's */
};

struct field_workload;

/* For an effective model; precision, batch and march do not matter. Weights are such that every
 * unit of the MLPs stays well on its side of the ReLU and sums do not cancel, so that precisions
 * differ by rounding alone and what is wrong stands out. The caller destroys *workload. */
vkn_status field_workload_create(struct gpu_device *device, const struct vkn_config *config,
                                 struct field_workload **workload);
void field_workload_destroy(struct field_workload **workload);
/* The same with so many samples, to tune paths with: see contest.h. */
vkn_status field_workload_create_large(struct gpu_device *device, const struct vkn_config *config,
                                       uint32_t samples, struct field_workload **workload);
/* Runs the path's field_forward and field_backward and compares with the fp32 path's, untuned,
 * which runs by itself first. A program that does not compile is a fault of the path; the status is
 * not VKN_OK when the device is lost, memory runs out or fp32 itself fails. */
vkn_status field_workload_try(struct field_workload *workload, const struct field_path *path,
                              struct field_trial *trial);

#endif
