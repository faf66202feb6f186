"""What a run shows of itself while it goes on: its rows, and who watches."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from hotloop.core.errors import SettingsError
from hotloop.core.terminal import say
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array
from hotloop.loop.session import Session


class ProgressRow(dict[str, Any]):
    """A progress row of events.jsonl, and the run as it is at that moment."""

    def __init__(self, values: dict[str, Any], session: Session, run: Path) -> None:
        super().__init__(values)
        self._session = session
        self.run = run
        """The run's directory, for `hotloop.resume` and `hotloop.load`."""

    @property
    def learner(self) -> Any:
        """The run's own learner: look, and leave it as it is."""
        return self._session.learner

    @property
    def agent(self) -> Any:
        """An agent with a copy of the weights that the learner has now."""
        return self._session.agent()


class Progress(Protocol):
    """Shows how a run is getting on; never part of what it computes."""

    def show(self, session: Session, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None: ...

    def say(self, text: str) -> None: ...


class NullProgress:
    """A `Progress` that prints nothing: for callers without a terminal, and for loops that are only timed."""

    def show(self, session: Session, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None:
        pass

    def say(self, text: str) -> None:
        pass


class RemarksOnly(NullProgress):
    """Prints what is said, on stderr, and no bar: for a run in its caller's hands."""

    def say(self, text: str) -> None:
        say(text)


def require_size(start: Array, session: Session) -> None:
    """Refuse weights to start from that are of another network."""
    if len(start) != (own := len(session.weights())):
        raise SettingsError(
            f"the weights to start from are {len(start):,} numbers, this run's network has {own:,}",
            "`network` and the env's observations and actions must be those that the weights were learned with",
        )
