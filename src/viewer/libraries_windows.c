/* On Windows the program contains libmicrohttpd. */
#include "viewer/libraries.h"

struct mhd mhd;

bool libraries_load(char *message, size_t size)
{
    (void)message;
    (void)size;
#define FIND(name, result, parameters) mhd.name = MHD_##name;
    MHD_FUNCTIONS(FIND)
#undef FIND
    return true;
}
