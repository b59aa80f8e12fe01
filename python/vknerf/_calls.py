"""Owns objects of the library, and makes its calls: guards, callbacks, interruptions, jobs."""
from __future__ import annotations

import ctypes
import json
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Union

import numpy

from ._base import (BadInput, Choice, Structure, check, encode, error_of, fill, last_error, lib, members_of, take_text,
                    value_of)

Settings = Union[Mapping[str, Any], str, None]
"""Settings of a training: a dictionary such as {"steps": 2000, "grid.levels": 8} or {"grid": {"levels": 8}}, or the
path of a JSON file."""
Progress = Union[Callable[[str, int, int], object], None]
"""A function that is called with the work in words, and how much of it is done of how much in all."""
Report = Union[Callable[[Any], object], None]
"""A function that is called with statistics of a training, a TrainStats."""


# ---- ownership -------------------------------------------------------------------------------------------


class Guard:
    """Lets one thread at a time use a device and its objects. Other threads wait.

    Objects are destroyed when their last reference is gone, which may happen in any thread: if the guard is in use,
    the thread that uses it destroys them afterwards.
    """

    def __init__(self, progress: Progress = None) -> None:
        self.lock = threading.RLock()
        self.depth = 0  # calls of the thread that has the lock
        self.dead: list[tuple[Any, ctypes.c_void_p]] = []
        self.progress = progress
        self.callback: Any = None  # of the context, which must not lose it
        self.running: Call | None = None

    def __enter__(self) -> Guard:
        self.lock.acquire()
        self.depth += 1
        return self

    def __exit__(self, *unused: object) -> None:
        self.depth -= 1
        self.lock.release()
        self.drain()

    def call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls a function of the library, and raises its error."""
        with self:
            if self.progress is None:
                check(function(*arguments))
            else:
                Call(self).check(function, *arguments)

    def report(self, unused: Any, what: bytes, done: int, total: int) -> None:
        """Passes progress of the running call to the caller's function. C calls it."""
        if self.running and self.progress:
            self.running.ask(self.progress, (what.decode(errors="replace"), done, total), None)

    def drain(self) -> None:
        while self.dead and self.lock.acquire(blocking=False):
            try:
                if self.depth > 0:  # a callback: the call that runs it destroys the objects at its end
                    return
                destroy, pointer = self.dead.pop()
                destroy(ctypes.byref(pointer))
            finally:
                self.lock.release()


class Handle:
    """A pointer to an object of the library, which is destroyed with the handle."""

    def __init__(self, guard: Guard, destroy: str, create: str, *arguments: Any) -> None:
        self.guard = guard
        self.pointer = ctypes.c_void_p()
        self.destroy = getattr(lib, destroy)
        guard.call(getattr(lib, create), *arguments, ctypes.byref(self.pointer))

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self.guard.dead.append((self.destroy, self.pointer))
            self.guard.drain()


class Object:
    """An object that owns a Handle until it is closed. Arrays that it has given out keep the handle, too."""

    _handle: Handle | None

    @property
    def _pointer(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise BadInput(f"the {type(self).__name__} is closed")
        return self._handle.pointer

    @property
    def _guard(self) -> Guard:
        if self._handle is None:
            raise BadInput(f"the {type(self).__name__} is closed")
        return self._handle.guard

    def close(self) -> None:
        """Releases the object; its arrays stay valid. A second call does nothing."""
        self._handle = None


ObjectType = TypeVar("ObjectType", bound="Closing")


class Closing(Object):
    """An object that `with` closes."""

    def __enter__(self: ObjectType) -> ObjectType:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


# ---- settings --------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Turns a value of a setting into what JSON has."""
    if isinstance(value, Choice):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple, numpy.ndarray)):
        return [plain(item) for item in value]
    return value


def make_config(settings: Settings, more: Mapping[str, Any] | None = None, base: str | None = None) -> Handle:
    """Creates a configuration of `settings` and `more`, on top of the configuration of the run `base`."""
    config = Handle(Guard(), "vkn_config_destroy", "vkn_config_create")
    if base is not None:
        check(lib.vkn_run_config(encode(base), config.pointer))
    if isinstance(settings, (str, os.PathLike)):
        check(lib.vkn_config_read_json(config.pointer, encode(settings)))
        settings = None
    for part in (settings, more):
        if part:
            try:
                text = json.dumps(plain(part), allow_nan=False)
            except (TypeError, ValueError) as error:
                raise BadInput(f"settings: {error}") from None
            check(lib.vkn_config_parse_json(config.pointer, b"settings", text.encode(), False))
    return config


# ---- long calls ------------------------------------------------------------------------------------------


