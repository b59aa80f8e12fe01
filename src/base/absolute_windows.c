/* Tells absolute paths of Windows from others: "C:/x", "\\server\x", "/x". */
#include <ctype.h>

#include "base/base.h"

bool base_path_is_absolute(const char *path)
{
    return path[0] == '/' || path[0] == '\\' || (isalpha((unsigned char)path[0]) && path[1] == ':');
}
