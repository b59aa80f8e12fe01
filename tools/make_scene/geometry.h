/* The bundled scenes as signed distances: a toy windmill park on a round board, and a globe and a
 * die at rest behind which a ball is thrown.
 *
 * Coordinates are the scene's own, z up, in the units of the transform matrices; everything lies
 * within 1.3 of the origin. Distances are negative inside, exact outside and never change faster
 * than the point moves: good for sphere tracing (Hart 1996, "Sphere tracing") and as the
 * ground truth of a mesh. Times are 0..1; nothing of the park moves. Stateless. */
#ifndef MAKE_SCENE_GEOMETRY_H
#define MAKE_SCENE_GEOMETRY_H

#include "vec.h"

typedef enum geometry_part {
    PART_BOARD,
    PART_TOWER,
    PART_ROOF,
    PART_SAILS,
    PART_TREE_TALL,
    PART_TREE_SMALL,
    PART_BALL,
    PART_RING,
    PART_FENCE,
    PART_LAMP,
    PART_BLOCK,
    PART_PEARL, /* the small ball inside the glass */
    PART_GLASS, /* last of the park: the only part that is not opaque */
    PART_GLOBE,
    PART_DIE,
    PART_THROWN, /* the one part that moves */
    PART_COUNT
} geometry_part;

/* A scene at a moment. */
typedef struct geometry_scene {
    geometry_part first, end; /* its opaque parts, `end` not among them */
    int glass;                /* whether PART_GLASS is there as well */
    double time;
} geometry_scene;

/* Height of the board's top, on which everything stands. */
#define GEOMETRY_FLOOR (-0.5)

/* A part's position and orientation as far as its texture needs it. */
typedef struct geometry_frame {
    vec3 origin;
    vec3 front; /* unit, horizontal */
    vec3 side;  /* unit, horizontal, = front x up */
} geometry_frame;

/* A sphere around the part. */
typedef struct geometry_bound {
    vec3 centre;
    double radius;
} geometry_bound;

/* The windmill park. */
geometry_scene geometry_park(void);

/* Globe, die and thrown ball at that time. The ball is so far from the others that it never shades
 * them nor they it: it looks the same all the way, and what rests does not change. */
geometry_scene geometry_moving(double time);

/* Signed distance to all opaque parts; the glass does not count. */
double geometry_scene_distance(const geometry_scene *scene, vec3 p);

/* The same of the park. */
double geometry_distance(vec3 p);

/* The same of the scene that moves, at that time. */
double moving_distance(vec3 p, double time);

/* Centre of the thrown ball, a parabola: (-0.6 + 1.2 t, 0.65, -0.1 + 1.4 t (1 - t)). It does not
 * turn: a point p of it at time 0 is at p + moving_centre(t) - moving_centre(0) at time t. */
vec3 moving_centre(double time);

/* Signed distance to one part. */
double geometry_part_distance(geometry_part part, double time, vec3 p);

geometry_bound geometry_part_bound(geometry_part part, double time);
geometry_frame geometry_part_frame(geometry_part part, double time);

/* Unit outward normal of a part at a point on its surface. */
vec3 geometry_part_normal(geometry_part part, double time, vec3 p);

/* Local coordinates: (side, front, up) relative to the frame's origin. */
vec3 geometry_to_local(geometry_frame frame, vec3 p);

/* Parameter t in [0, t_max] of the first point of part on the ray o + t d (d unit), or a negative
 * number where there is none. o is outside the part. */
double geometry_trace(geometry_part part, double time, vec3 o, vec3 d, double t_max);

#endif
