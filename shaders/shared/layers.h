/* Values of SPEC_ACTIVATION and SPEC_DIRECTION, for models whose layers are passes of their own.
 * C and GLSL include this file. */
#ifndef SHARED_LAYERS_H
#define SHARED_LAYERS_H

/* enum vkn_activation: activation function of hidden layers; 0 is also ReLU. */
#define ACTIVATION_RELU       1
#define ACTIVATION_LEAKY_RELU 2
#define ACTIVATION_SOFTPLUS   3
#define ACTIVATION_SQUAREPLUS 4
#define ACTIVATION_SIGMOID    5
#define ACTIVATION_TANH       6
#define ACTIVATION_NONE       7

/* enum vkn_direction_encoding. */
#define DIRECTION_HARMONICS   1
#define DIRECTION_FREQUENCIES 2
#define DIRECTION_IDENTITY    3
#define DIRECTION_NONE        4

#endif
