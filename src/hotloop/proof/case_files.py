"""What `hotloop prove FILE` finds: pairs and cases in a file, or in all files of a folder; all of them or those named.

`FILE.py::NAME` and `FOLDER::NAME` choose. A case is named family/variant/lane/size, where parts may be left out
(`benchmarks::dqn-update/native`: all native ones); a pair is named as it is called.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from hotloop.core.errors import ArgumentError, HotloopError, SettingsError
from hotloop.core.user_files import run_file
from hotloop.core.values import nearest
from hotloop.proof.case import Case, makers_of
from hotloop.proof.function_pairs import Pair, pairs_of

MARKED = re.compile(r"^@(?:hotloop\.)?(?:pair|cases)\(", re.MULTILINE)
"""How a file of a folder shows that it has some; the others are not run."""


@dataclass
class PairsAndCases:
    """Of one file or folder, each in the order in which it stands there."""

    pairs: list[Pair] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    """Family -> what it is about."""

    def add(self, more: PairsAndCases) -> None:
        """What is there already is not added again."""
        there = {id(one) for one in (*self.pairs, *self.cases)}
        self.pairs += [pair for pair in more.pairs if id(pair) not in there]
        self.cases += [case for case in more.cases if id(case) not in there]
        self.about |= more.about

    def named(self, name: str) -> PairsAndCases:
        wanted = name.strip("/").split("/")
        pairs = [pair for pair in self.pairs if pair.title == name]
        cases = [case for case in self.cases if fits(wanted, case.parts)]
        if not pairs and not cases:
            raise SettingsError(f"there is no case `{name}`", self._hint(name, wanted))
        if cases and all(case.unavailable for case in cases):
            raise SettingsError(f"`{name}` cannot run here", cases[0].unavailable)
        return PairsAndCases(pairs, cases, self.about)

    def runnable(self, quick: bool) -> list[Case]:
        """The cases that can run here; with `quick` the small set."""
        return [case for case in self.cases if not case.unavailable and (case.quick or not quick)]

    def listed(self) -> list[str]:
        """Pairs, then cases by family, those of the small set marked: lines for a terminal."""
        lines = [f"  {pair.title}" for pair in self.pairs]
        cases = self.runnable(quick=False)
        for family in dict.fromkeys(case.family for case in cases):
            lines.append(f"{family}: {self.about[family]}")
            lines += [f"  {'*' if case.quick else ' '} {case.name}" for case in cases if case.family == family]
        quick = ["* in the small set (`--quick`)"] if any(case.quick for case in self.cases) else []
        return [*lines, *quick, *self.not_available()]

    def not_available(self) -> list[str]:
        """Why some cases cannot run here, each reason once."""
        reasons = {case.unavailable: f"{case.lane} lane" if case.lane else case.family for case in self.cases}
        return [f"{what} not available: {reason}" for reason, what in reasons.items() if reason]

    def _hint(self, name: str, wanted: list[str]) -> str:
        """The nearest full name, or the nearest part where only one is wrong."""
        families = {case.family for case in self.cases}
        if wanted[0] not in families:
            known = families | {pair.title for pair in self.pairs}
            near = nearest(wanted[0], known)
            return f"did you mean `{near}`?" if near else f"one of {', '.join(sorted(known))}"
        names = {"/".join(case.parts[: len(wanted)]) for case in self.cases} | {case.name for case in self.cases}
        near = nearest(name, names)
        return f"did you mean `{near}`?" if near else f"`--list` shows all of `{wanted[0]}`"


def fits(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether `wanted` starts with the family and names further parts in their order."""
    if wanted[0] != parts[0]:
        return False
    rest = iter(parts)
    return all(part in rest for part in wanted)


def find(words: Sequence[str]) -> PairsAndCases:
    """Everything that these files and folders have, or what is named of it (`FILE.py::NAME`)."""
    found = PairsAndCases()
    for word in words:
        place, _, name = word.partition("::")
        here = found_in(Path(place).expanduser())
        found.add(here.named(name) if name else here)
    return found


def found_in(place: Path) -> PairsAndCases:
    """Run the file, or the marked files of the folder, once per process."""
    if not place.exists():
        hint = "give the path from the folder you are in"
        if "." not in place.name:
            hint = f"{hint}; cases of hotloop's own are in a checkout of it: `hotloop prove benchmarks::{place}`"
        raise ArgumentError(f"there is no file or folder `{place}`", hint)
    files = [place] if place.is_file() else [path for path in sorted(place.glob("*.py")) if has_marks(path)]
    found = PairsAndCases()
    for path in files:
        found.add(_found_in_file(path.resolve()))
    if not found.pairs and not found.cases:
        raise ArgumentError(
            f"`{place}` has no pairs and no cases",
            "mark fast functions with `@hotloop.pair(plain, inputs)`, what makes cases with `@hotloop.cases(about)`",
        )
    return found


def has_marks(path: Path) -> bool:
    return MARKED.search(path.read_text(errors="replace")) is not None


@functools.cache
def _found_in_file(path: Path) -> PairsAndCases:
    try:
        module = _imported(path).__name__
        made = [(maker, maker.make()) for maker in makers_of(module)]
    except HotloopError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"`{path}` cannot be loaded: {type(error).__name__}: {error}", f"run `python {path}`"
        ) from error
    cases = [case for _, some in made for case in some]
    return PairsAndCases(pairs_of(module), cases, {case.family: maker.about for maker, some in made for case in some})


def _imported(path: Path) -> ModuleType:
    """As a part of its package, where it stands in one (it may import its neighbors by that name); else by itself."""
    if not (path.parent / "__init__.py").is_file():
        return run_file(path)
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        root, parts = root.parent, [root.name, *parts]
    sys.path.insert(0, str(root))
    try:
        module = importlib.import_module(".".join(parts))
    finally:
        sys.path.remove(str(root))
    if Path(module.__file__ or "").resolve() != path:
        raise ArgumentError(
            f"`{path}` cannot be loaded: another `{module.__name__}` is, {module.__file__}", "rename one of the two"
        )
    return module
