"""Follows a whole training at next to no cost: no clock on every event, no phases, no limit.

A `Follower` stands in the place of the watch: of all that the hooks report it keeps env calls, resets and optimizer
steps, and hands them to its passes with what the program passed and got.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .passes import Pass
from .watch import SURE, Watch, raise_limit

FOREVER = 1e18


class FollowPass(Pass):
    """Every method may be left out."""

    def on_step(self, args: tuple[Any, ...], result: Any, start: float) -> None:
        """An outermost env call: its arguments (the env first), what it returned, and when it began."""

    def on_wrapped(self, args: tuple[Any, ...], calls: int, result: Any) -> None:
        """The last so many calls were made inside this env's own first call, as is known once that has returned."""

    def on_reset(self, args: tuple[Any, ...], result: Any) -> None:
        """An outermost `reset`, likewise."""

    def on_made(self, optimiser: Any) -> None:
        """`optimizer` has been made."""

    def on_optimiser(self, optimiser: Any) -> None:
        """`optimizer` has made a step."""


class Follower(Watch):
    """A watch that times nothing."""

    def __init__(self, *passes: Pass, at_limit: Callable[[], None] = raise_limit) -> None:
        super().__init__(FOREVER, None, passes=passes, at_limit=at_limit)
        own = [one for one in passes if isinstance(one, FollowPass)]
        self.last_start = self.opened
        self._on_step = [one.on_step for one in own]
        self._on_wrapped = [one.on_wrapped for one in own]
        self._on_reset = [one.on_reset for one in own]
        self._on_made = [one.on_made for one in own]
        self._on_optimiser = [one.on_optimiser for one in own]

    def enter(self) -> float:
        self.busy = True
        return self.clock()

    def leave(self, kind: str, start: float, forward: Any = None, now: float = 0.0) -> None:
        self.busy = False

    def leave_env(self, start: float, args: tuple[Any, ...], result: Any) -> None:
        self.busy = False
        self.env_calls += 1
        self.last_start = start
        try:
            for call in self._on_step:
                call(args, result, start)
        except Exception as error:
            self.give_up("a step", error)

    def _judge(self, verdict: list[str], calls: int, known: int, start: float, args: Any, result: Any) -> None:
        super()._judge(verdict, calls, known, start, args, result)
        if verdict[0] == SURE and start < self.last_start:
            self.passes.tell(self._on_wrapped, args, self.env_calls - calls, result)

    def leave_reset(self, start: float, args: tuple[Any, ...], result: Any) -> None:
        self.busy = False
        self.passes.tell(self._on_reset, args, result)

    def optimiser_made(self, optimiser: Any) -> None:
        if not self.over and self.in_recorder:
            self.passes.tell(self._on_made, optimiser)

    def optimiser_stepped(self, optimiser: Any) -> None:
        self.passes.tell(self._on_optimiser, optimiser)

    def end_here(self) -> None:
        """Enough was seen: the program ends."""
        self._at_limit()

    def finish(self) -> None:
        if not self.over:
            self.ended, self.busy, self.over = self.clock(), True, True
            self.passes.ask("stop")


class OptimiserSteps(Pass):
    """Tells the follower of every step of every optimizer of PyTorch's kind."""

    watch: Follower

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {"torch": self._arrive}

    def _arrive(self, torch: ModuleType) -> None:
        """Each class of optimizer is hooked when one is first made of it, so that those of others count too."""
        base = torch.optim.Optimizer
        make, follower = base.__init__, self.watch
        hook_step = follower.faults.guarded("an optimizer", functools.partial(hook_optimiser, follower))

        @functools.wraps(make)
        def initialise(optimiser: Any, *args: Any, **keywords: Any) -> None:
            make(optimiser, *args, **keywords)
            hook_step(type(optimiser))
            follower.optimiser_made(optimiser)

        base.__init__ = initialise


def hook_optimiser(follower: Follower, kind: Any) -> None:
    function = kind.step
    if hasattr(function, "watched"):
        return

    @functools.wraps(function)
    def step(optimiser: Any, *args: Any, **keywords: Any) -> Any:
        result = function(optimiser, *args, **keywords)
        if not follower.over and follower.in_recorder:
            follower.optimiser_stepped(optimiser)
        return result

    step.watched = True  # type: ignore[attr-defined]
    kind.step = step
