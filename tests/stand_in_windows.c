/* stand_in_windows: acts for the shell scripts by which tests replace COLMAP, ffmpeg and vknerf,
 * because Windows starts no scripts. PROGRAM.exe does what the script PROGRAM beside it does: that
 * of fake_colmap.sh, fake_vknerf.sh, test_video.c, test_frames.c or test_prepare_hostile.c. */
#include <dirent.h>
#include <process.h>
#include <unistd.h>
#include <windows.h>

#include "base/base.h"

static const char *here; /* the folder of the program */
static char *fake;       /* the fault that the file `fake` selects */

static char *beside(const char *name)
{
    return base_path_join(here, name);
}

static FILE *opened(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(99);
    }
    return file;
}

static void write_file(const char *path, const char *mode, const void *data, size_t size)
{
    FILE *file = opened(path, mode);
    fwrite(data, 1, size, file);
    if (fclose(file) != 0)
        exit(98);
}

static char *read_file(const char *path)
{
    char *data = NULL;
    size_t size = 0;
    return base_file_read(path, 1 << 20, &data, &size) == VKN_OK ? data : base_format("%s", "");
}

/* ---- ffmpeg ---------------------------------------------------------------------------------- */

static int act_for_ffmpeg(char **arguments, int count, bool records)
{
    static char data[1 << 16];
    const char *how = getenv("FAKE") != NULL ? getenv("FAKE") : "", *video = arguments[count - 1];
    struct base_text text = {0};
    size_t bytes = 0, got = 0;
    if (strncmp(video, "file:", 5) == 0)
        video += 5;
    if (!records && strstr(video, how) != NULL) {
        fprintf(stderr, "no luck\n");
        return 1;
    }
    for (int i = 1; i < count; i++)
        base_text_add(&text, "%s\n", arguments[i]);
    if (records)
        write_file(beside("arguments"), "w", text.data, text.size);
    if (strcmp(how, "deaf") == 0 || strcmp(how, "early") == 0)
        return how[0] == 'd';
    FILE *file = opened(video, "w");
    for (; (got = fread(data, 1, sizeof data, stdin)) > 0; bytes += got)
        if (!records)
            fwrite(data, 1, got, file);
    if (records)
        fputs("video\n", file);
    fclose(file);
    char *number = base_format("%zu", bytes);
    write_file(records ? beside("bytes") : "NUL", "w", number, strlen(number));
    if (records && strcmp(how, "fails") == 0) {
        fprintf(stderr, "\nno space\nthen this\nlast words\n\n");
        return 3;
    }
    return 0;
}

/* ---- COLMAP ---------------------------------------------------------------------------------- */

static bool fault_is(const char *name, const char *stage)
{
    size_t size = strlen(name);
    return strncmp(fake, name, size) == 0 && fake[size] == ' ' &&
           strcmp(fake + size + 1, stage) == 0;
}

static int show_help(void)
{
    static const char *const names[] = {"image_path",
                                        "output_path",
                                        "match_list_path",
                                        "match_type",
                                        "ImageReader.single_camera",
                                        "ImageReader.camera_model",
                                        "ImageReader.camera_params",
                                        "ImageReader.mask_path",
                                        "ImageReader.existing_camera_id",
                                        "SiftExtraction.peak_threshold",
                                        "Mapper.min_model_size"};
    bool is_newer = strncmp(fake, "newer", 5) == 0;
    printf("  --%sExtraction.use_gpu arg (=1)\n", is_newer ? "Feature" : "Sift");
    fprintf(is_newer ? stderr : stdout, "  --%sMatching.use_gpu arg (=1)\n",
            is_newer ? "Feature" : "Sift");
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        printf("  --%s arg\n", names[i]);
    return 0;
}

