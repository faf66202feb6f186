"""Changes that compute the same: nothing printed, logged, evaluated or drawn; fused optimisers; rows stored at once."""

from __future__ import annotations

import builtins
import functools
import logging
import re
import sys
from collections import deque
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from . import attribution
from .hooks import ClassHooks
from .libraries import Libraries
from .passes import Pass
from .places import Places, unseen
from .stacks import callers, find_function
from .trial import WARMING, Switch, Trial

RENDERS = re.compile(r"_*(render|update_ui|draw_(frame|screen|window|ui)|render_(frame|gui))")
EVALUATES = re.compile(r"(?i)(.*_)?(eval|evaluate|evaluation)(_.*)?")
FUSED = ("Adam", "AdamW", "SGD")
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

    def __init__(self, places: Places) -> None:
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


class Fused(Switch):
    name = "fused optimiser"
    what = "one kernel for all parameters instead of several operations for each (`fused=True`)"

    def __init__(self, updates: Any) -> None:
        super().__init__()
        self.updates = updates
        """Who knows the optimisers."""
        self._before: list[tuple[dict[str, Any], Any, Any]] = []

    def reason(self, trial: Trial) -> str:
        if not self.optimisers or not trial.updates:
            return "no optimiser of PyTorch's was seen to step"
        names = {type(one).__name__ for one in self.optimisers}
        if not names & set(FUSED):
            return f"{', '.join(sorted(names))} has no fused form"
        groups = [group for one in self.optimisers for group in one.param_groups if "fused" in group]
        if not groups:
            return f"this PyTorch ({sys.modules['torch'].__version__}) has no fused optimisers"
        if all(group["fused"] for group in groups):
            return "the optimiser is fused already"
        devices = {parameter.device.type for group in groups for parameter in group["params"]}
        if not devices <= fused_devices():
            return f"this PyTorch has no fused optimisers for {', '.join(sorted(devices))}"
        return ""

    def count(self, trial: Trial) -> int:
        return trial.updates

    @property
    def optimisers(self) -> list[Any]:
        return [one for one in self.updates.optimisers if one.state]  # those that have stepped

    def on(self) -> None:
        super().on()
        for one in self.optimisers:
            if type(one).__name__ in FUSED:
                for group in one.param_groups:
                    if "fused" in group and not group["fused"]:
                        self._before.append((group, group["fused"], group.get("foreach")))
                        group["fused"], group["foreach"] = True, False

    def off(self) -> None:
        super().off()
        for group, fused, foreach in self._before:
            group["fused"], group["foreach"] = fused, foreach
        self._before.clear()


def fused_devices() -> set[str]:
    """From 2.4 on PyTorch says so itself; before, there was CUDA alone."""
    tells = getattr(sys.modules.get("torch.utils._foreach_utils"), "_get_fused_kernels_supported_devices", None)
    return set(tells()) if tells is not None else {"cuda"}


class Storing(Switch):
    """Where a replay keeps rows in a list or deque, and its method appends its arguments as they are: the rows of one
    env call are kept back and appended together."""

    name = "rows stored in one call"
    what = "the rows of an env call are appended together"

    def __init__(self) -> None:
        super().__init__()
        self.label, self.why_not = "", ""
        self.container = ""
        self._method: Any = None
        self._row: Any = tuple
        self._rows_per_call = 0
        self._counted = self._matched = 0
        self._kept: dict[int, tuple[Any, list[Any]]] = {}
        self.codes: set[CodeType] = set()
        """Functions in which rows are stored."""

    def wrap(self, function: Any, name: str) -> Any:
        if hasattr(function, "watched"):
            return function

        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            self.seen += 1
            if self.active and function is self._method and not keywords and args:
                return self._keep(args[0], args[1:])
            if self._counted >= 200 or not args:
                return function(*args, **keywords)
            return self._learn(function, name, args, keywords)

        return unseen(hook)

    def flushing(self, function: Any) -> Any:
        """Any other method of a replay: it finds all rows in their place."""
        if hasattr(function, "watched"):
            return function

        @functools.wraps(function)
        def hook(*args: Any, **keywords: Any) -> Any:
            if self._kept:
                self.flush()
            return function(*args, **keywords)

        return unseen(hook)

    def _learn(self, function: Any, name: str, args: tuple[Any, ...], keywords: Any) -> Any:
        """What the method does with its arguments, seen from outside."""
        self.codes.update(one.f_code for one in callers(sys._getframe(2)))
        before = {key: len(value) for key, value in containers(args[0]).items()}
        result = function(*args, **keywords)
        self._counted += 1
        for key, value in containers(args[0]).items():
            grown = len(value) - before.get(key, len(value))
            full = isinstance(value, deque) and value.maxlen == len(value) and not grown
            if value and not keywords and (grown == 1 or full) and is_row(value[-1], args[1:]):
                self.container, self._method, self._row = key, function, type(value[-1])
                self.label = f"{type(args[0]).__name__}.{name}"
                self._matched += 1
                break
        self.why_not = f"`{type(args[0]).__name__}.{name}` does more than append its arguments to a list or deque"
        return result

    def look(self, trial: Trial) -> None:
        self._rows_per_call = round(self.seen / max(1, trial.env_calls))
        if self.label:
            self.what = f"the {self._rows_per_call} rows of an env call are appended together, not by `{self.label}`"

    def reason(self, trial: Trial) -> str:
        if not self.seen:
            return "no replay was recognised: no class that has a method such as add or push, and one such as sample"
        if self._rows_per_call < 2:
            return "one call stores all there is to store at an env call"
        if self._matched < self._counted or not self._matched:
            return self.why_not
        return ""

    def _keep(self, replay: Any, row: tuple[Any, ...]) -> None:
        rows = self._kept.setdefault(id(replay), (replay, []))[1]
        rows.append(row if self._row is tuple else self._row(*row))
        if len(rows) >= self._rows_per_call:
            self.flush()

    def flush(self) -> None:
        for replay, rows in self._kept.values():
            getattr(replay, self.container).extend(rows)
        self._kept.clear()

    def off(self) -> None:
        super().off()
        self.flush()


def containers(replay: Any) -> dict[str, Any]:
    attributes = getattr(replay, "__dict__", {})
    return {name: value for name, value in attributes.items() if type(value) in (list, deque)}


def is_row(item: Any, args: tuple[Any, ...]) -> bool:
    """Whether it is a plain or named tuple of just these objects."""
    plain = type(item) is tuple or (isinstance(item, tuple) and hasattr(type(item), "_fields"))
    return plain and len(item) == len(args) and all(one is other for one, other in zip(item, args))


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
        wraps = {attribution.LOG: lambda name, function: self.log.quiet(function), attribution.STORE: self._storing}
        wraps[attribution.SAMPLE] = lambda name, function: self.store.flushing(function)
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
