/* Where the entries of parameter groups lie. */
#include "recipe/recipe.h"

uint32_t recipe_entries(const struct parameter_group *groups, uint32_t count)
{
    uint32_t entries = 0;
    for (uint32_t i = 0; i < count; i++) {
        entries = (entries + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
        entries += groups[i].count / groups[i].entry;
    }
    return entries;
}
