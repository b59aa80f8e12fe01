"""Devices, cameras, pictures and scenes."""
from __future__ import annotations

import ctypes
import json
import operator
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional, Union

import numpy
import numpy.typing

from . import _generated as c
from ._base import BadInput, check, check_names, decode, encode, fill, lib, members_of, take_text, value_of, view
from ._calls import Closing, Guard, Handle, Progress, Settings, make_config
from ._generated import Background, Map, SceneLook, Split

Array = numpy.typing.NDArray[Any]
Path = Union[str, "os.PathLike[str]"]
Vector = Sequence[float]


def vector(values: Any, name: str) -> Any:
    numbers = numpy.ascontiguousarray(values, dtype=numpy.float64).ravel()
    if numbers.size != 3:
        raise BadInput(f"{name}: 3 numbers are needed, not {numbers.size}")
    return (ctypes.c_double * 3)(*numbers)


class Camera(c.Camera):
    __doc__ = c.Camera.__doc__

    def __post_init__(self) -> None:
        pose = numpy.array(self.pose, dtype=numpy.float64)
        if pose.size == 16:  # the last row is 0 0 0 1
            pose = pose.reshape(4, 4)[:3]
        if pose.size != 12:
            raise BadInput(f"pose: 3 rows of 4 numbers are needed, not {pose.size} numbers")
        self.pose: Array = pose.reshape(3, 4)  # type: ignore[assignment]

    def raw(self) -> Any:
        raw = c.vkn_camera()
        fill(raw, vars(self), [])
        return raw

    def look_at(self, eye: Vector, target: Vector, up: Vector = (0, 0, 1)) -> Camera:
        """Returns a copy at `eye` that looks at `target` with `up` pointing upwards."""
        raw = self.raw()
        check(lib.vkn_camera_look_at(ctypes.byref(raw), vector(eye, "eye"), vector(target, "target"),
                                     vector(up, "up")))
        return replace(self, pose=tuple(raw.pose))

    def scaled(self, factor: float) -> Camera:
        """Returns a copy for pictures with `factor` times as many pixels along each edge."""
        pixels = {name: getattr(self, name) * factor for name in ("focal_x", "focal_y", "center_x", "center_y")}
        return replace(self, width=round(self.width * factor), height=round(self.height * factor), **pixels)


c.vkn_camera._value_ = Camera


class Context(Closing):
    """An open device. Objects of one device are used by one thread at a time; other threads wait for it."""

    def __init__(self, device: Optional[Path] = None, *, shader_dir: Optional[Path] = None,
                 low_priority: bool = False, progress: Progress = None) -> None:
        """Opens the device with this index or part of a name; None: a discrete GPU before an integrated one before a
        CPU. `progress` receives the progress of all calls: of compilations, and of decoding images for a trainer."""
        raw, keep, guard = c.vkn_context_params(), [], Guard(progress)  # type: Any, list[Any], Guard
        fill(raw, {"device": device, "shader_dir": shader_dir, "low_priority": low_priority}, keep)
        if progress:
            guard.callback = raw.progress = members_of(raw)["progress"](guard.report)
        self._handle = Handle(guard, "vkn_context_destroy", "vkn_context_create", ctypes.byref(raw))

    @property
    def device(self) -> str:
        """Name of the device."""
        return str(decode(lib.vkn_context_device_name(self._pointer)))

    @property
    def driver(self) -> str:
        """Name and version of the driver."""
        return str(decode(lib.vkn_context_driver(self._pointer)))

    def __repr__(self) -> str:
        return f"Context({self.device!r})" if self._handle else "Context(closed)"


_default: list[tuple[int, Context]] = []


def default_context() -> Context:
    """Returns the context of objects that were created without one. It is opened at the first use."""
    if not _default or _default[0][0] != os.getpid() or _default[0][1]._handle is None:
        _default[:] = [(os.getpid(), Context())]
    return _default[0][1]


