/* In sanitized programs libraries stay loaded until the end. What a driver holds in its globals, as
 * Mesa does the caches of AMD's processors, would else be a leak of nobody's once it is unloaded,
 * and traces into it would have no names. */
int dlclose(void *library);

int dlclose(void *library)
{
    (void)library;
    return 0;
}
