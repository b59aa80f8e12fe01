/* Renders a bundled scene as a data set in Blender's NeRF format with transparent background: 60
 * training and 12 test views of the windmill park, or 80 and 12 of the moving scene, each at a
 * different time as in D-NeRF. Two more scenes have no alpha: a small object on a white table in a
 * room, with an exposure of its own in each image; and the park on a meadow under the sky, with the
 * sky alone as another picture. The files are the same on every machine, byte
 * for byte. */
#include "output.h"
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *folder;
    int size, check, every, moving, room, outdoors;
} options;

typedef struct split {
    const char *name;
    int count;
    view (*camera)(int index, int count);
    double (*time)(int index, int count); /* NULL: static scene */
} split;

/* Training views have times 0 to 1, test views times in the middle of `count` equal intervals. */
static double time_train(int index, int count)
{
    return (double)index / (count - 1);
}

static double time_test(int index, int count)
{
    return (index + 0.5) / count;
}

static const split resting[] = {{"train", 60, view_train, NULL}, {"test", 12, view_test, NULL}};
static const split moving[] = {{"train", 80, view_moving, time_train},
                               {"test", 12, view_test, time_test}};
static const split outdoors[] = {{"train", 60, view_outdoors, NULL},
                                 {"test", 12, view_outdoors_test, NULL}};

static const char usage[] =
    "usage: make_scene [--moving | --room | --outdoors] [--size N] [--check] [--every N] OUTDIR\n"
    "  --moving    renders the moving scene instead of the static one\n"
    "  --room      renders a small object on a white table in a room, without alpha, with an\n"
    "              exposure that drifts from image to image\n"
    "  --outdoors  renders the park on a meadow under the sky, without alpha, and sky.png, the "
    "sky\n"
    "              by azimuth from x to y (columns) and by height from the zenith to the horizon\n"
    "  --size N    width and height of the images; default 128, with --moving 96\n"
    "  --check     writes nothing; exits with 1 if a file in OUTDIR differs from the rendered one\n"
    "  --every N   renders only the first of every N images, for a quick check\n";

static int emit(const options *o, const char *name, buffer *content)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", o->folder, name);
    int result = -1;
    if (length < 0 || (size_t)length >= sizeof path)
        fprintf(stderr, "make_scene: path too long\n");
    else
        result = o->check ? output_compare(path, content) : output_write(path, content);
    free(content->bytes);
    return result;
}

/* Prints 9 decimals; a value that rounds to zero has no sign. */
static void print_number(buffer *b, double v)
{
    buffer_print(b, "%.9f", v < 5e-10 && v > -5e-10 ? 0.0 : v);
}

static void print_row(buffer *b, double x, double y, double z, double w, const char *end)
{
    const double row[4] = {x, y, z, w};
    buffer_print(b, "                [");
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            buffer_print(b, ", ");
        print_number(b, row[i]);
    }
    buffer_print(b, "]%s\n", end);
}

static geometry_scene scene_at(const options *o, double time)
{
    return o->moving     ? geometry_moving(time)
           : o->room     ? geometry_room()
           : o->outdoors ? geometry_outdoors()
                         : geometry_park();
}

static int emit_cameras(const options *o, const split *s)
{
    const geometry_scene scene = scene_at(o, 0.0);
    buffer b = {0};
    char name[64];
    buffer_print(&b, "{\n    \"camera_angle_x\": %.9f,\n", view_angle(&scene));
    if (o->room || o->outdoors)
        buffer_print(&b, "    \"aabb_scale\": 8,\n");
    buffer_print(&b, "    \"frames\": [\n");
    for (int i = 0; i < s->count; i++) {
        view v = s->camera(i, s->count);
        buffer_print(&b, "        {\n            \"file_path\": \"./%s/r_%d\",\n", s->name, i);
        if (s->time)
            buffer_print(&b, "            \"time\": %.9f,\n", s->time(i, s->count));
        buffer_print(&b, "            \"transform_matrix\": [\n");
        print_row(&b, v.right.x, v.up.x, v.back.x, v.position.x, ",");
        print_row(&b, v.right.y, v.up.y, v.back.y, v.position.y, ",");
        print_row(&b, v.right.z, v.up.z, v.back.z, v.position.z, ",");
        print_row(&b, 0.0, 0.0, 0.0, 1.0, "");
        buffer_print(&b, "            ]\n        }%s\n", i + 1 < s->count ? "," : "");
    }
    buffer_print(&b, "    ]\n}\n");
    snprintf(name, sizeof name, "transforms_%s.json", s->name);
    return emit(o, name, &b);
}

