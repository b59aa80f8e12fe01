/* Tells absolute paths from others. */
#include "base/base.h"

bool base_path_is_absolute(const char *path)
{
    return path[0] == '/';
}
