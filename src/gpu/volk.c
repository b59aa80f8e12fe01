/* The one place where volk, which loads libvulkan at run time, is compiled. */
#define VOLK_IMPLEMENTATION
#include <volk.h>
