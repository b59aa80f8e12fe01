"""Reads Blender scenes: transforms_train.json and transforms_test.json with their images.

Cameras need only the standard library; images need numpy and PIL.
"""
import math
import os

from config import BadInput, read_json

SCALE, OFFSET = 0.33, 0.5  # from dataset units to the unit cube, as in instant-ngp


class Camera:
    """pose: 3 rows of 4, camera to world in training space (x right, y up, looking along -z).

    fit() sets width and height, and focal and center in pixels of the downscaled image."""

    def __init__(self, path, angle, focal, center, pose):
        self.path, self.angle, self.focal, self.center, self.pose = path, angle, focal, center, pose
        self.width = self.height = 0

    def fit(self, width, height, downscale):
        """Sets the fields that depend on the stored image's size."""
        focal = self.focal or (0.5 * width / math.tan(0.5 * self.angle),) * 2
        center = self.center or (0.5 * width, 0.5 * height)
        self.focal = tuple(v / downscale for v in focal)
        self.center = tuple(v / downscale for v in center)
        self.width, self.height = width // downscale, height // downscale


def number(value, where):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadInput(f"{where}: not a number")
    return float(value)


def place(matrix, where, scale=SCALE, offset=OFFSET):
    """Converts transform_matrix to a camera's pose: 3 rows of 4."""
    if not isinstance(matrix, list) or len(matrix) not in (3, 4) or any(
            not isinstance(row, list) or len(row) != 4 for row in matrix):
        raise BadInput(f"{where}: not 3 or 4 rows of 4 numbers")
    rows = [[number(v, where) for v in row] for row in matrix[:3]]
    return [row[:3] + [row[3] * scale + offset] for row in rows]


def read_cameras(folder, split, scale=0):
    """Reads the cameras of transforms_SPLIT.json, in the file's order."""
    file = os.path.join(folder, f"transforms_{split}.json")
    data = read_json(file)
    for key in ("k1", "k2", "p1", "p2"):
        if data.get(key, 0) != 0:
            raise BadInput(f"{file}: {key}: this trainer does not support lens distortion")
    if data.get("aabb_scale", 1) != 1 or "offset" in data:
        raise BadInput(f"{file}: aabb_scale, offset: this trainer supports only Blender's unit cube")
    scale = scale or number(data.get("scale", SCALE), f"{file}: scale")
    focal = center = angle = None
    if "fl_x" in data:
        across = number(data["fl_x"], f"{file}: fl_x")
        focal = (across, number(data.get("fl_y", across), f"{file}: fl_y"))
    else:
        angle = number(data.get("camera_angle_x"), f"{file}: camera_angle_x")
    if "cx" in data and "cy" in data:
        center = (number(data["cx"], f"{file}: cx"), number(data["cy"], f"{file}: cy"))
    frames = data.get("frames")
    if not isinstance(frames, list) or not frames:
        raise BadInput(f"{file}: frames: no frames")
    cameras = []
    for i, frame in enumerate(frames):
        where = f"{file}: frames[{i}]"
        if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
            raise BadInput(f"{where}: file_path: missing")
        path = os.path.join(folder, frame["file_path"])
        if not os.path.isfile(path):
            path += ".png"
        pose = place(frame.get("transform_matrix"), where + ": transform_matrix", scale)
        cameras.append(Camera(path, angle, focal, center, pose))
    return cameras


def downscale_image(rgba, k):
    """[H, W, 4] uint8, straight alpha -> [H/k, W/k, 4] uint8, premultiplied: exact averages of k x k pixels, rounded
    once, as in src/scene/downscale.c."""
    height, width = rgba.shape[0] // k, rgba.shape[1] // k
    wide = rgba[:height * k, :width * k].astype("int64")
    alpha = wide[..., 3:]
    wide[..., :3] *= alpha
    wide[..., 3:] = 255 * alpha
    total = wide.reshape(height, k, width, k, 4).sum(axis=(1, 3))
    count = 255 * k * k
    return ((2 * total + count) // (2 * count)).astype("uint8")


def load_images(cameras, downscale):
    """Fits the cameras to their images; returns a list of [h, w, 4] uint8 arrays, premultiplied."""
    try:
        import numpy
        from PIL import Image
    except ImportError as error:
        raise BadInput(f"needs python3-{'pil' if error.name == 'PIL' else error.name}") from None
    images = []
    for camera in cameras:
        try:
            with Image.open(camera.path) as image:
                rgba = numpy.asarray(image.convert("RGBA"))
        except OSError as error:
            raise BadInput(f"{camera.path}: {error}") from None
        camera.fit(rgba.shape[1], rgba.shape[0], downscale)
        if camera.width == 0 or camera.height == 0:
            raise BadInput(f"{camera.path}: cannot be downscaled by {downscale}")
        images.append(downscale_image(rgba, downscale))
    return images
