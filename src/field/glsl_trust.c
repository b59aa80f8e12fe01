/* Keeps the SHA-256 sums of the texts that this process may run from checkpoints. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "field/glsl.h"

struct trusted_text {
    char sha256[BASE_SHA256_TEXT];
    struct trusted_text *next;
};

/* Trust is never revoked, because a trusted text may have been compiled already. */
static struct {
    pthread_mutex_t lock;
    bool all;
    struct trusted_text *first;
} trusted = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Copies 64 hexadecimal digits in lower case; returns false for any other text. */
static bool read_digits(const char *given, char sha256[BASE_SHA256_TEXT])
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
    size_t length = strlen(given);
    if (length != BASE_SHA256_TEXT - 1)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char *digit = strchr(upper, given[i]);
        sha256[i] = digit ? lower[digit - upper] : given[i];
        if (!strchr(lower, sha256[i]))
            return false;
    }
    sha256[length] = 0;
    return true;
}

vkn_status vkn_field_trust(const char *sha256)
{
    BASE_TRY(base_check_calls_allowed(__func__));
    struct trusted_text *text = base_alloc(1, sizeof *text);
    if (!text)
        return VKN_ERROR;
    if (sha256 && !read_digits(sha256, text->sha256)) {
        free(text);
        return base_fail(VKN_BAD_INPUT,
                         "%s: not a SHA-256: 64 hexadecimal digits, as sha256sum prints them",
                         sha256);
    }
    pthread_mutex_lock(&trusted.lock);
    if (sha256) {
        text->next = trusted.first;
        trusted.first = text;
    } else {
        trusted.all = true;
        free(text);
    }
    pthread_mutex_unlock(&trusted.lock);
    return VKN_OK;
}

bool vkn_field_is_trusted(const char *sha256)
{
    char digits[BASE_SHA256_TEXT];
    if (!sha256 || !read_digits(sha256, digits))
        return false;
    pthread_mutex_lock(&trusted.lock);
    const struct trusted_text *text = trusted.first;
    while (text && strcmp(text->sha256, digits) != 0)
        text = text->next;
    bool found = trusted.all || text;
    pthread_mutex_unlock(&trusted.lock);
    return found || glsl_is_registered(digits);
}
