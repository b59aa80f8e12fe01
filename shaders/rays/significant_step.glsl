// Computes steps of Adam that rest while gradients are noise, for parameters of views.
// The including file declares CONTROL as `control`.
// Passes: update_views, update_appearance.
#include "shared/progress.glsl"

const float BETA1 = 0.9, EPSILON = 1e-15;
const float NOISE = 3.0; // a parameter rests while its squared mean gradient is below this many times that of noise

// Returns how far a mean gradient stands out from noise, 0 to 1: the positive part of James and Stein's
// shrinkage with NOISE times the variance (Efron and Morris, JASA 1973). Adam's steps are as long for
// noise as for a gradient, and would let exact cameras drift. The mean of n gradients with weights
// (1 - BETA1) BETA1^i / (1 - BETA1^n) has the variance of one gradient times the sum of the squared
// weights. rest1: BETA1^n.
float significance(float mean, float square, float rest1)
{
    float noise = (1.0 - BETA1) / (1.0 + BETA1) * (1.0 + rest1) / (1.0 - rest1) * square;
    return mean != 0.0 ? max(1.0 - NOISE * noise / (mean * mean), 0.0) : 0.0;
}

// Returns step `count` for the gradient g, at most about 1 long, and updates the parameter's moments.
// beta2: decay of the second moment.
float significant_step(float g, uint count, float beta2, inout float moment1, inout float moment2)
{
    moment1 = mix(g, moment1, BETA1);
    moment2 = mix(g * g, moment2, beta2);
    // Corrects the moments' bias.
    float rest1 = exp2(log2(BETA1) * float(count)), rest2 = exp2(log2(beta2) * float(count));
    float mean = moment1 / (1.0 - rest1), square = moment2 / (1.0 - rest2);
    return significance(mean, square, rest1) * mean / (sqrt(square) + EPSILON);
}

// Returns a rate that falls exponentially from `first` to `last` between `start` and the end of the
// training.
float falling_rate(float first, float last, float start)
{
    float progress = (training_progress() - start) / max(1.0 - start, 1e-6);
    return first * pow(last / first, clamp(progress, 0.0, 1.0));
}
