"""Changes to how a program learns: updates left out.

An update that is a function of its own is left out whole, its last result stands for it. Where it is written into the
loop, or one call makes many updates, backward and optimizer step are left out and the loss is still computed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from .order import CHANGES_LEARNING
from .passes import Pass
from .places import SourcePlaces, unseen
from .stacks import callers, codes, find_function, innermost_common
from .storing import Storing
from .switches import Evaluation
from .trial import LOOKING, TRYING, Switch, Trial

FEW = 1.5
"""Updates in one call of a function up to which the call is the update."""


class Updates(Pass):
    """Sees backwards and optimizer steps, finds the function that is the update, and leaves out what it is told to."""

    watch: Trial

    def __init__(self, places: SourcePlaces, store: Storing, evaluation: Evaluation) -> None:
        self.places, self.store, self.evaluation = places, store, evaluation
        self.optimisers: list[Any] = []
        self.skips: Callable[[int], bool] | None = None
        """Whether the update of this number is left out; None: none is."""
        self.whole_calls = False
        """Whether `skips` is asked for calls of the update's function, however many updates it makes."""
        self.function = ""
        """The update's, as a reader knows it; empty where there is none."""
        self.calls = self.steps = self.made = 0
        self._round: set[int] = set()
        self._per_round = 1
        self._rounds = 0
        self._skipping = False
        self._env_codes: set[CodeType] = set()
        self._backward: list[CodeType] = []
        self._update: list[CodeType] = []
        self._inside = 0

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch": self._arrive}

    def _arrive(self, torch: ModuleType) -> None:
        optimiser = torch.optim.Optimizer
        make, watch = optimiser.__init__, self.watch
        hook = watch.faults.guarded("an optimizer", functools.partial(self._hook_steps))

        @functools.wraps(make)
        def initialise(one: Any, *args: Any, **keywords: Any) -> None:
            make(one, *args, **keywords)
            self.optimisers.append(one)
            hook(type(one))

        optimiser.__init__ = unseen(initialise)
        torch.Tensor.backward = self._backward_hook(torch.Tensor.backward)
        torch.autograd.backward = self._backward_hook(torch.autograd.backward)

    def on_env(self, now: float) -> None:
        if self.watch.state != TRYING:
            self._env_codes.update(codes(sys._getframe(1)))
        elif self.skips is not None and not self.whole_calls:
            self._skipping = self.skips(self._rounds)

    def _hook_steps(self, kind: Any) -> None:
        function = kind.step
        if hasattr(function, "watched"):
            return
        last: list[Any] = [None]

        @functools.wraps(function)
        def step(one: Any, *args: Any, **keywords: Any) -> Any:
            if not self._counts():
                return function(one, *args, **keywords)
            self._begin_step(id(one))
            if self._skipping:
                result = last[0]
            else:
                result = last[0] = function(one, *args, **keywords)
                self.made += 1
            self._end_step()
            return result

        kind.step = unseen(step)

    def _backward_hook(self, function: Any) -> Any:
        @functools.wraps(function)
        def backward(*args: Any, **keywords: Any) -> Any:
            if not self._counts():
                return function(*args, **keywords)
            if self.watch.state == LOOKING:
                self._backward = codes(sys._getframe(1))
            return None if self._skipping else function(*args, **keywords)

        return unseen(backward)

    def _counts(self) -> bool:
        return self.watch.begun and not self.watch.over and not self.watch.off_main_thread()

    def _begin_step(self, one: int) -> None:
        self.steps += 1
        if one in self._round:
            self._per_round = max(self._per_round, len(self._round))
            self._round.clear()
        if not self._round and not (self._inside and self.whole_calls):
            self.watch.update_begins()
            self._rounds += 1
        self._round.add(one)
        if self.watch.state == LOOKING:
            self._find()

    def _end_step(self) -> None:
        """The next backward belongs to the next update where all of this one's optimizers have stepped."""
        if self.skips is not None and not self.whole_calls and len(self._round) >= self._per_round:
            self._skipping = self.skips(self._rounds)

    def _find(self) -> None:
        """The innermost function in which there are both backward and step; and outwards from it as far as a function
        neither steps envs nor stores rows."""
        frames = callers(sys._getframe(3))
        shared = innermost_common(self._backward, [one.f_code for one in frames])
        found: list[CodeType] = []
        for code in shared:
            if code in self._env_codes or code in self.store.codes:
                break
            found.append(code)
        self.evaluation.learning.update(shared)
        if not found or (self._update and found[-1] is self._update[-1]):
            return
        self._update = found
        place = find_function(next(one for one in frames if one.f_code is found[-1]))
        if place is None or hasattr(place.function, "watched"):
            return
        code = found[-1]
        self.function = f"`{place.label}` ({self.places.where(code.co_filename, code.co_firstlineno)})"
        place.put(self._update_hook(place.function))

    def _update_hook(self, function: Any) -> Any:
        last: list[Any] = [None]

        @functools.wraps(function)
        def update(*args: Any, **keywords: Any) -> Any:
            if not self._counts() or self._inside:
                return function(*args, **keywords)
            self.calls += 1
            if self.whole_calls:
                self.watch.update_begins()
                if self.skips is not None and self.skips(self.calls):
                    return last[0]
            self._inside += 1
            try:
                last[0] = function(*args, **keywords)
            finally:
                self._inside -= 1
            return last[0]

        return unseen(update)

    def leave_out(self, skips: Callable[[int], bool] | None, whole_calls: bool) -> None:
        self.skips, self.whole_calls = skips, whole_calls and skips is not None
        self._skipping = bool(skips is not None and not self.whole_calls and skips(self._rounds))


class FewerUpdates(Switch):
    """Every so many updates one is made; 0: none."""

    kind = CHANGES_LEARNING

    def __init__(self, updates: Updates, every: int) -> None:
        super().__init__()
        self.updates, self.every = updates, every
        self.name = {0: "no optimizer steps"}.get(every, f"every {every}th update")
        self._whole = False

    def look(self, trial: Trial) -> None:
        updates = self.updates
        per_call = trial.updates / updates.calls if updates.calls else 0.0
        self._whole = bool(updates.function) and updates.calls > 0 and (self.every == 0 or per_call <= FEW)
        if self._whole:
            self.what = f"{updates.function} is not called: its last result stands for it"
        else:
            self.what = "backward and optimizer step are left out; batches and losses are made all the same"
        if self.every:
            self.what = f"of the others, {self.what}"

    def reason(self, trial: Trial) -> str:
        if not trial.updates:
            return "no optimizer step was seen"
        return ""

    def on(self) -> None:
        super().on()
        self.updates.leave_out(self._skips, self._whole)

    def off(self) -> None:
        super().off()
        self.updates.leave_out(None, False)

    def _skips(self, number: int) -> bool:
        return self.every == 0 or number % self.every != 0

    def count(self, trial: Trial) -> int:
        return trial.updates


class OnePerEnvCall(FewerUpdates):
    def __init__(self, updates: Updates) -> None:
        super().__init__(updates, 1)
        self.name = "one update per env call"

    def look(self, trial: Trial) -> None:
        super().look(trial)
        self.what = self.what.replace("of the others", "after the first since an env call")

    def reason(self, trial: Trial) -> str:
        if trial.updates and trial.updates_per_call <= 1.05:
            return f"the program makes {trial.updates_per_call:.2g} updates per env call"
        return super().reason(trial)

    def _skips(self, number: int) -> bool:
        trial = self.updates.watch
        return trial.since_env > (1 if self._whole else 0)
