/* Reference sampling by a proposal's weights (Mip-NeRF 360, Barron et al. 2022, section 3). */
#include "reference/reference.h"

#include <math.h>

double reference_annealed_slope(uint32_t step, uint32_t anneal_steps)
{
    double bias = 10, share = fmin((double)step / anneal_steps, 1);
    return bias * share / ((bias - 1) * share + 1);
}

void reference_proposal_shares(const double *weights, uint32_t bins, double slope, double *shares)
{
    for (uint32_t i = 0; i < bins; i++) {
        /* Maxima of neighbours, then their mean: Mip-NeRF, equation 18. */
        double in_front = i > 0 ? fmax(weights[i - 1], weights[i]) : weights[i];
        double behind = i + 1 < bins ? fmax(weights[i], weights[i + 1]) : weights[i];
        shares[i] = pow((in_front + behind) / 2 + 0.05 / bins, slope);
    }
}

double reference_proposal_cdf(const double *shares, uint32_t bins, double position)
{
    double before = 0, all = 0;
    for (uint32_t i = 0; i < bins; i++) {
        before += shares[i] * fmin(fmax(position - i, 0), 1);
        all += shares[i];
    }
    return before / all;
}
