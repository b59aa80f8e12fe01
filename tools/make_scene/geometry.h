/* Declares the signed distance functions of the bundled scenes: a toy windmill park on a round
 * board, and a globe and a die at rest with a ball that is thrown behind them.
 *
 * Coordinates are those of the transform matrices, z up; everything is within 1.3 of the origin.
 * Distances are negative inside, exact outside, and their gradient is at most 1, as sphere tracing
 * needs (Hart 1996, "Sphere tracing"); tests use them as the ground truth of meshes. Times are
 * 0..1; nothing in the park moves. */
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
    PART_GLASS, /* the only part that is not opaque; last of the park */
    PART_GLOBE,
    PART_DIE,
    PART_THROWN, /* the only part that moves */
    PART_COUNT
} geometry_part;

/* A scene at a time. */
typedef struct geometry_scene {
    geometry_part first, end; /* its opaque parts: first .. end - 1 */
    int glass;                /* whether it also has PART_GLASS */
    int room;                 /* whether it stands on a table in a room */
    int outdoors;             /* whether it stands on a meadow under the sky */
    double time;
} geometry_scene;

/* z of the board's top, on which everything stands. */
#define GEOMETRY_FLOOR (-0.5)

/* z of the meadow below the board. */
#define GEOMETRY_GROUND (-0.62)

/* Position and orientation of a part. */
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

/* Returns the windmill park. */
geometry_scene geometry_park(void);

/* Returns globe, die and thrown ball at a time. The ball is so far from the others that no part
 * shades another one: the ball looks the same at all times, and the others do not change. */
geometry_scene geometry_moving(double time);

/* Returns globe and die on a white table in a room. Distance functions leave out table and room. */
geometry_scene geometry_room(void);

/* Returns the park without the glass, on a meadow under the sky. Distance functions leave out the
 * meadow, a plane at z = GEOMETRY_GROUND. */
geometry_scene geometry_outdoors(void);

/* Returns the signed distance to the nearest opaque part, without the glass. */
double geometry_scene_distance(const geometry_scene *scene, vec3 p);

/* Returns the same for the park. */
double geometry_distance(vec3 p);

/* Returns the same for the moving scene at a time. */
double moving_distance(vec3 p, double time);

/* Returns the centre of the thrown ball: (-0.6 + 1.2 t, 0.65, -0.1 + 1.4 t (1 - t)). The ball does
 * not rotate: its point p at time 0 is at p + moving_centre(t) - moving_centre(0) at time t. */
vec3 moving_centre(double time);

/* Returns the signed distance to a part. */
double geometry_part_distance(geometry_part part, double time, vec3 p);

geometry_bound geometry_part_bound(geometry_part part, double time);
geometry_frame geometry_part_frame(geometry_part part, double time);

/* Returns the unit outward normal of a part at a point on its surface. */
vec3 geometry_part_normal(geometry_part part, double time, vec3 p);

/* Converts p to local coordinates (side, front, up) relative to the frame's origin. */
vec3 geometry_to_local(geometry_frame frame, vec3 p);

/* Returns t in [0, t_max] of the first intersection of the ray o + t d (d unit, o outside) with a
 * part, or a negative number if there is none. */
double geometry_trace(geometry_part part, double time, vec3 o, vec3 d, double t_max);

#endif
