"""Loads the library, and passes values, errors, callbacks and messages between Python and C."""
from __future__ import annotations

import atexit
import ctypes
import json
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any, TypeVar, Union

import numpy

Settings = Union[Mapping[str, Any], str, None]
"""Settings of a training: a dictionary such as {"steps": 2000, "grid.levels": 8} or {"grid": {"levels": 8}}, or the
path of a JSON file."""
Progress = Union[Callable[[str, int, int], object], None]
"""A function that is called with the work in words, and how much of it is done of how much in all."""
Report = Union[Callable[[Any], object], None]
"""A function that is called with statistics of a training, a TrainStats."""

logger = logging.getLogger("vknerf")
Pointer: Any = ctypes.POINTER(ctypes.c_int).__mro__[1]  # the base of all types of pointers


# ---- errors ----------------------------------------------------------------------------------------------


class Error(RuntimeError):
    """A call has failed: memory has run out, a disk is full, a training has diverged. The base of all errors."""

    __module__ = "vknerf"


class BadInput(Error, ValueError):
    """An argument, a setting or a file is wrong; the message names it."""

    __module__ = "vknerf"


class NoDevice(Error):
    """No Vulkan device can be used, or the device was lost."""

    __module__ = "vknerf"


class Interrupted(Error):
    """A call was stopped on request."""

    __module__ = "vknerf"


ERRORS = {2: BadInput, 3: NoDevice, 130: Interrupted}


def error_of(status: int, message: str) -> Error:
    return ERRORS.get(status, Error)(message)


def last_error() -> str:
    return str(lib.vkn_last_error().decode(errors="replace"))


def check(status: int) -> None:
    """Raises the error of a call of this thread."""
    if status != 0:
        raise error_of(status, last_error())


# ---- values ----------------------------------------------------------------------------------------------


class Choice(IntEnum):
    """A named value. Its name as a setting is str(value); `parse` accepts such a name."""

    text: str

    def __new__(cls, value: int, text: str = "") -> Choice:
        member = int.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, value: Any) -> int:
        """Returns the number of a value, of its name or of its number."""
        if isinstance(value, Choice) and not isinstance(value, cls):
            raise BadInput(f"{type(value).__name__}.{value.name} is no {cls.__name__}")
        for member in cls:
            if isinstance(value, str) and value.lower() in (member.text.lower(), member.name.lower()):
                return int(member)
        if isinstance(value, int):
            return int(value)
        raise BadInput(f"{value!r} is no {cls.__name__}: {', '.join(member.text for member in cls)}")


class Structure(ctypes.Structure):
    """A structure of the headers. Its member `size` is set."""

    _enumerations_: dict[str, type[Choice]] = {}
    _counts_: dict[str, str] = {}
    _value_: Any = None

    def __init__(self) -> None:
        super().__init__()
        if self._fields_[0][0] == "size":
            self.size = ctypes.sizeof(self)


def members_of(kind: Any) -> dict[str, Any]:
    """Returns the types of a structure's members, by name."""
    return {member[0]: member[1] for member in kind._fields_}


class Value:
    """Values of a structure, owned by Python."""

    def __post_init__(self) -> None:
        """Checks the values; dataclasses call it."""


def encode(text: Any) -> bytes:
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise BadInput(f"{text!r} is no text or path")
    encoded = os.fsencode(text)
    if b"\0" in encoded:
        raise BadInput(f"{text!r} has a byte 0")
    return encoded


def pointer_to(target: Any, value: Any, keep: list[Any]) -> Any:
    """Returns a pointer to a new structure of the type `target` with the values of a dictionary or a Value."""
    raw = target()
    fill(raw, value if isinstance(value, Mapping) else vars(value), keep)
    keep.append(raw)
    return ctypes.pointer(raw)


def check_names(values: Mapping[str, Any], raw: Structure, what: str, *hidden: str) -> None:
    """Refuses names that are no members of a structure."""
    names = [name for name in members_of(raw) if name not in hidden]
    for name in values:
        if name not in names:
            raise BadInput(f"{name} is no parameter of {what}: {', '.join(names)}")


