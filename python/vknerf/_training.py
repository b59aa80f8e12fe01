"""Trainings and renderers."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, Union, cast

import numpy

from . import _generated as c
from ._base import BadInput, check_names, decode, encode, fill, lib, members_of, new_array, set_array, value_of
from ._calls import Call, Closing, Handle, Progress, Settings, make_config, make_parameters
from ._generated import Backend, Images, PassTime, Precision, Split, TrainStats
from ._scene import (Array, Camera, Context, Path, Picture, Scene, checked_steps, default_context, index_of, new_picture,
                     picture_parameters, read_config)


@dataclass(eq=False)
class Occupancy:
    """An occupancy grid, see struct vkn_occupancy of the headers: `values` f32 and `occupied` bool, [time_bins, cascades,
    z, y, x] with `resolution` cells along each axis."""

    resolution: int
    cascades: int
    time_bins: int
    center: Array
    side: float
    threshold: float
    values: Array
    occupied: Array


class WithOccupancy(Closing):
    """An object that has an occupancy grid."""

    _kind: str

    def occupancy(self) -> Occupancy:
        """Returns a copy of the occupancy grid."""
        raw, keep = c.vkn_occupancy(), []  # type: Any, list[Any]
        read = getattr(lib, f"vkn_{self._kind}_occupancy")
        with self._guard:
            self._guard.call(read, self._pointer, ctypes.byref(raw))  # its size
            shape = (raw.time_bins, raw.cascades) + (raw.resolution,) * 3
            values = new_array(raw, "values", shape, keep)
            occupied = new_array(raw, "occupied", shape, keep)
            self._guard.call(read, self._pointer, ctypes.byref(raw))
        return Occupancy(raw.resolution, raw.cascades, raw.time_bins, numpy.array(raw.center), raw.side, raw.threshold,
                         values, occupied != 0)

    def set_occupancy(self, grid: Occupancy) -> None:
        """Replaces values and threshold of the occupancy grid."""
        raw, keep = c.vkn_occupancy(), []  # type: Any, list[Any]
        fill(raw, {name: getattr(grid, name) for name in ("resolution", "cascades", "time_bins", "threshold")}, keep)
        shape = (raw.time_bins, raw.cascades) + (raw.resolution,) * 3
        set_array(raw, "values", grid.values, shape, keep)
        self._guard.call(getattr(lib, f"vkn_{self._kind}_set_occupancy"), self._pointer, ctypes.byref(raw))


class Trainer(WithOccupancy):
    """A field in training.

        with vknerf.Trainer("captures/fox", steps=2000) as trainer:
            for stats in trainer.train():
                print(stats.step, stats.psnr)
            trainer.save("fox.safetensors")
    """

    def __init__(self, scene: Union[Scene, Path], settings: Settings = None, *, context: Optional[Context] = None,
                 **more: Any) -> None:
        """Decodes the training images, copies them to the device and initialises the field. Settings are those of
        `settings` and of the keyword arguments; a scene that was opened keeps its own settings scene.*."""
        self.context = context or default_context()
        self.scene = scene if isinstance(scene, Scene) else Scene(scene, settings, **more)
        config = make_config(settings, more)
        with self.scene._guard:
            self._handle = Handle(self.context._guard, "vkn_trainer_destroy", "vkn_trainer_create",
                                  self.context._pointer, self.scene._pointer, config.pointer)

    _kind = "trainer"

    @property
    def settings(self) -> dict[str, Any]:
        """The effective configuration, with all defaults resolved."""
        return read_config(lib.vkn_trainer_config(self._pointer))

    @property
    def backend(self) -> Backend:
        """Precision and kernels, and why they were chosen."""
        return value_of(lib.vkn_trainer_backend(self._pointer).contents)  # type: ignore[no-any-return]

    @property
    def step(self) -> int:
        """Number of finished steps."""
        return int(lib.vkn_trainer_step(self._pointer))

    @property
    def seconds(self) -> float:
        """Training time over all resumes."""
        return float(lib.vkn_trainer_seconds(self._pointer))

    @property
    def finished(self) -> bool:
        """Whether a limit of the configuration is reached."""
        return bool(lib.vkn_trainer_finished(self._pointer))

    def images(self) -> Images:
        """Returns statistics of the training images."""
        raw = c.vkn_images()
        self._guard.call(lib.vkn_trainer_images, self._pointer, ctypes.byref(raw))
        return value_of(raw)  # type: ignore[no-any-return]

    def pass_times(self) -> list[PassTime]:
        """Returns the mean time of each pass per step; empty on devices without timestamps."""
        with self._guard:
            count = lib.vkn_trainer_pass_times(self._pointer, None, 0)
            times = (c.vkn_pass_time * count)()
            count = min(count, lib.vkn_trainer_pass_times(self._pointer, times, count))
            return [value_of(item) for item in times[:count]]

    def run(self, steps: Optional[int] = None, *, seconds: float = 0, report_seconds: float = 0.5,
            report: Optional[Callable[[TrainStats], object]] = None) -> Optional[TrainStats]:
        """Trains `steps` more steps, for `seconds`, or until a limit of the configuration. Returns the last
        statistics; None if a limit was reached before.

        `report` receives statistics while the device is busy: it must not use objects of the device. Ctrl-C raises
        KeyboardInterrupt once the steps under way are finished; the training may then be continued or saved.
        """
        call, last = Call(self._guard), []  # type: Call, list[TrainStats]
        raw = c.vkn_train_run()
        raw.seconds, raw.report_seconds = seconds, report_seconds
        raw.stop = ctypes.pointer(call.stop)

        def on_report(unused: Any, stats: Any) -> None:
            last[:] = [value_of(stats.contents)]
            if report:
                report(last[0])

        with self._guard:
            if steps is not None:
                raw.until_step = self.step + checked_steps(steps)
            raw.report = call.callback(members_of(raw)["report"], on_report)
            call.check(lib.vkn_trainer_run, self._pointer, ctypes.byref(raw))
        return last[0] if last else None

    def train(self, steps: Optional[int] = None, *, seconds: Optional[float] = None, every: Optional[int] = None,
              report_seconds: float = 0.5) -> Iterator[TrainStats]:
        """Trains while it is iterated: `steps` more steps, for `seconds`, or until a limit of the configuration.

        Yields statistics after `every` steps, or about every `report_seconds`. The trainer is idle between two of
        them: the loop may render, save, or end.
        """
        until = None if steps is None else self.step + checked_steps(steps)
        end = None if seconds is None else self.seconds + seconds
        while not self.finished and (until is None or self.step < until) and (end is None or self.seconds < end):
            left = None if until is None else until - self.step
            if every is not None:
                left = checked_steps(every) if left is None else min(left, checked_steps(every))
            yield cast(TrainStats, self.run(left, seconds=0 if every else report_seconds, report_seconds=1e9))

    def tensors(self) -> dict[str, Array]:
        """Returns copies of the field's parameters, f32: "params", which the optimiser updates, "average", which
        renderers evaluate, and those of a coarse field or a proposal."""
        tensors = {}
        with self._guard:
            for index in range(lib.vkn_trainer_tensor_count(self._pointer)):
                raw = c.vkn_tensor()
                self._guard.call(lib.vkn_trainer_tensor, self._pointer, index, ctypes.byref(raw))
                values = numpy.empty(raw.count, dtype=numpy.float32)
                self._guard.call(lib.vkn_trainer_read_tensor, self._pointer, raw.name,
                                 values.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), raw.count)
                tensors[raw.name.decode()] = values
        return tensors

    def set_tensor(self, name: str, values: Array) -> None:
        """Replaces parameters. Renderers evaluate "average", which therefore has to be replaced too."""
        array = numpy.ascontiguousarray(values, dtype=numpy.float32)
        self._call("vkn_trainer_write_tensor", encode(name), array.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                   array.size)

    def resume(self, checkpoint: Path) -> None:
        """Loads the whole state of a checkpoint: training continues as if it had not stopped."""
        self._call("vkn_trainer_resume", encode(checkpoint))

    def init(self, checkpoint: Path) -> None:
        """Loads only parameters and occupancy grid of a checkpoint, for another scene or schedule."""
        self._call("vkn_trainer_init", encode(checkpoint))

    def save(self, checkpoint: Path) -> None:
        """Writes a checkpoint of the whole state."""
        self._call("vkn_trainer_save", encode(checkpoint))

    def renderer(self) -> Renderer:
        """Returns a renderer of the field as it is, and becomes."""
        return Renderer(self)

    def _call(self, function: str, *arguments: Any) -> None:
        self._guard.call(getattr(lib, function), self._pointer, *arguments)

    def __repr__(self) -> str:
        return f"Trainer(step {self.step})" if self._handle else "Trainer(closed)"


class Renderer(Closing):
    """A field with everything that rendering it needs: of a trainer, or of a checkpoint."""

    def __init__(self, field: Union[Trainer, Path], *, precision: Union[Precision, str] = Precision.AUTO,
                 context: Optional[Context] = None) -> None:
        """`field` is a trainer, or the path of a checkpoint; precision and context are for checkpoints only."""
        if isinstance(field, Trainer):
            self.context = field.context
            self._handle = Handle(field._guard, "vkn_renderer_destroy", "vkn_renderer_of_trainer", field._pointer)
        else:
            self.context = context or default_context()
            self._handle = Handle(self.context._guard, "vkn_renderer_destroy", "vkn_renderer_open",
                                  self.context._pointer, encode(field), Precision.parse(precision))

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration of the training, with the renderer's precision."""
        return read_config(lib.vkn_renderer_config(self._pointer))

    @property
    def scene_path(self) -> Optional[str]:
        """Path of the scene at the time of training."""
        return decode(lib.vkn_renderer_scene_path(self._pointer))

    @property
    def step(self) -> int:
        """Number of steps that the field has been trained for."""
        return int(lib.vkn_renderer_step(self._pointer))

    def enable_normals(self) -> None:
        """Adds normals to all pictures from now on."""
        self._guard.call(lib.vkn_renderer_enable_normals, self._pointer)

    def set_time(self, time: float) -> None:
        """Sets the time, 0 to 1, at which a dynamic field is rendered from now on."""
        self._guard.call(lib.vkn_renderer_set_time, self._pointer, time)

    def camera(self, scene: Scene, view: int, split: Union[Split, str] = Split.DEFAULT) -> Camera:
        """Returns the camera of a view as the training has refined it."""
        raw = c.vkn_camera()
        with scene._guard:
            self._guard.call(lib.vkn_renderer_camera, self._pointer, scene._pointer, Split.parse(split), index_of(view),
                             ctypes.byref(raw))
        return value_of(raw)  # type: ignore[no-any-return]

    def render(self, camera: c.Camera, **parameters: Any) -> Picture:
        """Renders one view. Keyword arguments are the members of struct vkn_picture_params: background, supersample,
        crop, transparent, exposure, crop_rotation."""
        raw_camera, raw, keep = picture_parameters(camera, parameters)
        picture = new_picture()
        self._guard.call(lib.vkn_render, self._pointer, ctypes.byref(raw_camera), ctypes.byref(raw), ctypes.byref(picture))
        return Picture(picture, bool(raw.transparent))

    def query(self, positions: Array, directions: Optional[Array] = None, *,
              times: Optional[Array] = None) -> tuple[Array, Optional[Array]]:
        """Evaluates the field at points [..., 3] in the dataset's axes and units. Returns densities [...] per dataset
        unit and, with directions [..., 3] from the camera to the point, colours [..., 3]; else None."""
        raw, keep = c.vkn_points(), []  # type: Any, list[Any]
        shape = vectors_shape(positions, "positions")
        raw.count = count_of(shape)
        for name, value, width in (("positions", positions, (3,)), ("directions", directions, (3,)),
                                   ("times", times, ())):  # type: str, Any, tuple[int, ...]
            set_flat(raw, name, value, shape, width, keep)
        densities = new_array(raw, "densities", shape, keep)
        colors = None if directions is None else new_array(raw, "colors", shape + (3,), keep)
        self._guard.call(lib.vkn_renderer_query, self._pointer, ctypes.byref(raw))
        return densities, colors

    def rays(self, origins: Array, directions: Array, *, nearest: Optional[Array] = None,
             farthest: Optional[Array] = None, times: Optional[Array] = None, normals: bool = False,
             **parameters: Any) -> Rays:
        """Renders rays [..., 3] in the dataset's axes and units, between the distances nearest and farthest if they are
        given. `normals` needs enable_normals. Further arguments are those of render."""
        raw, params, keep = c.vkn_rays(), c.vkn_picture_params(), []  # type: Any, Any, list[Any]
        check_names(parameters, params, "a picture", "size")
        fill(params, parameters, keep)
        shape = vectors_shape(directions, "directions")
        raw.count = count_of(shape)
        for name, value, width in (("origins", origins, (3,)), ("directions", directions, (3,)),
                                   ("nearest", nearest, ()), ("farthest", farthest, ()),
                                   ("times", times, ())):  # type: str, Any, tuple[int, ...]
            set_flat(raw, name, value, shape, width, keep)
        colors, depths = new_array(raw, "colors", shape + (3,), keep), new_array(raw, "depths", shape, keep)
        opacities = new_array(raw, "opacities", shape, keep)
        normal = new_array(raw, "normals", shape + (3,), keep) if normals else None
        self._guard.call(lib.vkn_render_rays, self._pointer, ctypes.byref(raw), ctypes.byref(params))
        return Rays(colors, opacities, depths, normal)

    def export(self, scene: Scene, *, progress: Progress = None, **parameters: Any) -> c.ExportResult:
        """Writes mesh, points and splats of the field. Arguments are those of vknerf.export that concern the files."""
        call, keep = Call(self._guard), []  # type: Call, list[Any]
        check_names(parameters, c.vkn_export_params(), "an export", "size", "job")
        raw = make_parameters(c.vkn_export_params, {**parameters, "progress": progress}, call, keep, {})
        result = c.vkn_export_result()
        with scene._guard, self._guard:
            call.check(lib.vkn_renderer_export, self._pointer, scene._pointer, ctypes.byref(raw), ctypes.byref(result))
        return value_of(result)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Renderer(step {self.step})" if self._handle else "Renderer(closed)"


class Rays(NamedTuple):
    """Pictures of rays: colours [..., 3], opacities and depths [...], and normals [..., 3] or None."""

    colors: Array
    opacities: Array
    depths: Array
    normals: Optional[Array]


def vectors_shape(vectors: Any, name: str) -> tuple[int, ...]:
    shape = numpy.shape(vectors)
    if not shape or shape[-1] != 3:
        raise BadInput(f"{name}: shape {shape} does not end with 3")
    return shape[:-1]


def count_of(shape: tuple[int, ...]) -> int:
    return int(numpy.prod(shape, dtype=numpy.int64))


def set_flat(raw: Any, name: str, value: Any, shape: tuple[int, ...], width: tuple[int, ...], keep: list[Any]) -> None:
    """Sets an array of vectors or numbers of this shape; single ones stand for all."""
    if value is not None:
        try:
            value = numpy.broadcast_to(value, shape + width)
        except ValueError:
            raise BadInput(f"{name}: shape {numpy.shape(value)}, needed is {shape + width}") from None
        set_array(raw, name, value, shape + width, keep)
