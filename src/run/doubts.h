/* What speaks against a capture, said as a warning: before training, and once its quality is known.
 */
#ifndef RUN_DOUBTS_H
#define RUN_DOUBTS_H

#include "config/config.h"
#include "scene/scene.h"

void doubts_before(const struct vkn_scene *scene, const struct vkn_config *config);
/* Once the training images are loaded, where they are held in memory: poses that do not fit them.
 */
void doubts_of_poses(const struct vkn_scene *scene);
/* PSNR of what was trained on, 0 where it is not known, and of views of that split. */
void doubts_after(const struct vkn_scene *scene, double train_psnr, enum scene_split_name split,
                  double psnr);

#endif
