/* Shared by the files of this folder: UTF-16 paths and errors of Windows. */
#ifndef WINDOWS_INTERNAL_H
#define WINDOWS_INTERNAL_H

#include "windows/posix.h"

#include <winsock2.h>

#include <windows.h>

/* Returns the path in UTF-16, which the caller frees; NULL: failed, errno is set. Long paths get
 * the prefix that lifts the limit of 260 characters. */
wchar_t *windows_wide_path(const char *path);
/* As windows_fail. If a file stands where the path needs a folder, errno is ENOTDIR. */
int windows_fail_path(DWORD error, const char *path);

#endif
