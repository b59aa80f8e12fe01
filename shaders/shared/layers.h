/* What layers that are passes of their own are made of, for host and shaders: values of
 * SPEC_ACTIVATION and SPEC_DIRECTION. */
#ifndef SHARED_LAYERS_H
#define SHARED_LAYERS_H

/* enum vkn_activation, of hidden layers that are passes of their own; 0 is relu as well. */
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
