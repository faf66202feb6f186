"""Where the user's own source says something that decides how fast the loop is, though no loop runs there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

from .passes import Pass
from .places import USER, Places

WANTED = frozenset(
    (
        "set_detect_anomaly",
        "detect_anomaly",
        "DataLoader",
        "SyncVectorEnv",
        "AsyncVectorEnv",
        "DummyVecEnv",
        "SubprocVecEnv",
        "make_vec",
        "make_vec_env",
        "MultivariateNormal",
    )
)
WITH_OWNER = frozenset(("torch.compile", "multiprocessing.Process", "mp.Process", "multiprocessing.Pool", "mp.Pool"))
"""Names too common to be looked for without what stands before them."""
MOST_FILES, MOST_MENTIONS = 200, 500


class Mentions(Pass):
    """Functions and classes that set something up, by name, in the files of the script that were loaded."""

    def __init__(self, places: Places, script: str) -> None:
        self.places, self.script = places, script

    def add_to(self, trace: dict[str, Any]) -> None:
        found = []
        for file in self._files():
            for name, line in mentions(file):
                found.append(dict(name=name, where=self.places.where(file, line)))
        trace["mentions"] = found[:MOST_MENTIONS]

    def _files(self) -> list[str]:
        loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        own = [file for file in loaded if isinstance(file, str) and self.places.kind(file) == USER]
        return list(dict.fromkeys([self.script, *own]))[:MOST_FILES]


def mentions(file: str) -> Iterator[tuple[str, int]]:
    """(name, line) of each use of what is looked for, an import is none; and where things are appended as they are."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            container = node.func.value
            name = container.attr if isinstance(container, ast.Attribute) else getattr(container, "id", "")
            if len(node.args) == 1 and isinstance(node.args[0], (ast.Name, ast.Attribute)):
                yield f"append:{name}", node.lineno
            continue
        if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node, ast.Name):
            name = node.id
        else:
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            name = node.attr if node.attr in WANTED else f"{owner}.{node.attr}"
        if name in WANTED or name in WITH_OWNER:
            yield name, node.lineno


def assignment(file: str, owner: str, attribute: str) -> int:
    """The first line in a class where `self.attribute` is given a value; 0 where there is none."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return 0
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == owner]
    lines = [
        node.lineno
        for one in classes
        for node in ast.walk(one)
        if isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store)
    ]
    return min(lines, default=0)
