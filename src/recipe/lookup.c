/* Looking into recipes: where the entries of parameter groups lie, and passes by variant. */
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

const struct pass *recipe_pass(const struct recipe *recipe, enum field_variant variant)
{
    for (size_t i = 0; i < recipe->count; i++)
        if (recipe->passes[i].variant == variant)
            return &recipe->passes[i];
    return NULL;
}
