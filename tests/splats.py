#!/usr/bin/python3
"""Renders splats as Kerbl et al. 2023 (3D Gaussian Splatting) do, and compares them with a picture of their field.

splats.py FILE.ply PICTURE WIDTH HEIGHT FOCAL_X FOCAL_Y CENTER_X CENTER_Y POSE[12]

PICTURE: RGB as float32, rows from the top, on white. POSE: camera to world, 3 x 4, looking down -z with y up.
Prints the PSNR of the picture with all harmonics, and with the constant one only.
meshio, an independent library, reads the file. Needs python3-meshio and python3-numpy.
"""
import sys

import meshio
import numpy

MOST_OPACITY = 0.99
LEAST_DEPTH = 0.2
LOW_PASS = 0.3  # added to covariances, in square pixels


def columns(data, name, count):
    return numpy.stack([data[f"{name}_{i}"] for i in range(count)], 1).astype(float)


def rotations(quaternions):
    """Returns rotation matrices of quaternions w, x, y, z of any length: [splat][3][3]."""
    w, x, y, z = (quaternions / numpy.linalg.norm(quaternions, axis=1, keepdims=True)).T
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return numpy.stack(rows, 1).reshape(-1, 3, 3)


def harmonics(directions):
    """Returns harmonics of degrees 0 to 3 in the layout's order and signs: [direction][16]."""
    x, y, z = directions.T
    x2, y2, z2 = x * x, y * y, z * z
    return numpy.stack([
        numpy.full_like(x, 0.28209479177387814),
        -0.4886025119029199 * y, 0.4886025119029199 * z, -0.4886025119029199 * x,
        1.0925484305920792 * x * y, -1.0925484305920792 * y * z, 0.31539156525252005 * (2 * z2 - x2 - y2),
        -1.0925484305920792 * x * z, 0.5462742152960396 * (x2 - y2),
        -0.5900435899266435 * y * (3 * x2 - y2), 2.890611442640554 * x * y * z,
        -0.4570457994644658 * y * (4 * z2 - x2 - y2), 0.3731763325901154 * z * (2 * z2 - 3 * x2 - 3 * y2),
        -0.4570457994644658 * x * (4 * z2 - x2 - y2), 1.445305721320277 * z * (x2 - y2),
        -0.5900435899266435 * x * (x2 - 3 * y2)], 1)


def colors(data, directions, count):
    rest = columns(data, "f_rest", 45).reshape(-1, 3, 15)
    coefficients = numpy.concatenate([columns(data, "f_dc", 3)[:, :, None], rest], 2)[:, :, :count]
    return numpy.maximum(numpy.einsum("nck,nk->nc", coefficients, harmonics(directions)[:, :count]) + 0.5, 0)


def project(data, points, camera):
    """Returns pixel positions, inverse covariances, extents and depths (EWA splatting, Zwicker et al. 2001)."""
    pose = camera["pose"]
    to_camera = numpy.diag([1.0, -1.0, -1.0]) @ pose[:, :3].T  # to x right, y down, z forward
    x, y, z = to_camera @ (points - pose[:, 3]).T
    scaled_axes = to_camera @ (rotations(columns(data, "rot", 4)) * numpy.exp(columns(data, "scale", 3))[:, None, :])
    jacobian = numpy.zeros((len(points), 2, 3))
    jacobian[:, 0, 0], jacobian[:, 1, 1] = camera["focal"][0] / z, camera["focal"][1] / z
    jacobian[:, 0, 2], jacobian[:, 1, 2] = -camera["focal"][0] * x / z**2, -camera["focal"][1] * y / z**2
    flat = jacobian @ scaled_axes
    covariance = flat @ flat.transpose(0, 2, 1) + LOW_PASS * numpy.eye(2)
    positions = numpy.stack([camera["focal"][0] * x / z, camera["focal"][1] * y / z], 1) + camera["center"]
    return positions, numpy.linalg.inv(covariance), 3 * numpy.sqrt(covariance[:, [0, 1], [0, 1]]), z


def render(data, points, camera, count):
    """Renders the picture on white, nearest splats first."""
    width, height = camera["size"]
    picture, transmittance = numpy.zeros((height, width, 3)), numpy.ones((height, width))
    positions, inverse, extents, depths = project(data, points, camera)
    directions = points - camera["pose"][:, 3]
    splat_colors = colors(data, directions / numpy.linalg.norm(directions, axis=1, keepdims=True), count)
    opacities = 1 / (1 + numpy.exp(-data["opacity"].astype(float)))
    low = numpy.maximum(numpy.floor(positions - extents), 0).astype(int)
    high = numpy.minimum(numpy.floor(positions + extents) + 1, [width, height]).astype(int)
    for i in numpy.argsort(depths):
        (x0, y0), (x1, y1) = low[i], high[i]
        if depths[i] < LEAST_DEPTH or x0 >= x1 or y0 >= y1:
            continue
        x = numpy.arange(x0, x1) + 0.5 - positions[i, 0]
        y = (numpy.arange(y0, y1) + 0.5 - positions[i, 1])[:, None]
        (xx, xy), (_, yy) = inverse[i]
        alpha = opacities[i] * numpy.exp(-0.5 * (xx * x * x + 2 * xy * x * y + yy * y * y))
        alpha = numpy.minimum(alpha, MOST_OPACITY)
        picture[y0:y1, x0:x1] += (transmittance[y0:y1, x0:x1] * alpha)[:, :, None] * splat_colors[i]
        transmittance[y0:y1, x0:x1] *= 1 - alpha
    return picture + transmittance[:, :, None]


def main():
    numbers = [float(word) for word in sys.argv[3:]]
    width, height = int(numbers[0]), int(numbers[1])
    camera = {"size": (width, height), "focal": numbers[2:4], "center": numbers[4:6],
              "pose": numpy.array(numbers[6:]).reshape(3, 4)}
    mesh = meshio.read(sys.argv[1])
    field = numpy.fromfile(sys.argv[2], "<f4").reshape(height, width, 3)
    for count in (16, 1):
        error = numpy.mean((render(mesh.point_data, mesh.points.astype(float), camera, count) - field) ** 2)
        print(f"{-10 * numpy.log10(error):.2f}")


if __name__ == "__main__":
    main()
