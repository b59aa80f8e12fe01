/* Writes meshes as binary glTF 2.0. */
#include "render/formats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "render/mesh.h"
#include "render/file_buffer.h"
#include "scene/scene.h"
#include "shared/layout.h"

/* OpenGL's constants, which glTF uses. */
enum {
    GL_UNSIGNED_SHORT = 5123,
    GL_UNSIGNED_INT = 5125,
    GL_FLOAT = 5126,
    GL_LINEAR = 9729,
    GL_LINEAR_MIPMAP_LINEAR = 9987,
    GL_CLAMP_TO_EDGE = 33071,
    GL_ARRAY_BUFFER = 34962,
    GL_ELEMENT_ARRAY_BUFFER = 34963
};

#define MAGIC      0x46546c67u /* "glTF" */
#define CHUNK_JSON 0x4e4f534au
#define CHUNK_BIN  0x004e4942u

/* Buffer views of the binary chunk, padded to 4 bytes. COLORS holds any texture coordinates. */
enum view { POSITIONS, NORMALS, COLORS, INDICES, IMAGE, BUFFER_VIEWS };

struct glb {
    const struct render_mesh *mesh;
    uint8_t *png; /* the texture; NULL: the vertices have colours */
    uint64_t sizes[BUFFER_VIEWS];
    char *json;
};

/* ---- the JSON chunk ------------------------------------------------------------------------ */

static cJSON *add_to(cJSON *object, const char *list)
{
    cJSON *array = cJSON_GetObjectItem(object, list), *item = cJSON_CreateObject();
    if (!array)
        array = cJSON_AddArrayToObject(object, list);
    cJSON_AddItemToArray(array, item);
    return item;
}

static void add_numbers(cJSON *object, const char *name, const double *numbers, int count)
{
    cJSON_AddItemToObject(object, name, cJSON_CreateDoubleArray(numbers, count));
}

/* Computes the quaternion x, y, z, w that rotates `up` to +y: (up x y, 1 + up . y), normalised; for
 * up = -y a half turn around x. */
static void upright(const double up[3], double rotation[4])
{
    double w = 1.0 + up[1], length = sqrt(up[0] * up[0] + up[2] * up[2] + w * w);
    const double flip[4] = {1, 0, 0, 0}, turn[4] = {-up[2], 0, up[0], w};
    for (int i = 0; i < 4; i++)
        rotation[i] = length < 1e-6 ? flip[i] : turn[i] / length;
}

/* Returns the mesh's node: `parent`, or a child that translates by an origin other than 0 0 0. */
static cJSON *add_origin(cJSON *root, cJSON *parent, const double origin[3])
{
    const int second = 1;
    if (!render_has_origin(origin))
        return parent;
    cJSON *node = add_to(root, "nodes");
    cJSON_AddItemToObject(parent, "children", cJSON_CreateIntArray(&second, 1));
    cJSON_AddStringToObject(node, "name", "origin");
    add_numbers(node, "translation", origin, 3);
    return node;
}

static void add_node(cJSON *root, const struct render_mesh *mesh)
{
    double rotation[4];
    cJSON *scene = add_to(root, "scenes"), *node = add_to(root, "nodes");
    const int first = 0;
    cJSON_AddNumberToObject(root, "scene", 0);
    cJSON_AddItemToObject(scene, "nodes", cJSON_CreateIntArray(&first, 1));
    cJSON_AddStringToObject(node, "name", "field");
    upright(mesh->up, rotation);
    add_numbers(node, "rotation", rotation, 4);
    node = add_origin(root, node, mesh->origin);
    if (mesh->triangle_count > 0)
        cJSON_AddNumberToObject(node, "mesh", 0);
}

static void add_texture(cJSON *root, cJSON *pbr)
{
    cJSON *texture = add_to(root, "textures"), *image = add_to(root, "images");
    cJSON *sampler = add_to(root, "samplers");
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(pbr, "baseColorTexture"), "index", 0);
    cJSON_AddNumberToObject(texture, "sampler", 0);
    cJSON_AddNumberToObject(texture, "source", 0);
    cJSON_AddNumberToObject(image, "bufferView", IMAGE);
    cJSON_AddStringToObject(image, "mimeType", "image/png");
    cJSON_AddNumberToObject(sampler, "magFilter", GL_LINEAR);
    cJSON_AddNumberToObject(sampler, "minFilter", GL_LINEAR_MIPMAP_LINEAR);
    cJSON_AddNumberToObject(sampler, "wrapS", GL_CLAMP_TO_EDGE);
    cJSON_AddNumberToObject(sampler, "wrapT", GL_CLAMP_TO_EDGE);
}

