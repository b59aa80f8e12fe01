/* Keeps libraries loaded until a sanitized program ends. After unloading a driver, memory in its
 * global variables (such as caches of Mesa) would be reported as leaks, and stack traces into the
 * driver would lack symbols. */
int dlclose(void *library);

int dlclose(void *library)
{
    (void)library;
    return 0;
}
