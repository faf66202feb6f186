"""Packages that hotloop's instruments work without: what of them is there, and the sentence where one is missing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import find_spec
from typing import Any

from hotloop.core.errors import MissingExtraError
from hotloop.core.program import install_command

TRAIN = {"torch": "PyTorch", "numba": "numba", "gymnasium": "Gymnasium", "networkx": "networkx", "PIL": "Pillow"}
"""What the extra `train` brings: module -> the name that its users know."""


def is_installed(module: str) -> bool:
    """Nothing is imported. Folders first: import hooks (of editable installations, say) are asked only after them."""
    return PathFinder.find_spec(module) is not None or find_spec(module) is not None


def torch_if_loaded() -> Any:
    """PyTorch where this process has imported it, else None: then no value of it is a tensor."""
    return sys.modules.get("torch")


def torch_if_installed() -> Any:
    """PyTorch, imported now; None where it is not installed."""
    return importlib.import_module("torch") if is_installed("torch") else None


def can_train() -> bool:
    """Whether everything is installed that training imports; imports none of it."""
    return all(map(is_installed, TRAIN))


def require_training(what: str) -> None:
    """MissingExtraError unless everything that trains is installed; imports none of it. `what` begins the sentence."""
    for module in TRAIN:
        if not is_installed(module):
            raise missing_training(what, module)


def need(extra: str, what: str, *modules: str) -> list[Any]:
    """The modules, imported; an error with the pip line where one is not installed."""
    found = []
    for name in modules:
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"{what} needs `{error.name}`, which is not installed", install_command(extra)
            ) from None
    return found


def missing_training(what: str, module: str) -> MissingExtraError:
    return MissingExtraError(f"{what} needs {TRAIN[module]}, which is not installed", install_command("train"))


@contextmanager
def explained_imports(what: str) -> Iterator[None]:
    """An import that fails since nothing that trains is installed becomes one sentence; any other stays what it is."""
    try:
        yield
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        if module in TRAIN and not is_installed(module):
            raise missing_training(what, module) from error
        raise