static void add_material(cJSON *root, const struct glb *glb)
{
    static const char unlit[] = "KHR_materials_unlit";
    cJSON *material = add_to(root, "materials");
    cJSON *pbr = cJSON_AddObjectToObject(material, "pbrMetallicRoughness");
    cJSON_AddNumberToObject(pbr, "metallicFactor", 0);
    cJSON_AddNumberToObject(pbr, "roughnessFactor", 1);
    cJSON_AddBoolToObject(material, "doubleSided", true); /* meshes may be open */
    cJSON_AddObjectToObject(cJSON_AddObjectToObject(material, "extensions"), unlit);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(root, "extensionsUsed"), cJSON_CreateString(unlit));
    if (glb->png)
        add_texture(root, pbr);
}

static void add_primitive(cJSON *root, const struct glb *glb)
{
    cJSON *primitive = add_to(add_to(root, "meshes"), "primitives");
    cJSON *attributes = cJSON_AddObjectToObject(primitive, "attributes");
    cJSON_AddNumberToObject(attributes, "POSITION", POSITIONS);
    cJSON_AddNumberToObject(attributes, "NORMAL", NORMALS);
    cJSON_AddNumberToObject(attributes, glb->png ? "TEXCOORD_0" : "COLOR_0", COLORS);
    cJSON_AddNumberToObject(primitive, "indices", INDICES);
    cJSON_AddNumberToObject(primitive, "material", 0);
}

static void add_bounds(cJSON *accessor, const struct render_mesh *mesh)
{
    double low[3], high[3];
    for (int i = 0; i < 3; i++) {
        float least = INFINITY, most = -INFINITY;
        for (size_t v = 0; v < mesh->vertex_count; v++) {
            least = fminf(least, mesh->vertices[v].position[i]);
            most = fmaxf(most, mesh->vertices[v].position[i]);
        }
        low[i] = (double)least;
        high[i] = (double)most;
    }
    add_numbers(accessor, "min", low, 3);
    add_numbers(accessor, "max", high, 3);
}

static void add_accessors(cJSON *root, const struct glb *glb)
{
    const struct render_mesh *mesh = glb->mesh;
    const struct {
        const char *type;
        int component;
        size_t count;
    } rows[] = {
        {"VEC3", GL_FLOAT, mesh->vertex_count},
        {"VEC3", GL_FLOAT, mesh->vertex_count},
        {glb->png ? "VEC2" : "VEC4", glb->png ? GL_FLOAT : GL_UNSIGNED_SHORT, mesh->vertex_count},
        {"SCALAR", GL_UNSIGNED_INT, 3 * mesh->triangle_count}};
    for (int i = 0; i < (int)BASE_COUNT(rows); i++) {
        cJSON *accessor = add_to(root, "accessors");
        cJSON_AddNumberToObject(accessor, "bufferView", i);
        cJSON_AddNumberToObject(accessor, "componentType", rows[i].component);
        cJSON_AddNumberToObject(accessor, "count", (double)rows[i].count);
        cJSON_AddStringToObject(accessor, "type", rows[i].type);
        if (rows[i].component == GL_UNSIGNED_SHORT)
            cJSON_AddBoolToObject(accessor, "normalized", true);
        if (i == POSITIONS)
            add_bounds(accessor, mesh);
    }
}

static uint64_t padded(uint64_t size)
{
    return (size + 3) / 4 * 4;
}

static uint64_t add_views(cJSON *root, const struct glb *glb)
{
    uint64_t offset = 0;
    for (int i = 0; i < BUFFER_VIEWS && glb->sizes[i] > 0; i++) {
        cJSON *view = add_to(root, "bufferViews");
        cJSON_AddNumberToObject(view, "buffer", 0);
        cJSON_AddNumberToObject(view, "byteOffset", (double)offset);
        cJSON_AddNumberToObject(view, "byteLength", (double)glb->sizes[i]);
        if (i != IMAGE)
            cJSON_AddNumberToObject(view, "target",
                                    i == INDICES ? GL_ELEMENT_ARRAY_BUFFER : GL_ARRAY_BUFFER);
        offset += padded(glb->sizes[i]);
    }
    cJSON_AddNumberToObject(add_to(root, "buffers"), "byteLength", (double)offset);
    return offset;
}

/* Writes an empty mesh as a node without a mesh, because glTF allows no empty arrays. */
static vkn_status make_json(struct glb *glb, uint64_t *binary)
{
    cJSON *root = cJSON_CreateObject(), *asset = cJSON_AddObjectToObject(root, "asset");
    cJSON_AddStringToObject(asset, "version", "2.0");
    cJSON_AddStringToObject(asset, "generator", "vknerf " VKNERF_VERSION);
    add_node(root, glb->mesh);
    *binary = 0;
    if (glb->mesh->triangle_count > 0) {
        add_primitive(root, glb);
        add_material(root, glb);
        add_accessors(root, glb);
        *binary = add_views(root, glb);
    }
    glb->json = base_json_print_unformatted(root);
    cJSON_Delete(root);
    return glb->json ? VKN_OK : VKN_ERROR;
}

