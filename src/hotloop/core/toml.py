"""TOML of settings, whoever wrote it: bounded in size before it is parsed, and in depth after."""

from __future__ import annotations

import tomllib
from typing import Any

MAX_SETTINGS_BYTES = 256 * 2**10
DEEPEST = 16
_MOST_DOTS = 1_000
"""In a line of TOML: its parser takes time by the square of a dotted key's parts, 30,000 of them are minutes."""


def require_shallow(value: Any) -> None:
    """Raise ValueError where lists and tables are nested so deeply that what walks through them would not come back."""
    level = [value]
    for _ in range(DEEPEST + 1):
        tables = [item for item in level if isinstance(item, dict | list)]
        if not tables:
            return
        level = [inner for item in tables for inner in (item.values() if isinstance(item, dict) else item)]
    raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def parse_toml(data: bytes) -> dict[str, Any]:
    """Settings. Raises ValueError, also for what would take the parser minutes."""
    if len(data) > MAX_SETTINGS_BYTES:
        raise ValueError(f"it has {len(data)} bytes; settings have at most {MAX_SETTINGS_BYTES}")
    if any(line.count(b".") > _MOST_DOTS for line in data.split(b"\n")):
        raise ValueError(f"it has a line with more than {_MOST_DOTS} dots")
    try:
        tree = tomllib.loads(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    require_shallow(tree)
    return tree
