/* Visits to a training. */
#include "run/training.h"

#include "run/internal.h"

vkn_status run_visits_read(const struct vkn_train_visitor *given, struct run_visits *visits)
{
    *visits = (struct run_visits){0};
    if (!given)
        return VKN_OK;
    struct vkn_train_visitor *visitor = &visits->visitor;
    BASE_TRY(BASE_READ("vkn_train_visitor", vkn_train_visitor, given, visitor, closed));
    BASE_NEED(visitor->due);
    BASE_NEED(visitor->visit);
    return VKN_OK;
}

void run_visits_begin(struct run_visits *visits, struct run_saver *saver, const char *scene)
{
    const struct vkn_train_visitor *visitor = &visits->visitor;
    visits->saver = saver;
    if (!visitor->opened)
        return;
    BASE_CALLBACK(train_guard(saver->trainer), "vkn_run_train", "opened", saver->trainer, true);
    visitor->opened(visitor->context, saver->trainer, saver->folder, scene);
}

vkn_status run_visits_end(struct run_visits *visits, vkn_status status)
{
    BASE_KEEP_ERROR;
    const struct vkn_train_visitor *visitor = &visits->visitor;
    if (!visitor->closed)
        return status;
    vkn_trainer *trainer = visits->saver->trainer;
    BASE_CALLBACK(train_guard(trainer), "vkn_run_train", "closed", trainer, true);
    visitor->closed(visitor->context, trainer, status);
    return status;
}

double run_visits_due(const struct run_visits *visits)
{
    return visits->visitor.due(visits->visitor.context);
}

vkn_status run_visits_receive(struct run_visits *visits)
{
    bool save = true;
    while (save) { /* who had to leave for that comes back */
        save = false;
        BASE_TRY(visits->visitor.visit(visits->visitor.context, visits->saver->trainer, &save));
        if (save)
            BASE_TRY(run_saver_save(visits->saver));
    }
    return VKN_OK;
}
