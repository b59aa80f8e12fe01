/* Compiles volk, which loads libvulkan at run time. */
#define VOLK_IMPLEMENTATION
#include <volk.h>
