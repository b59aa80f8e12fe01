/* vknerf/camera.h: describes cameras and images, and writes images as PNG files. */
#ifndef VKNERF_CAMERA_H
#define VKNERF_CAMERA_H

#include <vknerf/error.h>

VKN_BEGIN_DECLARATIONS

/* Lenses, by their projection of a ray to ideal coordinates (u, v). `theta` is the angle between
 * the ray and the viewing axis; (u, v) has the direction of the ray and the length named here. */
enum vkn_lens {
    /* tan(theta), distorted by OpenCV's k1 k2 k3 (radial) and p1 p2 (tangential), see "Camera
     * Calibration and 3D Reconstruction"; with zeros a pinhole. */
    VKN_LENS_PERSPECTIVE,
    /* theta, distorted to theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8): OpenCV's
     * fisheye, Kannala and Brandt 2006. */
    VKN_LENS_FISHEYE,
    /* A panorama without distortion: u is the longitude in radians, -pi to pi, to the right of the
     * viewing axis; -v is the latitude, -pi/2 to pi/2, above the camera's horizontal plane. The
     * ray's direction in the camera's axes is (sin u cos v, -sin v, -cos u cos v). */
    VKN_LENS_EQUIRECTANGULAR,
    /* theta, distorted by k1 k2 k3 p1 p2 as a perspective lens, by k4 in the radial part, and by
     * sx1 theta^2 in u and sy1 theta^2 in v: COLMAP's THIN_PRISM_FISHEYE. */
    VKN_LENS_THIN_PRISM_FISHEYE
};

/* A camera. Pixel (x, y), y down, has its centre at (x + 0.5, y + 0.5) and the ideal coordinates
 * u = (x + 0.5 - center_x) / focal_x and v = (y + 0.5 - center_y) / focal_y. The camera looks down
 * its -z axis, y is up (as in OpenGL and Blender). */
struct vkn_camera {
    size_t size;            /* see <vknerf/api.h> */
    uint32_t width, height; /* pixels */
    /* Focal lengths in pixels, for a fisheye and a panorama pixels per radian. focal_y 0: focal_x.
     * Both 0, for a panorama only: width / (2 pi) and height / pi, 360 x 180 degrees. */
    double focal_x, focal_y;
    double center_x, center_y; /* principal point in pixels; both 0: the centre of the image */
    enum vkn_lens lens;        /* projection */
    /* Distortion. A fisheye does not use p1 and p2, a perspective lens does not use k4. */
    double k1, k2, p1, p2, k3, k4;
    double time;     /* 0..1, in dynamic scenes */
    double pose[12]; /* camera to world, 3 rows x 4 columns, the last column is the
                        position; in the dataset's axes and units */
    double sx1, sy1; /* distortion of a thin prism fisheye; needs `size` */
};

/* Sets the camera's pose only: at `eye`, looking at `target`, with `up` pointing upwards, each 3
 * numbers in the dataset's axes and units. If the camera looks along `up`, its roll is arbitrary.
 * VKN_BAD_INPUT if the target is the eye. */
VKN_API vkn_status vkn_camera_look_at(struct vkn_camera *camera, const double *eye,
                                      const double *target, const double *up);

/* An image with its maps: arrays [height][width], from the top row, NULL for maps that the image
 * does not have. Owned by the library, valid until vkn_picture_free. */
struct vkn_picture {
    uint32_t width, height; /* pixels */
    float *color;   /* [3], rgb in sRGB, 0..1, on the background; straight if there is none */
    float *opacity; /* 0..1 */
    float *depth;  /* dataset units, along the viewing axis; with a fisheye or panorama the distance
                      from the camera. 0 where nothing was hit; NULL for photographs */
    float *normal; /* [3], of the surface: unit length, in the dataset's axes, towards the camera;
                      0 where nothing was hit. Only after vkn_renderer_enable_normals */
    uint8_t *used; /* only of photographs: 1 for pixels that count, 0 for pixels that a mask
                      excludes or that lie outside the lens's field of view */
};
/* Frees the image and sets *picture to NULL; accepts NULL. */
VKN_API void vkn_picture_free(struct vkn_picture **picture);

/* Maps of an image. */
enum vkn_map {
    VKN_MAP_COLOR,   /* 3 per pixel */
    VKN_MAP_OPACITY, /* 1 per pixel */
    VKN_MAP_DEPTH,   /* 1 per pixel */
    VKN_MAP_NORMAL,  /* 3 per pixel */
    VKN_MAP_RGBA     /* colour and opacity, of a transparent image */
};
/* Writes a map as an 8-bit PNG file, completely or not at all: opacity as grey, depth from near
 * (white) to far (black) within the range of the image, normals as (normal + 1) / 2, RGBA with the
 * opacity as straight alpha. VKN_BAD_INPUT if the image does not have the map. To write other rgb
 * floats, fill a struct vkn_picture whose other maps are NULL. */
VKN_API vkn_status vkn_picture_write(const struct vkn_picture *picture, enum vkn_map map,
                                     const char *file);

VKN_END_DECLARATIONS

#endif
