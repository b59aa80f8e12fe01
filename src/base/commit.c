#include "base/base.h"

#include "commit.h" /* made by cmake/write_commit.cmake */

const char *base_commit(void)
{
    return VKNERF_COMMIT;
}
