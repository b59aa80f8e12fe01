/* Writes meshes and points as PLY (binary, little-endian), meshes as OBJ; lists all formats. */
#include "render/mesh.h"

#include <string.h>
#include <strings.h>

#include "render/formats.h"
#include "render/file_buffer.h"

/* ---- PLY ----------------------------------------------------------------------------------- */

static void put_ply_header(struct file_buffer *file_buffer, const struct render_mesh *mesh)
{
    static const char *const floats[] = {"x", "y", "z", "nx", "ny", "nz"};
    static const char *const bytes[] = {"red", "green", "blue"};
    FILE *stream = file_buffer->writer->stream;
    fprintf(stream, "ply\nformat binary_little_endian 1.0\ncomment vknerf %s\nelement vertex %zu\n",
            VKNERF_VERSION, mesh->vertex_count);
    for (size_t i = 0; i < BASE_COUNT(floats); i++)
        fprintf(stream, "property %s %s\n",
                i < 3 && render_has_origin(mesh->origin) ? "double" : "float", floats[i]);
    for (size_t i = 0; i < BASE_COUNT(bytes); i++)
        fprintf(stream, "property uchar %s\n", bytes[i]);
    if (mesh->triangle_count > 0)
        fprintf(stream, "element face %zu\nproperty list uchar int vertex_indices\n",
                mesh->triangle_count);
    fprintf(stream, "end_header\n");
}

static void put_ply(struct file_buffer *file_buffer, const struct render_mesh *mesh)
{
    bool is_f32 = !render_has_origin(mesh->origin);
    put_ply_header(file_buffer, mesh);
    for (size_t v = 0; v < mesh->vertex_count && file_buffer->error == 0; v++) {
        const struct MeshVertex *vertex = &mesh->vertices[v];
        file_buffer_reserve(file_buffer);
        for (int i = 0; i < 3 && is_f32; i++)
            file_buffer_f32(file_buffer, vertex->position[i]);
        for (int i = 0; i < 3 && !is_f32; i++)
            file_buffer_f64(file_buffer, mesh->origin[i] + (double)vertex->position[i]);
        for (int i = 0; i < 3; i++)
            file_buffer_f32(file_buffer, vertex->normal[i]);
        for (int i = 0; i < 3; i++)
            file_buffer_u8(file_buffer, vertex->color >> 8 * i);
    }
    for (size_t t = 0; t < mesh->triangle_count && file_buffer->error == 0; t++) {
        file_buffer_reserve(file_buffer);
        file_buffer_u8(file_buffer, 3);
        for (int i = 0; i < 3; i++)
            file_buffer_u32(file_buffer, mesh->triangles[t][i]);
    }
}

/* ---- OBJ ----------------------------------------------------------------------------------- */

/* Writes colours after the coordinates, as MeshLab and Blender read and write them. With an origin,
 * positions have nine more digits than single precision, for the large coordinates. */
static void put_obj(struct file_buffer *file_buffer, const struct render_mesh *mesh)
{
    int digits = render_has_origin(mesh->origin) ? 16 : 7;
    fprintf(file_buffer->writer->stream, "# vknerf %s\n", VKNERF_VERSION);
    for (size_t v = 0; v < mesh->vertex_count && file_buffer->error == 0; v++) {
        const struct MeshVertex *vertex = &mesh->vertices[v];
        const float *n = vertex->normal;
        double rgb[3], p[3];
        for (int i = 0; i < 3; i++) {
            rgb[i] = (vertex->color >> 8 * i & 255u) / 255.0;
            p[i] = mesh->origin[i] + (double)vertex->position[i];
        }
        char *line = file_buffer_reserve(file_buffer);
        file_buffer->used += (size_t)snprintf(
            line, FILE_BUFFER_MAX_ELEMENT, "v %.*g %.*g %.*g %.4f %.4f %.4f\nvn %.4f %.4f %.4f\n",
            digits, p[0], digits, p[1], digits, p[2], rgb[0], rgb[1], rgb[2], (double)n[0],
            (double)n[1], (double)n[2]);
    }
    for (size_t t = 0; t < mesh->triangle_count && file_buffer->error == 0; t++) {
        const uint32_t *corner = mesh->triangles[t];
        char *line = file_buffer_reserve(file_buffer);
        file_buffer->used += (size_t)snprintf(
            line, FILE_BUFFER_MAX_ELEMENT, "f %u//%u %u//%u %u//%u\n", corner[0] + 1, corner[0] + 1,
            corner[1] + 1, corner[1] + 1, corner[2] + 1, corner[2] + 1);
    }
}

/* ---- formats ------------------------------------------------------------------------------- */

static vkn_status write_with(struct base_file_writer *writer, const struct render_mesh *mesh,
                             void (*put)(struct file_buffer *, const struct render_mesh *))
{
    struct file_buffer *file_buffer = file_buffer_open(writer);
    if (!file_buffer)
        return VKN_ERROR;
    put(file_buffer, mesh);
    return file_buffer_close(file_buffer);
}

static vkn_status ply_write(struct base_file_writer *writer, const struct render_mesh *mesh)
{
    return write_with(writer, mesh, put_ply);
}

static vkn_status obj_write(struct base_file_writer *writer, const struct render_mesh *mesh)
{
    return write_with(writer, mesh, put_obj);
}

#define MESH(extension)    {RENDER_MESH, "." #extension, extension##_write, NULL},
#define TEXTURE(extension) {RENDER_TEXTURE, "." #extension, NULL, NULL}, /* as a mesh */
#define POINTS(extension)  {RENDER_POINTS, "." #extension, extension##_write, NULL},
#define SPLATS(extension)  {RENDER_SPLATS, "." #extension, NULL, extension##_write_splats},
static const struct render_format formats[] = {
    VKN_EXPORT_FORMATS(MESH, TEXTURE, POINTS, SPLATS, VKN_NO_FORMAT)};

void render_list_formats(enum render_content content, const char *last,
                         char text[RENDER_FORMATS_TEXT])
{
    size_t left = 0, used = 0;
    for (size_t i = 0; i < BASE_COUNT(formats); i++)
        left += formats[i].content == content;
    for (size_t i = 0; i < BASE_COUNT(formats); i++)
        if (formats[i].content == content)
            used +=
                (size_t)snprintf(text + used, RENDER_FORMATS_TEXT - used, "%s%s", formats[i].end,
                                 --left > 1 ? ", "
                                 : left > 0 ? last
                                            : "");
}

vkn_status render_find_format(enum render_content content, const char *path,
                              const struct render_format **format)
{
    static const char nor[] = " nor ";
    size_t length = strlen(path);
    char ends[RENDER_FORMATS_TEXT];
    for (size_t i = 0; i < BASE_COUNT(formats); i++) {
        size_t end = strlen(formats[i].end);
        if (formats[i].content == content && length > end &&
            strcasecmp(path + length - end, formats[i].end) == 0) {
            *format = &formats[i];
            return VKN_OK;
        }
    }
    render_list_formats(content, nor, ends);
    return base_fail(VKN_BAD_INPUT, "%s: %s %s", path,
                     strstr(ends, nor) ? "ends in neither" : "does not end in", ends);
}
