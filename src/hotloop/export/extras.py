"""Libraries that only some users want."""

from __future__ import annotations

import importlib
from typing import Any

from hotloop.core.errors import MissingExtraError


def need(extra: str, what: str, *modules: str) -> list[Any]:
    """The modules, imported; an error with the pip line where one is not installed."""
    found = []
    for name in modules:
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"{what} needs `{error.name}`, which is not installed", f"pip install 'hotloop[{extra}]'"
            ) from None
    return found
