/* Inside of the render room: meshes as binary glTF 2.0 (Khronos Group 2021; section 4.4, GLB). */
#ifndef RENDER_GLB_H
#define RENDER_GLB_H

#include "render/render.h"

/* One mesh, y up by its node's rotation: positions and normals are those of the mesh. With its
 * texture where it has one, else with the colours of its vertices, and unlit (KHR_materials_unlit).
 * VKN_BAD_INPUT: more than the format's 4 GiB. */
vkn_status glb_write(struct base_file_writer *writer, const struct render_mesh *mesh);

#endif