class Picture:
    """An image with its maps, as arrays without copies: `color` and `normal` [height, width, 3], `opacity` and `depth`
    [height, width], f32; `used` of photographs [height, width], u8. Maps that the image does not have are None. The
    arrays may outlive the picture.

    struct vkn_picture of the headers describes the maps. Notebooks show the colours.
    """

    def __init__(self, raw: Any, transparent: bool = False, owner: Any = None) -> None:
        self._raw, self._owner = raw, owner or PictureMemory(raw)
        self.transparent = transparent
        content = raw.contents
        self.width, self.height = int(content.width), int(content.height)
        shape = (self.height, self.width)
        for name, kind, size in (("color", ctypes.c_float, (3,)), ("opacity", ctypes.c_float, ()),
                                 ("depth", ctypes.c_float, ()), ("normal", ctypes.c_float, (3,)),
                                 ("used", ctypes.c_uint8, ())):  # type: str, Any, tuple[int, ...]
            setattr(self, name, view(getattr(content, name), shape + size, kind, self._owner))

    @classmethod
    def from_arrays(cls, color: Array, opacity: Optional[Array] = None) -> Picture:
        """Returns a picture of other colours, to show or write them: [height, width, 3] from 0 to 1, and opacities
        [height, width] of a transparent picture."""
        raw, keep = c.vkn_picture(), []  # type: Any, list[Any]
        for name, array, dimensions in (("color", color, 3), ("opacity", opacity, 2)):
            if array is None:
                continue
            values = numpy.array(array, dtype=numpy.float32, order="C")
            if values.ndim != dimensions or values.shape != numpy.shape(color)[:2] + (3,) * (dimensions - 2):
                raise BadInput(f"{name}: shape {values.shape} is not height x width" + " x 3" * (dimensions - 2))
            setattr(raw, name, values.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
            keep.append(values)
        raw.height, raw.width = numpy.shape(color)[:2]
        return cls(ctypes.pointer(raw), opacity is not None, keep)

    color: Array
    opacity: Optional[Array]
    depth: Optional[Array]
    normal: Optional[Array]
    used: Optional[Array]

    def write(self, file: Path, map: Union[Map, str, None] = None) -> None:
        """Writes a map as an 8-bit PNG file, by default the colours, of transparent pictures with their opacity."""
        chosen = Map.parse(map if map is not None else Map.RGBA if self.transparent else Map.COLOR)
        check(lib.vkn_picture_write(self._raw, chosen, encode(file)))

    def _repr_png_(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "picture.png")
            self.write(file)
            with open(file, "rb") as content:
                return content.read()

    def __repr__(self) -> str:
        maps = [name for name in ("color", "opacity", "depth", "normal", "used") if getattr(self, name) is not None]
        return f"Picture({self.width} x {self.height}: {', '.join(maps)})"


class PictureMemory:
    """Frees a picture when neither the picture nor one of its arrays is left."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.free, self.byref = raw, lib.vkn_picture_free, ctypes.byref

    def __del__(self) -> None:
        self.free(self.byref(self.raw))


def new_picture() -> Any:
    return ctypes.POINTER(c.vkn_picture)()


class Scene(Closing):
    """Cameras and photographs. The settings scene.* of `settings` and keyword arguments are used."""

    def __init__(self, path: Path, settings: Settings = None, **more: Any) -> None:
        """Opens a scene: a folder, or a file that identifies a format."""
        config = make_config(settings, more)
        self._settings: tuple[Settings, Mapping[str, Any]] = (settings, more)
        self._handle = Handle(Guard(), "vkn_scene_close", "vkn_scene_open", encode(path), config.pointer)

    @classmethod
    def from_arrays(cls, images: Sequence[Any], cameras: Sequence[c.Camera], *, masks: Optional[Sequence[Any]] = None,
                    splits: Optional[Sequence[Union[Split, str]]] = None, name: str = "arrays",
                    settings: Settings = None, **more: Any) -> Scene:
        """Creates a scene from photographs in memory, which are copied.

        `images`: [height, width, 3] or, with straight alpha, [height, width, 4], sRGB from the top row, u8 or floats
        from 0 to 1. `cameras`: pose, lens and size of each; a size of 0 is the image's. `masks`: [height, width], 0
        where a pixel does not count, or None. `splits`: "train" (the default), "val" or "test" of each image.
        """
        images, cameras = list(images), list(cameras)
        for values, what in ((cameras, "cameras"), (masks, "masks"), (splits, "splits")):
            if values is not None and len(values) != len(images):
                raise BadInput(f"{what}: {len(values)} for {len(images)} images")
        keep: list[Any] = []
        views = (ctypes.POINTER(c.vkn_view) * len(images))()
        for index, (image, camera) in enumerate(zip(images, cameras)):
            raw = c.vkn_view()
            pixels = to_rgba(image, index)
            if not isinstance(camera, c.Camera):
                raise BadInput(f"cameras[{index}]: {camera!r} is no Camera")
            height, width = pixels.shape[:2]
            camera = replace(camera, width=camera.width or width, height=camera.height or height)
            if (camera.width, camera.height) != (width, height):
                raise BadInput(f"cameras[{index}]: {camera.width} x {camera.height} pixels, but images[{index}] has "
                               f"{width} x {height}")
            fill(raw, {"split": splits[index] if splits else Split.TRAIN, "camera": camera}, keep)
            raw.pixels = pixels.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
            if masks is not None and masks[index] is not None:
                mask = numpy.ascontiguousarray(numpy.asarray(masks[index]) != 0, dtype=numpy.uint8)
                if mask.shape != (height, width):
                    raise BadInput(f"masks[{index}]: shape {mask.shape}, but images[{index}] has {width} x {height} "
                                   "pixels")
                raw.mask = mask.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
                keep.append(mask)
            keep += [pixels, raw]
            views[index] = ctypes.pointer(raw)
        config = make_config(settings, more)
        scene = cls.__new__(cls)
        scene._settings = (settings, more)
        scene._handle = Handle(Guard(), "vkn_scene_close", "vkn_scene_create", encode(name), views, len(images),
                               config.pointer)
        return scene

    def count(self, split: Union[Split, str] = Split.DEFAULT) -> int:
        """Returns the number of views of a split; the default is the first of test, val and train that has any."""
        return int(lib.vkn_scene_view_count(self._pointer, Split.parse(split)))

    def camera(self, view: int, split: Union[Split, str] = Split.DEFAULT) -> Camera:
        """Returns the camera of a view."""
        raw = c.vkn_camera()
        self._guard.call(lib.vkn_scene_camera, self._pointer, Split.parse(split), index_of(view), ctypes.byref(raw))
        return value_of(raw)  # type: ignore[no-any-return]

    def cameras(self, split: Union[Split, str] = Split.DEFAULT) -> list[Camera]:
        """Returns the cameras of a split."""
        return [self.camera(view, split) for view in range(self.count(split))]

    def image(self, view: int, split: Union[Split, str] = Split.DEFAULT,
              background: Union[Background, str] = Background.DEFAULT) -> Picture:
        """Returns the photograph of a view, composited on the background."""
        raw = new_picture()
        self._guard.call(lib.vkn_scene_image, self._pointer, Split.parse(split), index_of(view), Background.parse(background), ctypes.byref(raw))
        return Picture(raw)

    def file(self, view: int, split: Union[Split, str] = Split.DEFAULT) -> Optional[str]:
        """Returns the path of a view's image file; None if there is none."""
        return decode(lib.vkn_scene_image_file(self._pointer, Split.parse(split), index_of(view)))

    def look(self) -> SceneLook:
        """Returns focus point, upward direction, distance and cube for a default view of the scene."""
        raw = c.vkn_scene_look()
        self._guard.call(lib.vkn_scene_find_look, self._pointer, ctypes.byref(raw))
        return value_of(raw)  # type: ignore[no-any-return]

    def orbit(self, count: int) -> list[Camera]:
        """Returns the cameras of `vknerf render --orbit`: evenly spaced on a circle around the focus point."""
        cameras = []
        for view in range(checked_steps(count, "count")):
            raw = c.vkn_camera()
            self._guard.call(lib.vkn_scene_orbit_camera, self._pointer, view, count, ctypes.byref(raw))
            cameras.append(value_of(raw))
        return cameras

    def path(self, file: Path, dataparser: Optional[Path] = None) -> c.CameraPath:
        """Returns the cameras of a camera path, one per frame. `dataparser`: dataparser_transforms.json, for a path of
        nerfstudio; None: the one beside the path, if any."""
        raw = c.vkn_camera_path()
        self._guard.call(lib.vkn_scene_read_path, self._pointer, encode(file),
                         None if dataparser is None else encode(dataparser), ctypes.byref(raw))
        path = value_of(raw)
        lib.vkn_free(raw.cameras)
        return path  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        if self._handle is None:
            return "Scene(closed)"
        return f"Scene({', '.join(f'{self.count(split)} {split}' for split in ('train', 'val', 'test'))})"


def index_of(view: int) -> int:
    if operator.index(view) < 0:
        raise BadInput(f"view: {view} is below 0")
    return operator.index(view)


def to_rgba(image: Any, index: int) -> Any:
    array = numpy.asarray(image)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or 0 in array.shape:
        raise BadInput(f"images[{index}]: shape {array.shape} is not height x width x 3 or 4")
    if array.dtype.kind == "f":
        if not bool(((array >= 0) & (array <= 1)).all()):
            raise BadInput(f"images[{index}]: floats have to be from 0 to 1")
        array = numpy.rint(array * 255).astype(numpy.uint8)
    if array.dtype != numpy.uint8:
        raise BadInput(f"images[{index}]: pixels are {array.dtype}, not uint8 or floats")
    pixels = numpy.full((*array.shape[:2], 4), 255, dtype=numpy.uint8)
    pixels[..., :array.shape[2]] = array
    return pixels


def checked_steps(steps: int, name: str = "steps") -> int:
    if not 0 < operator.index(steps) < 1 << 32:
        raise BadInput(f"{name}: {steps} is not from 1 to {(1 << 32) - 1}")
    return operator.index(steps)


def read_config(config: Any) -> dict[str, Any]:
    return json.loads(take_text(lib.vkn_config_write_json(config)))  # type: ignore[no-any-return]


def picture_parameters(camera: c.Camera, parameters: Mapping[str, Any]) -> tuple[Any, Any, list[Any]]:
    raw_camera, raw, keep = c.vkn_camera(), c.vkn_picture_params(), []  # type: Any, Any, list[Any]
    check_names(parameters, raw, "a picture", "size")
    if not isinstance(camera, c.Camera):
        raise BadInput(f"camera: {camera!r} is no Camera")
    fill(raw_camera, vars(camera), keep)
    fill(raw, parameters, keep)
    return raw_camera, raw, keep


# ---- quality ---------------------------------------------------------------------------------------------


def image_arguments(a: Any, b: Any, used: Any) -> tuple[Any, ...]:
    first, second = (numpy.ascontiguousarray(getattr(image, "color", image), dtype=numpy.float32) for image in (a, b))
    if first.ndim != 3 or first.shape[2] != 3 or first.shape != second.shape:
        raise BadInput(f"images: shapes {first.shape} and {second.shape} are not height x width x 3 both")
    mask = getattr(b, "used", None) if used is None else used
    if mask is not None:
        mask = numpy.ascontiguousarray(mask, dtype=numpy.uint8)
        if mask.shape != first.shape[:2]:
            raise BadInput(f"used: shape {mask.shape} for images of {first.shape[:2]}")
    floats, bytes_ = ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_uint8)
    pointers = first.ctypes.data_as(floats), second.ctypes.data_as(floats)
    return (*pointers, None if mask is None else mask.ctypes.data_as(bytes_), first.shape[1], first.shape[0])


def psnr(a: Union[Picture, Array], b: Union[Picture, Array], used: Optional[Array] = None) -> float:
    """Returns the peak signal-to-noise ratio in dB, at most 100, over the pixels whose `used` is not 0 (by default those
    of the photograph `b`); NaN if there are none. Images are pictures, or f32 [height, width, 3] from 0 to 1."""
    return float(lib.vkn_psnr(*image_arguments(a, b, used)))


def ssim(a: Union[Picture, Array], b: Union[Picture, Array], used: Optional[Array] = None) -> float:
    """Returns the structural similarity (Wang et al. 2004) with windows of 11 x 11 pixels; arguments are as for psnr."""
    value = ctypes.c_double()
    check(lib.vkn_ssim(*image_arguments(a, b, used), ctypes.byref(value)))
    return value.value