static int emit_pictures(const options *o, const split *s)
{
    unsigned char *rgba = malloc(4 * (size_t)o->size * (size_t)o->size);
    int result = rgba ? 0 : -1;
    if (!rgba)
        fprintf(stderr, "make_scene: out of memory\n");
    for (int i = 0; result == 0 && i < s->count; i += o->every) {
        char name[64];
        buffer b = {0};
        view camera = s->camera(i, s->count);
        geometry_scene scene = scene_at(o, s->time ? s->time(i, s->count) : 0.0);
        view_render(&scene, &camera, o->room ? view_gain(i) : 1.0, o->size, rgba);
        buffer_png(&b, rgba, o->size);
        snprintf(name, sizeof name, "%s/r_%d.png", s->name, i);
        result = emit(o, name, &b);
        int done = i + o->every < s->count ? i + o->every : s->count;
        if (result == 0 && done % 12 < o->every)
            fprintf(stderr, "make_scene: %s %d/%d\n", s->name, done, s->count);
    }
    free(rgba);
    return result;
}

static int emit_split(const options *o, const split *s)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", o->folder, s->name);
    if (length < 0 || (size_t)length >= sizeof path) {
        fprintf(stderr, "make_scene: path too long\n");
        return -1;
    }
    if (!o->check && output_folder(path) != 0)
        return -1;
    return emit_cameras(o, s) != 0 ? -1 : emit_pictures(o, s);
}

static int emit_sky(const options *o)
{
    unsigned char *rgba = malloc(4 * (size_t)o->size * (size_t)o->size);
    buffer b = {0};
    if (!rgba) {
        fprintf(stderr, "make_scene: out of memory\n");
        return -1;
    }
    view_render_sky(o->size, rgba);
    buffer_png(&b, rgba, o->size);
    free(rgba);
    return emit(o, "sky.png", &b);
}

static int parse_number(const char *text, int most, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 1 || value > most)
        return -1;
    *number = (int)value;
    return 0;
}

static int parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0) {
            o->check = 1;
        } else if (strcmp(argv[i], "--moving") == 0) {
            o->moving = 1;
        } else if (strcmp(argv[i], "--room") == 0) {
            o->room = 1;
        } else if (strcmp(argv[i], "--outdoors") == 0) {
            o->outdoors = 1;
        } else if (strcmp(argv[i], "--size") == 0 && i + 1 < argc) {
            if (parse_number(argv[++i], 4096, &o->size) != 0)
                return -1;
        } else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
            if (parse_number(argv[++i], 60, &o->every) != 0)
                return -1;
        } else if (argv[i][0] != '-' && !o->folder) {
            o->folder = argv[i];
        } else {
            return -1;
        }
    }
    if (o->size == 0)
        o->size = o->moving ? 96 : 128;
    return o->folder && o->moving + o->room + o->outdoors <= 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
    options o = {.every = 1};
    if (parse(&o, argc, argv) != 0) {
        fputs(usage, stderr);
        return 2;
    }
    if (!o.check && output_folder(o.folder) != 0)
        return 1;
    const split *splits = o.moving ? moving : o.outdoors ? outdoors : resting;
    for (int i = 0; i < 2; i++) {
        if (emit_split(&o, &splits[i]) != 0)
            return 1;
    }
    return o.outdoors && emit_sky(&o) != 0 ? 1 : 0;
}
