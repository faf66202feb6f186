"""Changes that compute the same: nothing printed, logged, evaluated or drawn; and the hooks that they sit in."""

from __future__ import annotations

import builtins
import functools
import logging
import re
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from . import words
from .hooks import ClassHooks
from .libraries import Libraries
from .passes import Pass
from .places import SourcePlaces, unseen
from .stacks import callers, find_function
from .storing import Storing
from .trial import WARMING, Switch, Trial

RENDERS = re.compile(r"_*(render|update_ui|draw_(frame|screen|window|ui)|render_(frame|gui))")
EVALUATES = re.compile(r"(?i)(.*_)?(eval|evaluate|evaluation)(_.*)?")
MOST_CODES = 4_096


class Logging(Switch):
    name = "logging and printing off"
    what = "calls of print, logging, SummaryWriter, tqdm, wandb and matplotlib return at once"

    def quiet(self, function: Any) -> Any:
        """The same function, which does nothing while the switch is on."""
        if hasattr(function, "watched"):
            return function

        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            self.seen += 1
            return None if self.active else function(*args, **keywords)

        return unseen(hook)

    def reason(self, trial: Trial) -> str:
        return "" if self.seen else "nothing was printed or logged while the program was looked at"


class Evaluation(Switch):
    """Functions called `eval...` that step envs, and Stable-Baselines3's `evaluate_policy`: left out, the last result
    stands for theirs."""

    name = "evaluation off"
    may_come_late = True

    def __init__(self, places: SourcePlaces) -> None:
        super().__init__()
        self.places = places
        self.trial: Trial | None = None
        self.what = "functions that evaluate are not called: their last result stands for them"
        self.seconds = 0.0
        self.learning: set[CodeType] = set()
        """Functions in which the program learns: they do more than evaluate."""
        self._known: set[CodeType] = set()
        self._under_way: CodeType | None = None
        """An evaluation that was found when it had begun."""

    def wrap(self, function: Any) -> Any:
        if hasattr(function, "watched"):
            return function
        last: list[Any] = []

        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            trial = self.trial
            if trial is None or trial.over or trial.apart:
                return function(*args, **keywords)
            self.seen += 1
            if self.active and last:
                return last[0]
            start = trial.clock()
            trial.apart += 1
            try:
                result = function(*args, **keywords)
            finally:
                trial.apart -= 1
                self.seconds += trial.clock() - start
            last[:] = [result]
            return result

        return unseen(hook)

    def look_at_caller(self, trial: Trial) -> None:
        """An env call by a function that was not seen before: one of those around it may be for evaluation."""
        if trial.state == WARMING or (trial.learns and not self.learning):
            return  # who learns is not known yet
        found = callers(sys._getframe(1))
        if self._under_way is not None:
            if any(one.f_code is self._under_way for one in found):
                trial.spoil()
                return
            self._under_way = None
        if not found or found[0].f_code in self._known or len(self._known) > MOST_CODES:
            return
        self._known.add(found[0].f_code)
        for one in found:
            code = one.f_code
            place = find_function(one) if EVALUATES.fullmatch(code.co_name) and code not in self.learning else None
            if place is not None and not hasattr(place.function, "watched"):
                where = self.places.where(code.co_filename, code.co_firstlineno)
                self.what = f"`{place.label}` ({where}) is not called: its last result stands for it"
                place.put(self.wrap(place.function))
                self._under_way = code
                trial.spoil()

    def reason(self, trial: Trial) -> str:
        if self.seen:
            return ""
        seen = f"no evaluation was seen in {trial.env_steps:,} env steps"
        return f"{seen}: no function called `eval...` stepped an env twice"


class Rendering(Switch):
    name = "rendering off"
    what = "the env's own `render` returns at once"

    def __init__(self) -> None:
        super().__init__()
        self.returns = False

    def wrap(self, function: Any) -> Any:
        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            self.seen += 1
            if self.active:
                return None
            result = function(*args, **keywords)
            self.returns = self.returns or result is not None
            return result

        return unseen(hook)

    def reason(self, trial: Trial) -> str:
        if not self.seen:
            return "nothing was rendered while the program was looked at"
        if self.returns:
            return "the program uses the frames that are rendered: without them it would be another program"
        return ""


class SwitchedClasses(ClassHooks):
    """Hooks on classes, of which those on loggers, replays and the envs' rendering can be switched."""

    def __init__(self, named: Any, log: Logging, render: Rendering, store: Storing) -> None:
        super().__init__(named)
        self.log, self.render, self.store = log, render, store

    def _hook_env(self, made: type) -> None:
        super()._hook_env(made)
        for name, function in list(made.__dict__.items()):
            if isinstance(function, FunctionType) and RENDERS.fullmatch(name):
                self._put(made, name, self.render.wrap(function))

    def _hook_replay(self, made: type) -> None:
        super()._hook_replay(made)
        hooked = self.originals.get(made, {})
        if hooked:
            for name, function in list(made.__dict__.items()):
                reads = not name.startswith("__") or name in ("__len__", "__iter__", "__getitem__")
                if reads and isinstance(function, FunctionType) and name not in hooked:
                    self._put(made, name, self.store.flushing(function))

    def _hook_events(self, made: type, chosen: Callable[[str], Any], kind: str, rows: bool = False) -> None:
        wraps = {words.LOG: lambda name, function: self.log.quiet(function), words.STORE: self._storing}
        wraps[words.SAMPLE] = lambda name, function: self.store.flushing(function)
        wrap = wraps.get(kind)
        if wrap is None:
            super()._hook_events(made, chosen, kind, rows)
            return
        for name, function in list(made.__dict__.items()):
            if isinstance(function, FunctionType) and chosen(name):
                self._put(made, name, wrap(name, function))

    def _storing(self, name: str, function: Any) -> Any:
        return self.store.wrap(function, name)


class SwitchedLibraries(Libraries):
    """What prints, logs and evaluates, made so that it can be switched."""

    def __init__(self, classes: SwitchedClasses, log: Logging, evaluation: Evaluation) -> None:
        super().__init__(classes)
        self.log, self.evaluation = log, evaluation

    def prepare(self) -> None:
        builtins.print = self.log.quiet(builtins.print)
        log = self.log.quiet(logging.Logger._log)
        logging.Logger._log = unseen(log, logging._srcfile)  # type: ignore[method-assign]

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        def quiet(*names: str) -> Callable[[ModuleType], None]:
            def arrive(module: ModuleType) -> None:
                for name in names:
                    if hasattr(module, name):
                        setattr(module, name, self.log.quiet(getattr(module, name)))

            return arrive

        def evaluates(module: ModuleType) -> None:
            label = "evaluate_policy"
            setattr(module, label, self.evaluation.wrap(getattr(module, label)))

        return {
            **super().arrivals(),
            "numpy.random": lambda module: None,
            "wandb": quiet("log"),
            "matplotlib.pyplot": quiet("pause", "savefig", "show", "draw"),
            "stable_baselines3.common.evaluation": evaluates,
        }


class Callers(Pass):
    """Looks at who calls envs, for functions that evaluate."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    watch: Trial

    def begin(self) -> None:
        self.evaluation.trial = self.watch

    def on_env(self, now: float) -> None:
        self.evaluation.look_at_caller(self.watch)