def fill(raw: Structure, values: Mapping[str, Any], keep: list[Any]) -> None:
    """Sets members of a structure. Memory that members point to is appended to `keep`."""
    for name, kind in members_of(raw).items():
        if name not in values or name == "size":
            continue
        value = values[name]
        try:
            if name in raw._enumerations_:
                setattr(raw, name, raw._enumerations_[name].parse(value))
            elif value is None:
                continue
            elif name in raw._counts_:
                items = [value] if isinstance(value, (str, os.PathLike)) else list(value)
                array = (kind._type_ * len(items))(*(encode(item) for item in items))
                setattr(raw, name, ctypes.cast(array, kind))
                setattr(raw, raw._counts_[name], len(items))
                keep.append(array)
            elif kind is ctypes.c_char_p:
                setattr(raw, name, encode(value))
            elif issubclass(kind, Pointer):
                setattr(raw, name, pointer_to(kind._type_, value, keep))
            elif hasattr(kind, "_length_") and kind._type_ is not ctypes.c_char:
                numbers = numpy.asarray(value, dtype=float).ravel()
                if numbers.size != kind._length_:
                    raise BadInput(f"{kind._length_} numbers are needed, not {numbers.size}")
                setattr(raw, name, kind(*numbers))
            elif kind in (ctypes.c_float, ctypes.c_double, ctypes.c_bool):
                setattr(raw, name, bool(value) if kind is ctypes.c_bool else float(value))
            else:
                set_whole_number(raw, name, kind, value)
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from None
        except (TypeError, ValueError):
            raise BadInput(f"{name}: {value!r} is of the wrong type") from None


def set_whole_number(raw: Structure, name: str, kind: Any, value: Any) -> None:
    number = value.__index__() if hasattr(value, "__index__") else int(value) if float(value).is_integer() else None
    limit = 1 << (8 * ctypes.sizeof(kind) - (0 if kind(-1).value > 0 else 1))
    if number is None or not 0 <= number < limit:
        raise BadInput(f"{value!r} is no whole number from 0 to {limit - 1}")
    setattr(raw, name, number)


def decode(text: bytes | None) -> str | None:
    return None if text is None else os.fsdecode(text)


def value_of(raw: Structure) -> Any:
    """Copies a structure, and everything that it points to, to an object of its Value class."""
    values = {}
    names = members_of(raw)
    for name in (field.name for field in fields(raw._value_)):
        value = getattr(raw, name)
        if name in raw._enumerations_:
            value = raw._enumerations_[name](value)
        elif name in raw._counts_:
            value = [convert(value[i]) for i in range(getattr(raw, raw._counts_[name]))]
        elif hasattr(names[name], "_length_") and not isinstance(value, bytes):
            value = tuple(value)
        else:
            value = convert(value)
        values[name] = value
    return raw._value_(**values)


def convert(value: Any) -> Any:
    if isinstance(value, bytes):
        return decode(value)
    if isinstance(value, Structure):
        return value_of(value)
    if isinstance(value, Pointer):
        return value_of(value.contents) if value else None
    return value


def take_text(pointer: ctypes.c_void_p | int | None) -> str:
    """Returns a text that the caller has to free, and frees it."""
    address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    if not address:
        raise Error(last_error())
    try:
        return os.fsdecode(ctypes.string_at(address))
    finally:
        lib.vkn_free(address)


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


def view(address: Any, shape: tuple[int, ...], kind: Any, owner: Any) -> Any:
    """Returns an array on memory of the library, which `owner` keeps; None for NULL."""
    if not address:
        return None
    count = 1
    for side in shape:
        count *= side
    location = ctypes.cast(address, ctypes.c_void_p).value
    buffer = (kind * count).from_address(location)
    buffer.owner = owner  # the array's base is the buffer
    return numpy.frombuffer(buffer, dtype=kind).reshape(shape) if count else numpy.empty(shape, dtype=kind)


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
    output = FUNCTIONS[function][1][1]._type_
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


# ---- loading ---------------------------------------------------------------------------------------------


def load() -> Any:
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    name = "vknerf.dll" if sys.platform == "win32" else "libvknerf.so.0"
    path = os.environ.get("VKNERF_LIBRARY") or os.path.join(folder, name)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path}: {error}. VKNERF_LIBRARY may name another library.") from None


def bind() -> None:
    if lib.vkn_version().decode().split(".")[0] != VERSION.split(".")[0]:
        raise ImportError(f"the library is version {lib.vkn_version().decode()}, this package is for {VERSION}")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name, None)
        if function is not None:  # an older library lacks some
            function.restype, function.argtypes = result, arguments


def receive_message(unused: Any, level: int, line: bytes) -> None:
    logger.log(logging.WARNING if level else logging.INFO, "%s", line.decode(errors="replace"))


lib = load()
lib.vkn_version.restype = ctypes.c_char_p
lib.vkn_last_error.restype = ctypes.c_char_p
from ._generated import FUNCTIONS, VERSION  # noqa: E402  # needs the classes above

bind()
_receiver = FUNCTIONS["vkn_log_to"][1][0](receive_message)
lib.vkn_log_to(_receiver, None)
# No message may reach an interpreter that has ended.
atexit.register(lib.vkn_log_to, FUNCTIONS["vkn_log_to"][1][0](), None)
