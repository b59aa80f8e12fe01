"""Declares the functions of the library, and passes its messages to Python's logging."""
from __future__ import annotations

import atexit
import logging
from typing import Any

from ._base import lib
from ._generated import FUNCTIONS, VERSION

logger = logging.getLogger("vknerf")


def bind() -> None:
    if lib.vkn_version().decode().split(".")[0] != VERSION.split(".")[0]:
        raise ImportError(f"the library is version {lib.vkn_version().decode()}, this package is for {VERSION}")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name, None)
        if function is not None:  # an older library lacks some
            function.restype, function.argtypes = result, arguments


def receive_message(unused: Any, level: int, line: bytes) -> None:
    logger.log(logging.WARNING if level else logging.INFO, "%s", line.decode(errors="replace"))


bind()
_receiver = FUNCTIONS["vkn_log_to"][1][0](receive_message)
lib.vkn_log_to(_receiver, None)
# No message may reach an interpreter that has ended.
atexit.register(lib.vkn_log_to, FUNCTIONS["vkn_log_to"][1][0](), None)
