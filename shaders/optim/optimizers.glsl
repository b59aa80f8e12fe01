// Updates parameters and their moments from gradients, by the rule of the selected optimiser. Another
// optimiser needs functions for update and rate with cases here, a name in include/vknerf/choices.h
// and a row in src/optim/kinds.c.
// Pass: update_weights.

// enum vkn_optimizer of include/vknerf/choices.h
const uint OPTIMIZER_ADAM = 1u;
const uint OPTIMIZER_LION = 2u;

layout(constant_id = SPEC_OPTIMIZER) const uint OPTIMIZER = OPTIMIZER_ADAM;
const bool HAS_MOMENT2 = OPTIMIZER == OPTIMIZER_ADAM; // otherwise shaders neither read nor write BIND_MOMENT2

// Returns Adam's learning rate, which includes the bias correction of the moments.
float adam_rate(float rate, uint count)
{
    float correction1 = 1.0 - exp2(log2(config.beta1) * float(count));
    float correction2 = 1.0 - exp2(log2(config.beta2) * float(count));
    return rate * sqrt(correction2) / correction1;
}

// Adam (Kingma and Ba, 2015). Weight decay is L2 regularisation, part of the gradient.
void adam(float g, float decay, float rate, inout float w, inout float m, inout float v)
{
    if (decay != 0.0)
        g += decay * w;
    m = round_to(ROUND_MOMENTS, mix(g, m, config.beta1));
    v = round_to(ROUND_MOMENTS, mix(g * g, v, config.beta2));
    w = round_to(ROUND_MASTERS, w - rate * m / (sqrt(v) + config.epsilon));
}

// Lion (Chen et al., Symbolic Discovery of Optimization Algorithms, 2023). Weight decay is not part of
// the gradient: for a weight whose gradient is 0, the sign would turn any decay into a whole step.
void lion(float g, float decay, float rate, inout float w, inout float m)
{
    float direction = sign(mix(g, m, config.beta1)) + decay * w;
    m = round_to(ROUND_MOMENTS, mix(g, m, config.beta2));
    w = round_to(ROUND_MASTERS, w - rate * direction);
}

// Returns the learning rate of an entry's step number `count`, from 1 on.
float rate_of_step(float rate, uint count)
{
    return OPTIMIZER == OPTIMIZER_LION ? rate : adam_rate(rate, count);
}

// Updates a weight and the weight's moments from the unscaled gradient.
void optimizer_step(float g, float decay, float rate, inout float w, inout float m, inout float v)
{
    if (OPTIMIZER == OPTIMIZER_LION)
        lion(g, decay, rate, w, m);
    else
        adam(g, decay, rate, w, m, v);
}
