/* Declares the writers of file formats, which mesh_file.c lists: EXTENSION_write for meshes and
 * EXTENSION_write_splats. The caller begins and commits or aborts `writer`. Private to render. */
#ifndef RENDER_FORMATS_H
#define RENDER_FORMATS_H

#include "render/render.h"

/* Writes binary glTF 2.0 (Khronos Group 2021; section 4.4, GLB): one mesh in dataset coordinates,
 * turned to y up by its node's rotation, with the mesh's texture or else its vertex colours, unlit
 * (KHR_materials_unlit). VKN_BAD_INPUT: the file would exceed the format's 4 GiB. */
vkn_status glb_write(struct base_file_writer *writer, const struct render_mesh *mesh);
/* Writes a PLY file in the layout of Kerbl et al. 2023. A comment holds
 * an origin other than 0 0 0. */
vkn_status ply_write_splats(struct base_file_writer *writer, const struct render_splats *splats);

#endif