class Call:
    """Runs one call of the library in a thread of its own, and its callbacks in the calling thread.

    Ctrl-C therefore reaches the calling thread at once. An exception, there or in a callback, sets `stop`, waits until
    the library has returned, and is then raised.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        self.guard = guard
        self.stop = ctypes.c_int(0)
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.exception: BaseException | None = None

    def ask(self, function: Callable[..., Any], arguments: Sequence[Any], failed: Any) -> Any:
        """Calls a function in the calling thread; returns `failed` after an exception, of which C must see nothing."""
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.events.put((function, arguments, failed, answer))
        return answer.get()

    def callback(self, kind: Any, function: Callable[..., Any], failed: Any = None) -> Any:
        """Returns a function for C, of the type `kind`."""
        return kind(lambda *arguments: self.ask(function, arguments, failed))

    def fail(self, exception: BaseException) -> None:
        self.exception = self.exception or exception
        self.stop.value = 1

    def answer(self, event: Any) -> None:
        function, arguments, result, answer = event
        try:
            if self.exception is None:
                result = function(*arguments)
        except BaseException as error:
            self.fail(error)
        finally:
            answer.put(result)

    def run(self, function: Callable[..., int], *arguments: Any) -> tuple[int, str]:
        """Returns status and message of the call, unless there is an exception to raise."""
        outcome: list[tuple[int, str]] = []

        def work() -> None:
            try:
                status = function(*arguments)
                outcome.append((status, last_error() if status else ""))
            except BaseException as error:  # wrong types of arguments
                self.fail(error)
            self.events.put(None)

        thread = threading.Thread(target=work, name="vknerf")
        if self.guard:
            self.guard.running = self
        thread.start()
        while True:
            try:
                event = self.events.get(timeout=0.2)
                if event is None:
                    break
                self.answer(event)
            except queue.Empty:
                pass
            except BaseException as error:
                self.fail(error)
        thread.join()
        if self.guard:
            self.guard.running = None
        if self.exception is not None:
            raise self.exception
        return outcome[0]


    def check(self, function: Callable[..., int], *arguments: Any) -> None:
        """Runs the call and raises its error."""
        status, message = self.run(function, *arguments)
        if status != 0:
            raise error_of(status, message)


def run_job(function: str, parameters: type[Structure], arguments: Mapping[str, Any]) -> Any:
    """Calls a function of the library with a structure of parameters that leads to a struct vkn_job."""
    call, keep = Call(), []  # type: tuple[Call, list[Any]]
    values = dict(arguments)
    resumed = values.get("resume") if function == "vkn_run_train" else None
    config = make_config(values.pop("settings", None), base=resumed)
    given = make_config(arguments.get("settings"))
    raw = make_parameters(parameters, values, call, keep, {"config": config.pointer, "given": given.pointer})
    output = getattr(lib, function).argtypes[1]._type_
    result = output()
    status, message = call.run(getattr(lib, function), ctypes.byref(raw), ctypes.byref(result))
    found: Any = None
    if output is ctypes.c_void_p:
        found = take_text(result) if result else None
    elif isinstance(result, Structure):
        found = value_of(result) if status == 0 else None
    elif result:
        found = value_of(result.contents)
        getattr(lib, output._type_.__name__ + "_free")(ctypes.byref(result))
    if status != 0:
        raise error_of(status, message)
    return found


def make_parameters(kind: type[Structure], values: Mapping[str, Any], call: Call, keep: list[Any],
                    configs: Mapping[str, Any]) -> Structure:
    """Fills a structure of parameters, and those that it points to."""
    raw = kind()
    own = {name: value for name, value in values.items() if name not in ("progress", "report")}
    for name, member in members_of(raw).items():
        target = getattr(member, "_type_", None)
        if name.startswith("has_") and own.get(name[4:]) is not None:
            own[name] = True
        elif isinstance(target, type) and issubclass(target, Structure) and target.__name__.startswith("vkn_") and (
                target.__name__.endswith("_params") or target.__name__ == "vkn_job"):
            nested = make_parameters(target, values, call, keep, configs)
            keep.append(nested)
            setattr(raw, name, ctypes.pointer(nested))
            own.pop(name, None)
        elif name in configs and (name != "given" or values.get("resume")):
            setattr(raw, name, configs[name])
    fill(raw, own, keep)
    kinds = members_of(raw)
    if kind.__name__ == "vkn_job":
        raw.quiet = True  # standard error is not where Python's users look
        raw.stop = ctypes.pointer(call.stop)
    if values.get("progress") and "progress" in kinds:
        raw.progress = call.callback(kinds["progress"], lambda unused, what, done, total: values["progress"](
            what.decode(errors="replace"), done, total))
    if values.get("report") and "callbacks" in kinds:
        callbacks = kinds["callbacks"]._type_()
        callbacks.report = call.callback(members_of(callbacks)["report"], lambda unused, stats: values["report"](
            value_of(stats.contents)))
        keep.append(callbacks)
        raw.callbacks = ctypes.pointer(callbacks)
    return raw
