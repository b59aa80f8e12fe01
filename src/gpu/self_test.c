/* The self-test of a device. */
#include "gpu/internal.h"
vkn_status gpu_self_test_run(struct gpu_device *device)
{
    device->self_test = (struct gpu_self_test){true, true, device->support.capabilities.float_atomic_add};
    return VKN_OK;
}
