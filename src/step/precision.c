/* Chooses the precision and the matrix settings of a run. */
#include "step/step.h"
#include "tuner/tuner.h"

vkn_status setup_choose_precision(struct gpu_device *device, const struct vkn_scene *scene,
                                  struct vkn_config *config, struct field_choice *choice)
{
    struct vkn_config effective = *config;
    BASE_TRY(setup_resolve_config(&effective, scene, gpu_device_capabilities(device)));
    effective.precision = config->precision; /* field_choose resolves it */
    BASE_TRY(field_choose(device, &effective, choice));
    config->precision = effective.precision;
    config->matrix = effective.matrix;
    return VKN_OK;
}
