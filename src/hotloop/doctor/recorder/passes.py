"""What a pass is: what it hooks, what it notes, what it adds to the trace. A run of the script carries one or several.

The watch asks each pass in turn and knows none of them by name. Whatever a pass does not override is never called, so
that a pass costs only what it asks for. An error of ours inside somebody's program is swallowed, noted, and what made
it switched off; only `Exception` is ours: an interrupt, an exit or the doctor's own bound that arrives while our code
runs must go on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .watch import Watch

    Fresh = Sequence[tuple[Any, ...]]
    """What waits to be placed, each with its time first."""

MOST = 20
ALWAYS = ((float("-inf"),),)


class Faults:
    """What went wrong in us: `where: Type: message (file:line)`, each once."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def note(self, where: str, error: BaseException) -> None:
        try:
            frames = traceback.extract_tb(error.__traceback__)
            last = frames[-1] if frames else None
            place = f" ({last.filename.rpartition('/')[2]}:{last.lineno})" if last else ""
            text = f"{where}: {type(error).__name__}: {error}{place}"
        except Exception:  # an error whose own words fail
            text = where
        if len(self.noted) < MOST and text not in self.noted:
            self.noted.append(text)

    def guarded(self, where: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function; after its first error it does nothing."""
        working = [True]

        def guarded(*args: Any, **keywords: Any) -> Any:
            if not working[0]:
                return None
            try:
                return function(*args, **keywords)
            except Exception as error:
                working[0] = False
                self.note(where, error)
                return None

        return guarded


class Pass:
    """Every method may be left out."""

    watch: Watch
    """Set by the watch that the pass is given to."""
    fresh: Fresh = ALWAYS
    """What waits for `charge`: of stretches that end before the first of them it need not be told."""
    early = False
    """Whether `add_to` may be asked while the loop still runs, and is cheap."""

    def prepare(self) -> None:
        """Before the script's first line."""

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        """Modules of interest, by name: what to do with each once the script has imported it."""
        return {}

    def arrive_anywhere(self) -> Callable[[ModuleType], None] | None:
        """What to do with every other module that the script has imported."""
        return None

    def begin(self) -> None:
        """The first env call: everything before it was start-up."""

    def steady(self) -> None:
        """The steady state begins: what came before may be taken off at the end (`watch.told_from`)."""

    def on_env(self, now: float) -> None:
        """An env call ended at `now`."""

    def on_update(self, now: float) -> None:
        """An optimizer step ended at `now`."""

    def now_and_then(self, now: float) -> None:
        """An env call ended at `now`, and the last time this was asked is about a second ago."""

    def note(self) -> Any:
        """What was collected since this was last asked: it goes with the stretch that ends now."""

    def charge(self, phase: str, end: float, note: Any) -> None:
        """The stretch that ended at `end` was `phase`; in order of time."""

    def forked(self) -> None:
        """In a process that the script has forked: take away what would go on working there."""

    def stop(self) -> None:
        """The end of the recording."""

    def add_to(self, trace: dict[str, Any]) -> None:
        """What is known at the end, as plain values."""


def overrides(one: Pass, method: str) -> bool:
    return getattr(type(one), method, None) is not getattr(Pass, method)


class Passes:
    """The passes of one run: asks those that have something to say; one that fails is not asked that again."""

    def __init__(self, passes: tuple[Pass, ...], failed: Callable[[str, BaseException], None]) -> None:
        self.passes, self._failed = passes, failed
        self.on_env, self.on_update = self._asked("on_env"), self._asked("on_update")
        self._noting = [one for one in passes if overrides(one, "note")]
        self.takes_notes = bool(self._noting)
        self._charging = [one for one in passes if overrides(one, "charge")]

    def _asked(self, method: str) -> list[Callable[..., Any]]:
        return [getattr(one, method) for one in self.passes if overrides(one, method)]

    def ask(self, method: str, *args: Any) -> None:
        self.tell(self._asked(method), *args)

    def ask_early(self, trace: dict[str, Any]) -> None:
        self.tell([one.add_to for one in self.passes if one.early], trace)

    def tell(self, calls: list[Callable[..., Any]], *args: Any) -> None:
        for call in tuple(calls):
            try:
                call(*args)
            except Exception as error:
                calls.remove(call)
                self._failed(getattr(call, "__qualname__", "a pass"), error)

    @property
    def sink(self) -> Callable[[str, float, Any], None] | None:
        """Who is told of attributed stretches: None where nobody wants to be."""
        return self._charge if self._charging else None

    @property
    def fresh(self) -> Fresh:
        return self._charging[0].fresh if len(self._charging) == 1 else ALWAYS

    def note(self) -> list[Any]:
        return [one.note() for one in self._noting]

    def _charge(self, phase: str, end: float, notes: Any) -> None:
        for one in tuple(self._charging):
            note = notes[self._noting.index(one)] if notes and one in self._noting else None
            try:
                one.charge(phase, end, note)
            except Exception as error:
                self._charging.remove(one)
                self._failed(f"{type(one).__name__}.charge", error)
