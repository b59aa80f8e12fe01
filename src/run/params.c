/* What callers give to jobs, made complete. */
#include "run/internal.h"

#include "config/config.h"

vkn_status run_read_job(const struct vkn_job **job, struct vkn_job *own)
{
    BASE_TRY(BASE_READ("vkn_job", vkn_job, *job, own, stop));
    *job = own;
    return VKN_OK;
}

vkn_status run_read_train(const struct vkn_train_params *given, struct vkn_train_params *own,
                          struct vkn_job *job)
{
    BASE_TRY(BASE_READ("vkn_train_params", vkn_train_params, given, own, command_count));
    for (size_t i = 0; i < own->command_count; i++)
        if (!own->command || !own->command[i])
            return base_fail(VKN_BAD_INPUT,
                             "vkn_train_params: command_count: word %zu of command is NULL", i);
    own->config = config_given(own->config);
    own->given = config_given(own->given);
    return run_read_job(&own->job, job);
}
