/* Inside of the render room: writers of files, called EXTENSION_write, and EXTENSION_write_splats.
 * The table of formats in mesh_file.c lists them. Each takes a writer that the caller has begun,
 * and commits or aborts. */
#ifndef RENDER_FORMATS_H
#define RENDER_FORMATS_H

#include "render/render.h"

/* Writes binary glTF 2.0 (Khronos Group 2021; section 4.4, GLB): one mesh, y up by its node's
 * rotation: positions and normals are those of the mesh. With its texture where it has one, else
 * with the colours of its vertices, and unlit (KHR_materials_unlit). VKN_BAD_INPUT: more than the
 * format's 4 GiB. */
vkn_status glb_write(struct base_file_writer *writer, const struct render_mesh *mesh);
/* Writes a PLY file in the layout of Kerbl et al. 2023; a comment says an origin. */
vkn_status ply_write_splats(struct base_file_writer *writer, const struct render_splats *splats);

#endif
