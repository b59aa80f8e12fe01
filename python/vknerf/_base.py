"""Loads the library, and passes values and errors between Python and C."""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any

import numpy

Pointer: Any = ctypes.POINTER(ctypes.c_int).__mro__[1]  # the base of all types of pointers


# ---- the library -----------------------------------------------------------------------------------------


def load() -> Any:
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    name = "libvknerf.dll" if sys.platform == "win32" else "libvknerf.so.0"
    path = os.environ.get("VKNERF_LIBRARY") or os.path.join(folder, name)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{path}: {error}. VKNERF_LIBRARY may name another library.") from None


lib = load()
lib.vkn_version.restype = ctypes.c_char_p
lib.vkn_last_error.restype = ctypes.c_char_p


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


# ---- arrays ----------------------------------------------------------------------------------------------


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


def set_array(raw: Structure, name: str, value: Any, shape: Sequence[int], keep: list[Any]) -> Any:
    """Points a member to a C array of its own type with the values of an array of this shape; None leaves it NULL."""
    if value is None:
        return None
    kind = members_of(raw)[name]
    try:
        array = numpy.asarray(value, dtype=kind._type_, order="C")
    except (TypeError, ValueError):
        raise BadInput(f"{name}: not an array of numbers") from None
    if array.shape != tuple(shape):
        raise BadInput(f"{name}: shape {array.shape}, needed is {tuple(shape)}")
    setattr(raw, name, array.ctypes.data_as(kind))
    keep.append(array)
    return array


def new_array(raw: Structure, name: str, shape: Sequence[int], keep: list[Any]) -> Any:
    """Returns a new array, to which a member is set and which the library fills."""
    return set_array(raw, name, numpy.zeros(shape, dtype=members_of(raw)[name]._type_), shape, keep)
