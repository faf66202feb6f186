"""Where the user's own source says something that decides how fast the loop is, though no loop runs there.

Those are the lines to edit where the expensive call stands inside somebody else's loop.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .hooks import timed
from .lines import read_syntax
from .originals import open_file
from .passes import Pass
from .places import LIBRARY, USER, SourcePlaces, line_of, unseen
from .words import LEARN

if TYPE_CHECKING:
    Arrival = Callable[[ModuleType], None]

DEEPEST = 60
SB3 = {
    "stable_baselines3.common.base_class": {"BaseAlgorithm": "algorithm"},
    "stable_baselines3.common.vec_env.base_vec_env": {"VecEnv": "vector env"},
    "stable_baselines3.common.callbacks": {"EvalCallback": "evaluation", "CheckpointCallback": "checkpoint"},
}
"""By module: classes, and what is made of them."""
BY_TORCH = ("stable_baselines3", "sb3_contrib")
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
        "Parameter",
        "ParameterDict",
        "ParameterList",
        "double",
        "float64",
        "set_default_dtype",
        "set_flush_denormal",
        "set_num_threads",
    )
)
STARTING = tuple(
    f"{owner}.{name}" for owner in ("multiprocessing", "mp", "context", "ctx") for name in ("Process", "Pool")
)
CLOCKS = tuple("time." + name + unit for name in ("perf_counter", "time", "monotonic") for unit in ("", "_ns"))
WITH_OWNER = frozenset(("torch.compile", *CLOCKS, *STARTING))
"""Names too common to be looked for without what stands before them."""
DEVICES = ("cuda", "mps", "xpu")
EVALUATION_SETTING = re.compile(
    r"(^|_)(eval|evaluation|test)_\w*(episode|interval|freq|every|step)|(^|_)per_(eval|test)$"
)
"""Names of arguments by which libraries are told how often and how long to evaluate."""
MOST_FILES, MOST_MENTIONS = 200, 500


class Made(Pass):
    """Notes the innermost line of the user's own under which each was made; the last one counts."""

    def __init__(self, places: SourcePlaces) -> None:
        self.places = places
        self.where: dict[str, str] = {}
        self.makers: dict[str, tuple[str, str]] = {}
        """By what was made: the package that made it on behalf of the user's line, and where."""
        self.sources: dict[str, str] = {}
        self.algorithm: Any = None
        self.callbacks: dict[str, Any] = {}
        """Those that evaluate and save."""

    def arrivals(self) -> dict[str, Arrival]:
        return {module: self._arrival(classes) for module, classes in SB3.items()}

    def _arrival(self, classes: dict[str, str]) -> Arrival:
        def arrive(module: ModuleType) -> None:
            for name, what in classes.items():
                made = getattr(module, name, None)
                if made is not None:
                    made.__init__ = self._noting(made.__init__, what)

        return arrive

    def _noting(self, make: Callable[..., Any], what: str) -> Callable[..., Any]:
        @functools.wraps(make)
        def initialise(one: Any, *args: Any, **keywords: Any) -> None:
            self.here(what, one)
            if what == "algorithm":
                self.algorithm = one
                self.time_learning(type(one))
            elif what in ("evaluation", "checkpoint"):
                self.callbacks[what] = one
            make(one, *args, **keywords)

        return unseen(initialise)

    def time_learning(self, kind: type) -> None:
        """An algorithm with the methods of Stable-Baselines3's that learns by JAX makes no events of PyTorch's."""
        train = getattr(kind, "train", None)
        if _package(kind.__module__) not in BY_TORCH and "jax" in sys.modules and isinstance(train, FunctionType):
            kind.train = timed(self.watch, train, LEARN)  # type: ignore[attr-defined]

    def here(self, what: str, one: Any) -> None:
        """The user's own code is making `one` just now, by itself or through a library."""
        try:
            self._note(what, sys._getframe(1), {_package(base.__module__) for base in type(one).__mro__})
        except Exception as error:
            self.watch.faults.note(f"where the {what} was made", error)

    def _note(self, what: str, frame: FrameType | None, own: set[str]) -> None:
        maker: tuple[str, str] | None = None
        for _ in range(DEEPEST):
            if frame is None:
                return
            whose, package = self.places.whose(frame.f_code), _package(frame.f_globals.get("__name__"))
            if whose == USER:
                self.where[what] = self._place(frame, beneath=maker is not None)
                self.makers.pop(what, None)
                if maker is not None:
                    self.makers[what] = maker
                return
            if maker is None and whose == LIBRARY and package not in own:
                maker = package, self._place(frame)
            frame = frame.f_back

    def _place(self, frame: FrameType, beneath: bool = False) -> str:
        """Of the line itself; of what a library makes `beneath` a call like `agent.fit(...)`, where `agent` was made:
        its settings are given there."""
        file, line = frame.f_code.co_filename, line_of(frame.f_code, frame.f_lasti)
        line = (beneath and owner_made(file, line)) or line
        where = self.places.where(file, line)
        self.sources[where] = read_syntax(file).source(line)
        return where

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["made"] = self.where
        trace["makers"] = self.makers
        trace.setdefault("sources", {}).update(self.sources)


def _package(module: Any) -> str:
    return str(module).partition(".")[0]


class Mentions(Pass):
    """Functions and classes that set something up, by name, in the files of the script that were loaded."""

    def __init__(self, places: SourcePlaces, script: str) -> None:
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
    """(name, line) of each use of what is looked for, an import is none; where a device is named, where a library is
    told how to evaluate, and where things are appended as they are."""
    try:
        with open_file(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return
    for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.partition(":")[0] in DEVICES:
            yield "device", node.lineno
        for setting in node.keywords if isinstance(node, ast.Call) else ():
            if EVALUATION_SETTING.search(setting.arg or "") and isinstance(setting.value, ast.Constant):
                yield "evaluation", setting.value.lineno
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


def owner_made(file: str, line: int) -> int:
    """Where `agent` was last given a value before a statement `agent.fit(...)`; 0 where the line holds none such."""
    try:
        with open_file(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return 0
    calls = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and node.lineno == line]
    owners = {
        call.func.value.id
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    }
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    lines = [node.lineno for node in made for to in node.targets if isinstance(to, ast.Name) and to.id in owners]
    return max((one for one in lines if one < line), default=0)


def assignment(file: str, owner: str, attribute: str) -> int:
    """The first line in a class where `self.attribute` is given a value; 0 where there is none."""
    try:
        with open_file(file, "rb") as source:
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
