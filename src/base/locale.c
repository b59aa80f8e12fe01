/* Numbers with a point, whatever the locale of the program that uses the library. */
#include <locale.h>
#include <pthread.h>

#include "base/base.h"

static locale_t c_locale; /* for good; 0, which changes nothing, without memory */

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

void base_c_locale_enter(struct base_c_locale *scope)
{
    static pthread_once_t made = PTHREAD_ONCE_INIT;
    pthread_once(&made, make_c_locale);
    scope->before = (void *)uselocale(c_locale);
}

void base_c_locale_leave(struct base_c_locale *scope)
{
    uselocale((locale_t)scope->before);
}