/* Waits to be ended: itself, or a child process does. */
static void wait_to_be_ended(const char *program, const char *stage)
{
    intptr_t waiting = getpid();
    bool is_nested = fault_is("nested", stage);
    if (!is_nested && !fault_is("slow", stage))
        return;
    if (is_nested) {
        char *name = base_format("\"%s\"", program);
        intptr_t child = _spawnl(_P_NOWAIT, program, name, "sleep", NULL);
        waiting = GetProcessId((HANDLE)child);
        free(name);
    }
    char *number = base_format("%lld\n", (long long)waiting);
    write_file(beside("waiting"), "w", number, strlen(number));
    sleep(60);
}

static int count_files(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char *name = base_path_join(path, entry->d_name);
        if (entry->d_name[0] != '.')
            count += base_is_folder(name) ? count_files(name) : 1;
        free(name);
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* Writes a model of `count` images without names, a count of no cameras, and 256 points of zeros.
 */
static void write_model(const char *output, const char *name, int count, int less)
{
    static const char zeros[13056];
    char *folder = base_path_join(output, name), *images = base_path_join(folder, "images.bin");
    char *cameras = base_path_join(folder, "cameras.bin");
    char *points = base_path_join(folder, "points3D.bin");
    mkdir(folder, 0777);
    write_file(cameras, "w", zeros, 8);
    write_file(points, "w", "\0\1\0\0\0\0\0", 8);
    write_file(points, "a", zeros, sizeof zeros);
    char *bytes = calloc((size_t)count + 1, 73);
    bytes[0] = (char)count;
    for (int i = 0; i < count; i++)
        bytes[8 + 73 * i] = (char)(i + 1);
    write_file(images, "w", bytes, 8 + 73 * (size_t)count - (size_t)less);
    free(bytes);
}

static int map(const char *program, int count, const char *output, const char *database)
{
    if (strncmp(fake, "few ", 4) == 0) {
        char *end;
        count = (int)strtol(fake + 4, &end, 10);
        if (*end == ' ' && strstr(database, "/2/") != NULL)
            count = (int)strtol(end, NULL, 10);
    }
    wait_to_be_ended(program, "mapper");
    if (count == 0) {
        fprintf(stderr, "ERROR: failed to create sparse model\n");
        return 1;
    }
    for (int i = 1; i <= count; i++)
        printf("Registering image #%d (%d)\n", i, i);
    write_model(output, "0", count, strcmp(fake, "cut off") == 0 ? 9 : 0);
    write_model(output, "1", 2, 0);
    return 0;
}

/* Makes the record of the preparation a folder. */
static void spoil_record(const char *database)
{
    const char *end = strstr(database, "/prepare/");
    char *record = base_format("%.*s/prepare.json", (int)(end - database), database);
    char *inside = base_path_join(record, "in the way");
    unlink(record);
    base_make_folder(inside);
}

static const char *value_of(char **arguments, int count, const char *option)
{
    for (int i = 2; i + 1 < count; i++)
        if (strcmp(arguments[i], option) == 0)
            return arguments[i + 1];
    return "";
}

static int act_for_colmap(char **arguments, int count)
{
    const char *stage = arguments[1], *images = value_of(arguments, count, "--image_path");
    const char *database = value_of(arguments, count, "--database_path");
    struct base_text call = {0};
    if (count > 2 && strcmp(arguments[2], "-h") == 0)
        return show_help();
    for (int i = 1; i < count; i++)
        base_text_add(&call, "%s%s", arguments[i], i + 1 < count ? " " : "\n");
    write_file(beside("calls"), "a", call.data, call.size);
    if (fault_is("fails", stage)) {
        fprintf(stderr, "so far so good\nERROR: no such luck\nbye\n");
        return 3;
    }
    if (fault_is("spoils", stage))
        spoil_record(database);
    if (fault_is("full", stage))
        printf("SQLite error [./src/base/database.cc, line 989]: database or disk is full\n");
    int pictures = images[0] != '\0' ? count_files(images) : 0;
    if (strcmp(stage, "mapper") == 0)
        return map(arguments[0], pictures, value_of(arguments, count, "--output_path"), database);
    if (strcmp(stage, "feature_extractor") != 0) {
        printf("Matching block [1/2, 1/2] in 0.1s\n");
        wait_to_be_ended(arguments[0], stage);
        printf("garbage [0/0] [7/3] [1/99999999999999999999] [\n");
        return 0;
    }
    write_file(database, "a", "", 0);
    for (int i = 1; i <= pictures; i++) {
        printf("Processed file [%d/%d]\n", i, pictures);
        fflush(stdout);
        if (i == 4)
            wait_to_be_ended(arguments[0], stage);
    }
    return 0;
}

/* ---- vknerf ---------------------------------------------------------------------------------- */

/* Returns the value of a variable of the environment that the test sets, or `other`. */
static const char *variable(const char *name, const char *other)
{
    const char *value = getenv(name);
    return value != NULL ? value : other;
}

static int act_for_training(const char *out)
{
    const char *psnr = variable("FAKE_PSNR", ""), *name = base_path_name(out);
    bool is_other = variable("FAKE_BITS", "")[0] == '1' && strcmp(name, "second") == 0;
    char *from = base_format("%s/%s.safetensors", variable("FAKE_CHECKPOINTS", ""),
                             is_other ? "second" : "first");
    char *summary = base_format("{\"psnr\": %s, \"path\": \"fake\", \"passes\": []}\n", psnr);
    char *data = NULL;
    size_t size = 0;
    if (psnr[0] == '\0')
        return 3;
    write_file(base_path_join(out, "summary.json"), "w", summary, strlen(summary));
    if (base_file_read(from, 1 << 20, &data, &size) != VKN_OK)
        return 97;
    write_file(base_path_join(out, "checkpoint.safetensors"), "w", data, size);
    return 0;
}

static int act_for_vknerf(char **arguments, int count)
{
    const char *command = arguments[1], *out = value_of(arguments, count, "--out");
    bool is_training = strcmp(command, "train") == 0;
    if (strcmp(command, "certify") == 0 &&
        strcmp(value_of(arguments, count, "--part"), "device") == 0)
        printf("{\"device\": {\"name\": \"fake\", \"type\": \"cpu\", \"driver\": \"none\", "
               "\"float16\": true, \"cooperative_matrix\": false}}\n");
    if (!is_training && strcmp(command, "bench") != 0)
        return 0;
    base_make_folder(out);
    if (is_training)
        return act_for_training(out);
    char *results =
        base_format("{\"results\": [{\"case\": \"c\", \"path\": \"p\", \"fault\": \"%s\"}]}\n",
                    variable("FAKE_FAULT", ""));
    write_file(base_path_join(out, "bench.json"), "w", results, strlen(results));
    return (int)strtol(variable("FAKE_STATUS", "0"), NULL, 10);
}

/* Writes the file that a script of test_prepare_hostile.c names, beside the script. */
static int act_for_cat(const char *name)
{
    char *data = NULL, *path = base_format("%s/%.*s", here, (int)strcspn(name, "\""), name);
    size_t size = 0;
    if (base_file_read(path, 1 << 20, &data, &size) != VKN_OK)
        return 96;
    return fwrite(data, 1, size, stdout) == size ? 0 : 95;
}

int main(int count, char **arguments)
{
    char program[4096] = "";
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    if (count < 2 || size < 0)
        return 2;
    if (strcmp(arguments[1], "sleep") == 0)
        return (int)sleep(60);
    here = base_path_folder(program);
    fake = read_file(beside("fake"));
    arguments[0] = program;
    char *script = base_format("%.*s", (int)size - 4, program), *text = read_file(script);
    _setmode(0, O_BINARY);
    _setmode(1, O_BINARY);
    const char *cat = "exec /bin/cat \"${0%/*}/", *shown = strstr(text, cat);
    if (shown != NULL)
        return act_for_cat(shown + strlen(cat));
    if (strstr(text, "COLMAP") != NULL)
        return act_for_colmap(arguments, count);
    if (strstr(text, "FAKE_PSNR") != NULL)
        return act_for_vknerf(arguments, count);
    return act_for_ffmpeg(arguments, count, strstr(text, "arguments") != NULL);
}
