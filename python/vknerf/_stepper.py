"""Training steps in single calls, for fields that the caller evaluates and differentiates in NumPy or PyTorch."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Optional, Union, cast

from . import _generated as c
from ._base import check_names, fill, lib, members_of, set_array, value_of, view
from ._calls import Call, Closing, Handle, Settings, make_config
from ._generated import AdamResult
from ._scene import (Array, Context, Path, Picture, Scene, default_context, new_picture, picture_parameters,
                     read_config)
from ._training import WithOccupancy

# Elements of the arrays of struct vkn_samples and struct vkn_composited: type, shape, by sample or by ray.
SAMPLE_ARRAYS: dict[str, tuple[Any, tuple[int, ...], str]] = {
    "positions": (ctypes.c_float, (3,), "count"), "directions": (ctypes.c_float, (3,), "count"),
    "distances": (ctypes.c_float, (), "count"), "widths": (ctypes.c_float, (), "count"),
    "times": (ctypes.c_float, (), "count"), "ray_indices": (ctypes.c_uint32, (), "count"),
    "values": (ctypes.c_float, (4,), "count"), "densities": (ctypes.c_float, (), "count"),
    "ranges": (ctypes.c_uint32, (2,), "rays"), "targets": (ctypes.c_float, (4,), "rays"),
    "backgrounds": (ctypes.c_float, (3,), "rays"), "views": (ctypes.c_uint32, (), "rays"),
    "in_loss": (ctypes.c_uint32, (), "rays"),
}


class Samples:
    """Samples along rays, as arrays without copies; struct vkn_samples of the headers describes them. The arrays have
    the values of the last call of `sample` or `update_grid`, and stay valid as long as they exist."""

    count: int
    rays: int
    step: int
    learning_rate: float
    rays_in_loss: int
    positions: Array
    directions: Array
    distances: Array
    widths: Array
    times: Array
    ray_indices: Array
    values: Array
    densities: Array
    ranges: Array
    targets: Array
    backgrounds: Array
    views: Array
    in_loss: Array

    def __init__(self, raw: Any, owner: Any) -> None:
        for name, kind in members_of(raw).items():
            if kind is not c.vkn_array:
                setattr(self, name, getattr(raw, name))
                continue
            element, shape, by = SAMPLE_ARRAYS[name]
            array: Any = getattr(raw, name)
            setattr(self, name, view(array.data, (getattr(raw, by), *shape), element, owner))


class Composited:
    """Result of compositing: the members of struct vkn_composited of the headers, `gradients` as an array [sample, 4]
    without a copy, which the next `composite` overwrites."""

    finite: bool
    loss: float
    mean_square: float
    live: int
    skipped: int
    distortion_loss: float
    gradients: Array

    def __init__(self, raw: Any, samples: int, owner: Any) -> None:
        for name, kind in members_of(raw).items():
            if kind is not c.vkn_array:
                setattr(self, name, getattr(raw, name))
        self.gradients = view(raw.gradients.data, (samples, 4), ctypes.c_float, owner)


Field = Callable[[Samples], object]


class Stepper(WithOccupancy):
    """Rays, samples, occupancy grid, compositing and its gradients for a field of the caller.

        for step in range(1000):
            if step % 16 == 0:
                stepper.update_grid(fill_densities)
            samples = stepper.sample()
            samples.values[:] = field(samples.positions)
            composited = stepper.composite()
            ...  # propagates composited.gradients to the parameters
    """

    def __init__(self, scene: Union[Scene, Path], settings: Settings = None, *, context: Optional[Context] = None,
                 **more: Any) -> None:
        """Loads the training images. Arrays are in host memory."""
        self.context = context or default_context()
        self.scene = scene if isinstance(scene, Scene) else Scene(scene, settings, **more)
        config, raw = make_config(settings, more), c.vkn_stepper_params()
        raw.host = True
        self._samples: Optional[Samples] = None
        with self.scene._guard:
            self._handle = Handle(self.context._guard, "vkn_stepper_destroy", "vkn_stepper_create",
                                  self.context._pointer, self.scene._pointer, config.pointer, ctypes.byref(raw))

    _kind = "stepper"

    @property
    def settings(self) -> dict[str, Any]:
        """The effective configuration."""
        return read_config(lib.vkn_stepper_config(self._pointer))

    def sample(self) -> Samples:
        """Begins a step: draws pixels, marches their rays and lists the samples. The caller writes `values`."""
        raw = ctypes.POINTER(c.vkn_samples)()
        with self._guard:
            self._guard.call(lib.vkn_stepper_sample, self._pointer, ctypes.byref(raw))
            self._samples = Samples(raw.contents, self._handle)
        return self._samples

    def sample_rays(self, origins: Array, directions: Array, **arrays: Optional[Array]) -> Samples:
        """Begins a step with the caller's rays, in training space. Further arrays are the members of struct
        vkn_stepper_rays: nearest, farthest, times, targets, backgrounds, weights by ray; t_starts and t_ends by sample,
        with ranges."""
        raw, keep = c.vkn_stepper_rays(), []  # type: Any, list[Any]
        check_names(arrays, raw, "rays", "size", "count", "sample_count")
        raw.count = len(origins)
        raw.sample_count = 0 if arrays.get("t_starts") is None else len(cast(Array, arrays["t_starts"]))
        widths = {"origins": 3, "directions": 3, "targets": 4, "backgrounds": 3, "ranges": 2}
        given: dict[str, Optional[Array]] = {"origins": origins, "directions": directions, **arrays}
        for name, array in given.items():
            count = raw.sample_count if name in ("t_starts", "t_ends") else raw.count
            set_array(raw, name, array, (count, widths[name]) if name in widths else (count,), keep)
        samples = ctypes.POINTER(c.vkn_samples)()
        with self._guard:
            self._guard.call(lib.vkn_stepper_sample_rays, self._pointer, ctypes.byref(raw), ctypes.byref(samples))
            self._samples = Samples(samples.contents, self._handle)
        return self._samples

    def set_loss_scale(self, scale: float) -> None:
        """Sets the factor of all later gradients, by which the caller divides before the optimiser's step."""
        self._guard.call(lib.vkn_stepper_set_loss_scale, self._pointer, scale)

    def composite(self) -> Composited:
        """Composites the samples of `sample`: the loss, and its gradients by the samples' values."""
        raw = ctypes.POINTER(c.vkn_composited)()
        with self._guard:
            self._guard.call(lib.vkn_stepper_composite, self._pointer, ctypes.byref(raw))
            return Composited(raw.contents, self._samples.count if self._samples else 0, self._handle)

    def update_grid(self, density: Field) -> None:
        """Updates the occupancy grid; to be called every 16 steps. `density` writes samples.densities at
        samples.positions, and must not use the device."""
        self._run(lib.vkn_stepper_update_grid, 1, density)

    def render(self, camera: c.Camera, field: Field, **parameters: Any) -> Picture:
        """Renders an image as Renderer.render does. `field` writes samples.values for batches of rays, and must not use
        the device."""
        picture = new_picture()
        raw_camera, raw, keep = picture_parameters(camera, parameters)
        self._run(lib.vkn_stepper_render, 3, field, ctypes.byref(raw_camera), ctypes.byref(raw),
                  after=(ctypes.byref(picture),))
        return Picture(picture, bool(raw.transparent))

    def _run(self, function: Any, position: int, field: Field, *before: Any,
             after: tuple[Any, ...] = ()) -> None:
        def from_library(unused: Any, samples: Any) -> int:
            field(Samples(samples.contents, self._handle))
            return 0

        call = Call(self._guard)
        callback = call.callback(function.argtypes[position], from_library, failed=int(c.Status.INTERRUPTED))
        with self._guard:
            call.check(function, self._pointer, *before, callback, None, *after)

    def __repr__(self) -> str:
        return "Stepper()" if self._handle else "Stepper(closed)"


