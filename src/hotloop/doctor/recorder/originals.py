"""Python's own functions as they were before the script began: programs replace them, for themselves and not for us."""

from __future__ import annotations

import builtins
import json
import os
import time
from collections.abc import Callable
from typing import Any

open_file = builtins.open
replace_file, list_folder, own_pid = os.replace, os.listdir, os.getpid
monotonic = time.monotonic
_Encoder, _stat = json.JSONEncoder, os.stat


def as_json(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """`json.dumps` makes an encoder of whatever class stands in `json` by then."""
    return _Encoder(default=default).encode(value)


def exists(path: str) -> bool:
    """`os.path.exists` asks whatever `os.stat` is by then."""
    try:
        _stat(path)
    except (OSError, ValueError):
        return False
    return True
