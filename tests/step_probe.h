/* Compares gradients of a step with finite differences of the reference's loss. */
#ifndef TESTS_STEP_PROBE_H
#define TESTS_STEP_PROBE_H

#include "step_fixture.h"

/* Step of finite differences: a ReLU rarely switches within it; the loss is exact to about
 * 1e-16. */
#define DIFFERENCE 1e-7

/* A loss, and its gradients by a field's parameters, which are to be checked. */
struct probed {
    double (*loss)(const struct probed *probed, uint32_t parameter); /* `parameter` has changed */
    struct reference_field *field;
    const struct step *step;
    const struct step_outcome *outcome; /* the test's own data */
    const double *gradients;
};

/* Compares `probes` random parameters of [first, last) whose gradients are large enough. */
static inline void probe(const struct probed *probed, uint32_t first, uint32_t last,
                         uint32_t probes, struct random *random, const char *what)
{
    const double *gradients = probed->gradients;
    double *params = probed->field->params, largest = 0;
    for (uint32_t i = first; i < last; i++)
        largest = fmax(largest, fabs(gradients[i]));
    assert_true(largest > 1e-6);
    for (uint32_t done = 0, tries = 0; done < probes; tries++) {
        uint32_t i = first + random_below(random, last - first);
        assert_true(tries < 100 * probes);
        /* One try in eight may have a small gradient, which must be right, too. */
        if (fabs(gradients[i]) < 0.01 * largest && tries % 8 != 0)
            continue;
        double kept = params[i];
        params[i] = kept + DIFFERENCE;
        double above = probed->loss(probed, i);
        params[i] = kept - DIFFERENCE;
        double below = probed->loss(probed, i);
        params[i] = kept;
        double expected = (above - below) / (2 * DIFFERENCE);
        check_close(gradients[i], expected, 1e-3, fabs(expected) + 0.01 * largest, what, i);
        done++;
    }
}

#endif