/* ---- the binary chunk ---------------------------------------------------------------------- */

/* Tabulates sRGB bytes (IEC 61966-2-1) as linear 16-bit values, which COLOR_0 requires. */
static void make_linear(uint32_t linear[256])
{
    for (int i = 0; i < 256; i++)
        linear[i] = (uint32_t)lround(scene_linear_light(i / 255.0) * 65535.0);
}

static void put_vectors(struct file_buffer *file_buffer, const struct render_mesh *mesh,
                        enum view view)
{
    for (size_t v = 0; v < mesh->vertex_count && file_buffer->error == 0; v++) {
        const struct MeshVertex *vertex = &mesh->vertices[v];
        file_buffer_reserve(file_buffer);
        for (int i = 0; i < 3; i++)
            file_buffer_f32(file_buffer, view == NORMALS ? vertex->normal[i] : vertex->position[i]);
    }
}

static void put_colors(struct file_buffer *file_buffer, const struct render_mesh *mesh)
{
    uint32_t linear[256];
    make_linear(linear);
    for (size_t v = 0; v < mesh->vertex_count && file_buffer->error == 0; v++) {
        uint32_t color = mesh->vertices[v].color;
        file_buffer_reserve(file_buffer);
        if (mesh->texels) {
            for (int i = 0; i < 2; i++)
                file_buffer_f32(file_buffer, mesh->texels[v][i] / (float)mesh->texture_size);
            continue;
        }
        file_buffer_u32(file_buffer, linear[color & 255u] | linear[color >> 8 & 255u] << 16);
        file_buffer_u32(file_buffer, linear[color >> 16 & 255u] | 0xffff0000u);
    }
}

static void put_indices(struct file_buffer *file_buffer, const struct render_mesh *mesh)
{
    for (size_t t = 0; t < mesh->triangle_count && file_buffer->error == 0; t++) {
        file_buffer_reserve(file_buffer);
        for (int i = 0; i < 3; i++)
            file_buffer_u32(file_buffer, mesh->triangles[t][i]);
    }
}

static void put_binary(struct file_buffer *file_buffer, const struct glb *glb)
{
    put_vectors(file_buffer, glb->mesh, POSITIONS);
    put_vectors(file_buffer, glb->mesh, NORMALS);
    put_colors(file_buffer, glb->mesh);
    put_indices(file_buffer, glb->mesh);
    file_buffer_bytes(file_buffer, glb->png, glb->sizes[IMAGE]);
    file_buffer_bytes(file_buffer, "\0\0\0", padded(glb->sizes[IMAGE]) - glb->sizes[IMAGE]);
}

/* ---- the file ------------------------------------------------------------------------------ */

static vkn_status put_all(struct base_file_writer *writer, const struct glb *glb, uint64_t binary)
{
    uint64_t json = strlen(glb->json);
    uint64_t total = 12 + 8 + padded(json) + (binary ? 8 + binary : 0);
    if (total > UINT32_MAX)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %.1f GiB are more than the 4 that .glb can hold; a lower "
                         "--resolution makes less, or .ply holds it",
                         writer->path, (double)total / 0x1p30);
    struct file_buffer *file_buffer = file_buffer_open(writer);
    if (!file_buffer)
        return VKN_ERROR;
    file_buffer_u32(file_buffer, MAGIC);
    file_buffer_u32(file_buffer, 2);
    file_buffer_u32(file_buffer, (uint32_t)total);
    file_buffer_u32(file_buffer, (uint32_t)padded(json));
    file_buffer_u32(file_buffer, CHUNK_JSON);
    file_buffer_bytes(file_buffer, glb->json, json);
    file_buffer_bytes(file_buffer, "   ", padded(json) - json);
    if (binary > 0) {
        file_buffer_u32(file_buffer, (uint32_t)binary);
        file_buffer_u32(file_buffer, CHUNK_BIN);
        put_binary(file_buffer, glb);
    }
    return file_buffer_close(file_buffer);
}

vkn_status glb_write(struct base_file_writer *writer, const struct render_mesh *mesh)
{
    struct glb glb = {.mesh = mesh};
    uint64_t binary = 0;
    size_t png = 0;
    if (mesh->texture)
        BASE_TRY(scene_image_encode_png(mesh->texture, mesh->texture_size, mesh->texture_size, 3,
                                        &glb.png, &png));
    const uint64_t sizes[BUFFER_VIEWS] = {12 * mesh->vertex_count, 12 * mesh->vertex_count,
                                          8 * mesh->vertex_count, 12 * mesh->triangle_count, png};
    memcpy(glb.sizes, sizes, sizeof sizes);
    vkn_status status = make_json(&glb, &binary);
    if (status == VKN_OK)
        status = put_all(writer, &glb, binary);
    free(glb.json);
    free(glb.png);
    return status;
}
