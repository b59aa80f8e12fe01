/* Runs --find-batch: prints the table of trials and chooses the batch to train with. */
#include <stdio.h>

#include "cli/training.h"

static void print_trial(const struct vkn_batch_trial *trial)
{
    printf("%9u %9u", trial->samples, trial->max_rays);
    if (trial->memory_bytes > 0)
        printf(" %11.1f", (double)trial->memory_bytes / (1024.0 * 1024.0));
    else
        printf(" %11s", "-");
    if (trial->steps_per_second > 0)
        printf(" %9.2f %11.0f", trial->steps_per_second, trial->samples_per_second);
    else
        printf(" %9s %11s", "-", "-");
    printf("  %s\n", trial->verdict == VKN_BATCH_STABLE ? "stable" : trial->reason);
}

static void print_table(const struct vkn_batch_search *search)
{
    printf("%9s %9s %11s %9s %11s\n", "samples", "max rays", "memory MiB", "steps/s", "samples/s");
    for (size_t i = 0; i < search->trial_count; i++)
        print_trial(search->trials[i]);
    if (search->largest == search->trial_count)
        return;
    printf("largest stable batch: %u samples\nfastest per sample: %u samples\n",
           search->trials[search->largest]->samples, search->trials[search->fastest]->samples);
}

static int print_search(const struct vkn_batch_search *search, bool json)
{
    if (!json) {
        print_table(search);
        return cli_finish_output();
    }
    return cli_print_json(vkn_batch_search_json(search));
}

static vkn_status set_batch(struct training *training, const struct vkn_batch_search *search)
{
    size_t chosen = training->find_batch == SEARCH_USE ? search->largest : search->fastest;
    const struct vkn_batch_trial *trial = search->trials[chosen];
    vkn_status status = vkn_config_set_number(training->config, "batch.samples", trial->samples);
    return status == VKN_OK
               ? vkn_config_set_number(training->config, "batch.max_rays", trial->max_rays)
               : status;
}

/* Prints the search, whatever its status, and sets the chosen batch. */
static int finish_search(struct training *training, vkn_status status,
                         const struct vkn_batch_search *search)
{
    if (status != VKN_OK) {
        int code = cli_status(status);
        if (search && search->largest < search->trial_count && !training->json)
            print_table(search);
        return code;
    }
    bool result_follows = training->json && training->find_batch != SEARCH_REPORT;
    if (result_follows && !(training->found = vkn_batch_search_json(search)))
        return cli_status(VKN_ERROR);
    int code = result_follows ? VKN_OK : print_search(search, training->json);
    if (code != VKN_OK || training->find_batch == SEARCH_REPORT)
        return code;
    status = set_batch(training, search);
    return status == VKN_OK ? OPTIONS_GO_ON : cli_status(status);
}

/* Unsets the batch on ranks other than 0, which use the batch that rank 0 finds. */
static int clear_batch(struct training *training)
{
    vkn_status status = vkn_config_set(training->config, NULL, "batch.samples", "default");
    if (status == VKN_OK)
        status = vkn_config_set(training->config, NULL, "batch.max_rays", "default");
    if (status != VKN_OK)
        return cli_status(status);
    return training->find_batch == SEARCH_REPORT ? VKN_OK : OPTIONS_GO_ON;
}

int training_find_batch(struct training *training)
{
    if (!cli_is_rank_0())
        return clear_batch(training);
    const struct vkn_batch_params params = {
        .train = &training->params,
        .memory_budget = (uint64_t)training->memory_budget << 20,
    };
    struct vkn_batch_search *search;
    vkn_status status = vkn_find_batch(&params, &search);
    int code = finish_search(training, status, search);
    vkn_batch_search_free(&search);
    return code;
}
