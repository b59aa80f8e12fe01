/* Runs a fuzz target without libFuzzer: on every seed, then on mutations of the seeds, which are
 * the same in every run.
 *
 *     fuzz_NAME [-n MUTATIONS] [SEED-FILE-OR-FOLDER ...] */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_SEEDS 256
#define MAX_SIZE  ((size_t)1 << 20)

struct seed {
    uint8_t *data;
    size_t size;
};

static struct seed seeds[MAX_SEEDS] = {{NULL, 0}}; /* the first is empty */
static size_t seed_count = 1;

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || seed_count == MAX_SEEDS) {
        fprintf(stderr, "%s: cannot be read, or one seed too many\n", path);
        exit(1);
    }
    uint8_t *data = malloc(MAX_SIZE);
    if (!data)
        exit(1);
    size_t size = fread(data, 1, MAX_SIZE, file);
    fclose(file);
    seeds[seed_count++] = (struct seed){data, size};
}

static void add_seeds(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) {
        add_file(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        add_file(name);
    }
    closedir(folder);
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators" (2016). */
static uint64_t random_state = 0x9E3779B97F4A7C15u;

static size_t random_below(size_t bound)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    size_t number = (size_t)((random_state * 0x2545F4914F6CDD1Du) >> 33);
    return bound ? number % bound : 0;
}

/* Edits *size bytes in a buffer of MAX_SIZE once. */
static void mutate(uint8_t *data, size_t *size)
{
    static const char interesting[] = "\0\xff\x7f\x80{}[]\":,-0123456789eE.\\u";
    size_t at = random_below(*size);
    size_t length = 1 + random_below(16);
    switch (random_below(7)) {
    case 0: /* flip a bit */
        if (*size)
            data[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1: /* any byte */
        if (*size)
            data[at] = (uint8_t)random_below(256);
        break;
    case 2: /* a byte with a meaning, such as a quote */
        if (*size)
            data[at] = (uint8_t)interesting[random_below(sizeof interesting - 1)];
        break;
    case 3: /* cut off the end */
        *size = at;
        break;
    case 4: /* remove */
        length = length < *size - at ? length : *size - at;
        memmove(data + at, data + at + length, *size - at - length);
        *size -= length;
        break;
    case 5: /* repeat */
        length = length < *size - at ? length : *size - at;
        if (*size + length <= MAX_SIZE) {
            memmove(data + at + length, data + at, *size - at);
            *size += length;
        }
        break;
    default: /* insert */
        if (*size < MAX_SIZE) {
            memmove(data + at + 1, data + at, *size - at);
            data[at] = (uint8_t)interesting[random_below(sizeof interesting - 1)];
            *size += 1;
        }
    }
}

/* The target gets a block of exactly its size, so that a sanitizer notices reads beyond the end. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        exit(1);
    if (size)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int argc, char **argv)
{
    long mutations = 20000;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        mutations = strtol(argv[2], NULL, 10);
        first = 3;
    }
    for (int i = first; i < argc; i++)
        add_seeds(argv[i]);

    for (size_t i = 0; i < seed_count; i++)
        run(seeds[i].data, seeds[i].size);
    uint8_t *data = malloc(MAX_SIZE);
    if (!data)
        return 1;
    for (long i = 0; i < mutations; i++) {
        const struct seed *seed = &seeds[random_below(seed_count)];
        size_t size = seed->size;
        if (size)
            memcpy(data, seed->data, size);
        for (size_t edits = 1 + random_below(8); edits > 0; edits--)
            mutate(data, &size);
        run(data, size);
    }
    printf("%zu seeds, %ld mutations\n", seed_count, mutations);
    free(data);
    for (size_t i = 0; i < seed_count; i++)
        free(seeds[i].data);
    return 0;
}
