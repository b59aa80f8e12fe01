"""Functions on run directories that take no parameters, and the bundled scene."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Optional

from . import _generated as c
from ._base import check, encode, lib, take_text, value_of
from ._calls import make_config
from ._generated import RunState
from ._scene import Path, read_config


def demo_scene() -> str:
    """Returns the path of the scene that comes with the package: photographs of an object from all sides."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo")


def config_help() -> str:
    """Returns the list of settings with meaning, range and default."""
    return take_text(lib.vkn_config_help())


def run_config(run: Path) -> dict[str, Any]:
    """Returns the configuration that a run was trained with."""
    config = make_config(None, base=os.fspath(run))
    return read_config(config.pointer)


def run_info(run: Path) -> Any:
    """Returns what `vknerf info RUN --json` prints: checkpoint, scene, step, model, precision and more."""
    text = ctypes.c_void_p()
    check(lib.vkn_run_info_json(encode(run), ctypes.byref(text)))
    return json.loads(take_text(text))


def run_state(folder: Path) -> RunState:
    """Returns the state of a run directory, without reading its checkpoint."""
    raw = c.vkn_run_state()
    check(lib.vkn_run_inspect(encode(folder), ctypes.byref(raw)))
    return value_of(raw)  # type: ignore[no-any-return]


def trust_field(sha256: Optional[str] = None) -> None:
    """Trusts a field in GLSL of checkpoints by its SHA-256, or any if None: such fields are executable code."""
    check(lib.vkn_field_trust(None if sha256 is None else encode(sha256)))
