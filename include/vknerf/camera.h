/* vknerf/camera.h: where a view is seen from, and what is seen. */
#ifndef VKNERF_CAMERA_H
#define VKNERF_CAMERA_H

#include <vknerf/error.h>

VKN_BEGIN_DECLARATIONS

/* What a lens makes of a ray: of the angle theta between it and the viewing axis, before its
 * distortion; or of its longitude and latitude. */
enum vkn_lens {
    VKN_LENS_PERSPECTIVE, /* tan(theta), distorted by OpenCV's k1 k2 k3 (radial) and p1 p2
                             (tangential)
                             ("Camera Calibration and 3D Reconstruction"); zeros: a pinhole */
    VKN_LENS_FISHEYE, /* theta, distorted to theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4
                         theta^8) (OpenCV's fisheye, Kannala and Brandt 2006) */
    VKN_LENS_EQUIRECTANGULAR, /* since 0.2: a panorama: u is the longitude, from the viewing axis to
                             the right, and -v the latitude, from the camera's horizontal plane
                             upwards, both in radians, -pi to pi and -pi/2 to pi/2: the ray's
                             direction is (sin u cos v, -sin v, -cos u cos v) in the camera's axes.
                             It has no distortion */
    VKN_LENS_THIN_PRISM_FISHEYE /* since 0.2: theta, as (u, v) of that length in the direction of
                             the ray, distorted by a perspective lens's k1 k2 k3 p1 p2, by k4 in the
                             radial part, and by sx1 and sy1 times theta^2 in u and in v (COLMAP's
                             THIN_PRISM_FISHEYE) */
};

/* Pixel (x, y), y down, has its centre at (x + 0.5, y + 0.5); its ideal coordinates are u = (x +
 * 0.5 - center_x) / focal_x, v likewise. The camera looks down its -z, y up (OpenGL, Blender). */
struct vkn_camera {
    size_t size;            /* see <vknerf/api.h> */
    uint32_t width, height; /* pixels */
    /* Pixels, of a fisheye and a panorama to a radian; focal_y 0: as focal_x; both 0 of a
     * panorama: all around, width / (2 pi) and height / pi. */
    double focal_x, focal_y;
    double center_x, center_y; /* principal point, pixels; both 0: the picture's middle */
    enum vkn_lens lens;        /* what its u and v are */
    /* Distortion; p1 p2 not of a fisheye, k4 not of a perspective lens. */
    double k1, k2, p1, p2, k3, k4;
    double time;     /* 0..1 in scenes that move */
    double pose[12]; /* camera to world, 3 rows x 4 columns, the last one the position; in
                        the dataset's axes and units */
    double sx1, sy1; /* since 0.2: distortion of a thin prism fisheye */
};

/* At `eye`, looking at `target`, with `up` upwards (any roll when it looks along that), all 3
 * numbers in the dataset's axes and units: sets the pose alone. VKN_BAD_INPUT where the target is
 * the eye. */
VKN_API vkn_status vkn_camera_look_at(struct vkn_camera *camera, const double *eye,
                                      const double *target, const double *up);

/* Arrays of width * height, row by row from the top; the library's, until vkn_picture_free. Those
 * that a picture does not have are NULL. */
struct vkn_picture {
    uint32_t width, height; /* pixels */
    float *color;   /* rgb, 3 per pixel, sRGB, on the background (or none: straight), 0..1 */
    float *opacity; /* 0..1 */
    float *depth;   /* along the viewing axis (of a fisheye or a panorama: from the camera), in
                       dataset units; 0 where   nothing was hit. Not of photographs */
    float *normal;  /* of the surface, 3 per pixel: unit length, in the dataset's axes, towards the
                       camera; 0 where nothing was hit. Where vkn_renderer_enable_normals was called
                     */
    uint8_t *used;  /* of photographs alone: 1 for pixels that count, 0 for those that masks or the
                       lens's reach leave out */
};
/* Nulls *picture, and takes NULL. */
VKN_API void vkn_picture_free(struct vkn_picture **picture);

/* What a picture holds. */
enum vkn_map {
    VKN_MAP_COLOR,   /* 3 per pixel */
    VKN_MAP_OPACITY, /* 1 per pixel */
    VKN_MAP_DEPTH,   /* 1 per pixel */
    VKN_MAP_NORMAL,  /* 3 per pixel */
    VKN_MAP_RGBA     /* since 0.2: colour and opacity, of a picture that is transparent */
};
/* One of its maps as a PNG file, written whole or not at all: colours of 8 bits, opacity as grey,
 * depths from near (white) to far on a scale of the picture's own, normals as (normal + 1) / 2,
 * RGBA with the opacity as its straight alpha. VKN_BAD_INPUT where the picture does not have it.
 * (Rgb floats of another origin go into a picture of the caller's own, whose other maps are NULL.)
 */
VKN_API vkn_status vkn_picture_write(const struct vkn_picture *picture, enum vkn_map map,
                                     const char *file);

VKN_END_DECLARATIONS

#endif
