/* Returns the commit that the library was built from. */
#include "base/base.h"

#include "commit.h" /* written by cmake/write_commit.cmake */

const char *base_commit(void)
{
    return VKNERF_COMMIT;
}
