// Computes activation functions of hidden layers, and the functions' derivatives from their values y,
// because the inputs x are not stored.
// Passes: layer_forward, layer_backward.

layout(constant_id = SPEC_ACTIVATION) const uint ACTIVATION = ACTIVATION_RELU;

const bool RECTIFIES = ACTIVATION <= ACTIVATION_RELU;
const float LEAK = 0.01;

// Uses squareplus(x) = 1 / squareplus(-x) for negative x, where the definition suffers cancellation.
float squareplus(float x)
{
    float y = 0.5 * (abs(x) + sqrt(x * x + 4.0));
    return x < 0.0 ? 1.0 / y : y;
}

float activate(float x)
{
    switch (ACTIVATION) {
    case ACTIVATION_LEAKY_RELU:
        return max(x, LEAK * x);
    case ACTIVATION_SOFTPLUS:
        return max(x, 0.0) + log(1.0 + exp(-abs(x)));
    case ACTIVATION_SQUAREPLUS:
        return squareplus(x);
    case ACTIVATION_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case ACTIVATION_TANH:
        return sign(x) * (1.0 - 2.0 / (1.0 + exp(2.0 * abs(x))));
    case ACTIVATION_NONE:
        return x;
    default:
        return max(x, 0.0);
    }
}

float activation_slope(float y)
{
    switch (ACTIVATION) {
    case ACTIVATION_LEAKY_RELU:
        return y > 0.0 ? 1.0 : LEAK;
    case ACTIVATION_SOFTPLUS:
        return 1.0 - exp(-y);
    case ACTIVATION_SQUAREPLUS: // x = y - 1 / y
        return y * y / (y * y + 1.0);
    case ACTIVATION_SIGMOID:
        return y * (1.0 - y);
    case ACTIVATION_TANH:
        return 1.0 - y * y;
    case ACTIVATION_NONE:
        return 1.0;
    default:
        return y > 0.0 ? 1.0 : 0.0;
    }
}
