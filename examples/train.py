#!/usr/bin/env python3
"""Trains a scene with libvknerf through ctypes, renders a test view into NumPy arrays, and shows it.

    python3 train.py SCENE STEPS CHECKPOINT.safetensors PICTURE.png [KEY=VALUE ...]

KEY=VALUE are further settings, such as grid.levels=8. Needs python3-numpy and libvknerf.so.0, whose path VKNERF_LIBRARY
may give. Structures are as in <vknerf/*.h>; zeros are defaults. Structures with a member `size` are declared whole, and
`size` is set: the library then knows which members it may read and fill.
"""
import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import numpy

vkn = ctypes.CDLL(os.environ.get("VKNERF_LIBRARY", "libvknerf.so.0"))
vkn.vkn_last_error.restype = c_char_p


class TrainStats(ctypes.Structure):
    _fields_ = [("step", c_uint64), ("seconds", c_double), ("loss", c_double), ("psnr", c_double)]


REPORT = ctypes.CFUNCTYPE(None, c_void_p, POINTER(TrainStats))


class TrainRun(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("until_step", c_uint32), ("seconds", c_double), ("stop", c_void_p),
                ("report_seconds", c_double), ("report", REPORT), ("warn", c_void_p), ("context", c_void_p)]


class Camera(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("width", c_uint32), ("height", c_uint32), ("focal", c_double * 2),
                ("center", c_double * 2), ("lens", c_int), ("distortion", c_double * 6), ("time", c_double),
                ("pose", c_double * 12)]


class Picture(ctypes.Structure):
    _fields_ = [("width", c_uint32), ("height", c_uint32), ("color", POINTER(c_float)), ("opacity", POINTER(c_float)),
                ("depth", POINTER(c_float))]


def call(name, *arguments):
    if getattr(vkn, name)(*arguments) != 0:
        sys.exit(vkn.vkn_last_error().decode())


def make(name, *arguments):
    made = c_void_p()
    call(name, *arguments, byref(made))
    return made


def show(color):
    """Prints a picture, two rows of pixels to a line of text."""
    step = max(1, color.shape[1] // 64)
    rows = (255 * color[::step, ::step] + 0.5).astype(int)
    for above, below in zip(rows[0::2], rows[1::2]):
        print("".join("\x1b[38;2;%d;%d;%dm\x1b[48;2;%d;%d;%dm\u2580" % (*a, *b) for a, b in zip(above, below)) + "\x1b[m")


def main(scene_path, steps, checkpoint, png, *settings):
    config = make("vkn_config_create")
    for key, value in [("steps", steps), ("deterministic", "true"), *(setting.split("=", 1) for setting in settings)]:
        call("vkn_config_set", config, None, key.encode(), value.encode())
    context = make("vkn_context_create", None)
    scene = make("vkn_scene_open", os.fsencode(scene_path), config)
    trainer = make("vkn_trainer_create", context, scene, config)
    report = REPORT(lambda _, stats: print(f"step {stats[0].step}: training PSNR {stats[0].psnr:.2f} dB"))
    call("vkn_trainer_run", trainer, byref(TrainRun(size=ctypes.sizeof(TrainRun), report_seconds=1, report=report)))
    call("vkn_trainer_save", trainer, os.fsencode(checkpoint))

    camera, picture, photograph = Camera(size=ctypes.sizeof(Camera)), POINTER(Picture)(), POINTER(Picture)()
    call("vkn_scene_camera", scene, 3, c_size_t(0), byref(camera))  # VKN_SPLIT_TEST
    renderer = make("vkn_renderer_of_trainer", trainer)
    call("vkn_render", renderer, byref(camera), None, byref(picture))
    call("vkn_scene_image", scene, 3, c_size_t(0), 0, byref(photograph))
    shape = picture[0].height, picture[0].width
    color = numpy.ctypeslib.as_array(picture[0].color, (*shape, 3))
    depth = numpy.ctypeslib.as_array(picture[0].depth, shape)
    target = numpy.ctypeslib.as_array(photograph[0].color, (*shape, 3))
    show(color)
    print(f"depths {depth[depth > 0].min():.2f} .. {depth.max():.2f}, "
          f"PSNR {-10 * numpy.log10(numpy.mean((color - target) ** 2)):.2f} dB")
    call("vkn_picture_write", picture, 0, os.fsencode(png))  # VKN_MAP_COLOR

    for kind, thing in (("picture_free", picture), ("picture_free", photograph), ("renderer_destroy", renderer),
                        ("trainer_destroy", trainer), ("scene_close", scene), ("context_destroy", context),
                        ("config_destroy", config)):
        getattr(vkn, "vkn_" + kind)(byref(thing))


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
