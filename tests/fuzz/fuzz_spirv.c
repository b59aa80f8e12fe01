/* Fuzzes the check of SPIR-V of shaders with a user's field, and the specialisation of shaders. The
 * first word of the input is the word count of the shader with the library's own snippet, which
 * follows; the rest is the shader with the user's snippet. An accepted result must be accepted
 * again. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "gpu/shaders.h"
#include "gpu/snippet_check.h"

#define MOST_WORDS 65536

/* The result of the check must pass the check. */
static void check_again(const uint32_t *plain, size_t plain_count, const uint32_t *words,
                        size_t count)
{
    uint32_t *again = NULL;
    size_t again_count = 0;
    vkn_status status =
        gpu_snippet_check("again", plain, plain_count, words, count, &again, &again_count);
    require(status == VKN_OK && again_count >= count, "an accepted result is refused");
    free(again);
}

/* Specialises the result once more, since specialisation handles whole shaders of any size. */
static void specialize(const uint32_t *words, size_t count)
{
    const uint32_t given[] = {8, 64, 0, 1, 5, 1};
    uint32_t *once = gpu_specialize(words, &count, given, 6);
    uint32_t *twice = once ? gpu_specialize(once, &count, NULL, 0) : NULL;
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint32_t words[MOST_WORDS];
    uint32_t *safe = NULL;
    size_t count = size / sizeof *words, safe_count = 0;
    if (count < 1 || count > MOST_WORDS)
        return 0;
    memcpy(words, data, count * sizeof *words);
    size_t plain_count = words[0] < count ? words[0] : count - 1;
    /* In separate blocks, so that a sanitizer notices reads beyond the end. */
    uint32_t *plain = malloc((plain_count + 1) * sizeof *plain),
             *user = malloc((count - plain_count) * sizeof *user);
    require(plain != NULL && user != NULL, "out of memory");
    memcpy(plain, words + 1, plain_count * sizeof *plain);
    memcpy(user, words + 1 + plain_count, (count - 1 - plain_count) * sizeof *user);
    specialize(plain, plain_count);
    specialize(user, count - 1 - plain_count);
    vkn_status status = gpu_snippet_check("field.glsl", plain, plain_count, user,
                                          count - 1 - plain_count, &safe, &safe_count);
    if (status == VKN_OK)
        check_again(plain, plain_count, safe, safe_count);
    else
        require_message();
    free(plain);
    free(user);
    free(safe);
    return 0;
}