class Adam(Closing):
    """Adam with f32 parameters and moments on the device. `parameters` and `gradients` are arrays [count] without
    copies, of the shape that `parameters.reshape` gives them."""

    parameters: Array
    gradients: Array

    def __init__(self, count: int, *, context: Optional[Context] = None, **parameters: Any) -> None:
        """Parameters and gradients are zeros. Keyword arguments are the members of struct vkn_adam_params: entry,
        sparse, learning_rate, beta1, beta2, epsilon, weight_decay, clip_norm."""
        self.context = context or default_context()
        raw, keep = c.vkn_adam_params(), []  # type: Any, list[Any]
        check_names(parameters, raw, "Adam", "size", "host", "count")
        fill(raw, {**parameters, "count": count, "host": True}, keep)
        self._handle = Handle(self.context._guard, "vkn_adam_destroy", "vkn_adam_create", self.context._pointer,
                              ctypes.byref(raw))
        for name in ("parameters", "gradients"):
            array = getattr(lib, f"vkn_adam_{name}")(self._pointer).contents
            setattr(self, name, view(array.data, (count,), ctypes.c_float, self._handle))

    def step(self, learning_rate: float = 0) -> AdamResult:
        """Takes one step with the gradients, then sets the gradients to 0. 0: the learning rate of the optimiser."""
        raw = c.vkn_adam_result()
        self._guard.call(lib.vkn_adam_step, self._pointer, learning_rate, ctypes.byref(raw))
        return value_of(raw)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Adam({self.parameters.size})" if self._handle else "Adam(closed)"
