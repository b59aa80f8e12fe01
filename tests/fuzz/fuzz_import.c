/* Fuzzes the readers of other programs' captures. The first byte of the input selects the file: m
 * Metashape's XML, r RealityCapture's table, p a camera of Polycam, d Record3D's metadata.json, s
 * OpenSfM's reconstruction.json, o calibrated cameras of an OPF project, whose other files are
 * fixed. All bytes must be refused or give finite cameras and lenses. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "prepare/import.h"

/* A program: its reader, the file that the input becomes, and what reading starts with. */
static const struct subject {
    char letter;
    vkn_status (*read)(struct import *import);
    const char *input, *start;
} subjects[] = {
    {'m', import_metashape, "cameras.xml", "cameras.xml"},
    {'r', import_realitycapture, "scan.csv", "scan.csv"},
    {'p', import_polycam, "corrected_cameras/1.json", "corrected_cameras"},
    {'d', import_record3d, "metadata.json", "metadata.json"},
    {'s', import_opensfm, "reconstruction.json", "reconstruction.json"},
    {'o', import_opf, "calibrated.json", "project.opf"},
};

static const char project[] =
    "{\"version\": \"1.0\", \"items\": [{\"type\": \"calibration\", \"resources\": [{\"uri\": "
    "\"calibrated.json\", \"format\": \"application/opf-calibrated-cameras+json\"}]}, {\"type\": "
    "\"camera_list\", \"resources\": [{\"uri\": \"list.json\", \"format\": "
    "\"application/opf-camera-list+json\"}]}]}";
static const char list[] =
    "{\"version\": \"1.0\", \"cameras\": [{\"id\": 1, \"uri\": \"1%20a.jpg\"}, {\"id\": 2, "
    "\"uri\": \"2.jpg\"}]}";

/* The folder of the capture; removed at the end. */
static char folder[256];

static char *path_of(const char *name)
{
    char *path = base_path_join(folder, name);
    require(path != NULL, "out of memory");
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    char *path = path_of(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    require(file >= 0 && write(file, data, size) == (ssize_t)size && close(file) == 0,
            "a file cannot be written");
    free(path);
}

static void remove_folder(void)
{
    files_remove(folder);
}

static void make_folder(void)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL)
        parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* disks are far slower */
    snprintf(folder, sizeof(folder), "%s/fuzz_import.XXXXXX", parent);
    require(mkdtemp(folder) != NULL, "no folder");
    atexit(remove_folder);
    char *cameras = path_of("corrected_cameras");
    require(mkdir(cameras, 0777) == 0, "no folder");
    free(cameras);
    write_file("project.opf", project, strlen(project));
    write_file("list.json", list, strlen(list));
}

static void check_lens(const struct import_lens *lens)
{
    const double values[] = {lens->size[0],   lens->size[1],   lens->focal[0], lens->focal[1],
                             lens->center[0], lens->center[1], lens->k1,       lens->k2,
                             lens->k3,        lens->k4,        lens->p1,       lens->p2};
    require(lens->key != NULL && lens->model != NULL, "a lens without a name");
    for (size_t i = 0; i < BASE_COUNT(values); i++)
        require(isfinite(values[i]), "a lens is not finite");
}

static void check(const struct import *import)
{
    for (size_t i = 0; i < import->lens_count; i++)
        check_lens(&import->lenses[i]);
    for (size_t i = 0; i < import->frame_count; i++) {
        const struct import_frame *frame = &import->frames[i];
        require(frame->name != NULL && frame->lens < import->lens_count, "a frame without a lens");
        for (int k = 0; k < 12; k++)
            require(isfinite(frame->pose[k]), "a pose is not finite");
    }
}

static void read_capture(const struct subject *subject)
{
    struct import *import = base_alloc(1, sizeof(*import));
    require(import != NULL, "out of memory");
    import->file = path_of(subject->start);
    import->folder = path_of("");
    import->pictures = path_of("");
    if (subject->read(import) == VKN_OK)
        check(import);
    else
        require_message();
    import_close(&import);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (folder[0] == '\0') {
        make_folder();
        base_log_threshold(BASE_LOG_NOTHING);
    }
    for (size_t i = 0; size > 0 && i < BASE_COUNT(subjects); i++)
        if (subjects[i].letter == (char)data[0]) {
            write_file(subjects[i].input, data + 1, size - 1);
            read_capture(&subjects[i]);
        }
    return 0;
}
