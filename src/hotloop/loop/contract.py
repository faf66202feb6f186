"""What the journal, the displays and the end of a run need of a session, whatever it trains; and the state that
every family's session has, for checkpoints and the digest: a session adds what only it remembers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from hotloop.core.errors import SettingsError
from hotloop.core.schedules import Counters
from hotloop.core.terminal import say
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array
from hotloop.loop.collector import Collector
from hotloop.loop.evaluate import Best, load_envs
from hotloop.loop.metrics import Metrics


class TrainingSession(Protocol):
    """All parts of one run, with their whole state."""

    settings: Any
    counters: Counters
    collector: Collector
    learner: Any
    metrics: Metrics
    best: Best
    rollbacks: int
    """How often the run went back to a checkpoint because of numbers that were not finite."""

    @property
    def finished(self) -> bool: ...

    def facts(self) -> dict[str, float]:
        """What a log row and the display say beside the metrics."""
        ...

    def weights(self) -> Array:
        """All that acting needs, as one vector."""
        ...

    def load_weights(self, values: Array) -> None: ...

    def start_from(self, values: Array) -> None:
        """Begin with these weights, whatever the seed drew."""
        ...

    def agent(self) -> Any: ...

    def evaluate(self, episodes: int, check: Callable[[], None], *stream: str | int) -> dict[str, Any]: ...

    def recreate_envs(self) -> None: ...

    def reseed(self, *stream: str | int) -> None:
        """Other random draws ahead, from streams derived from the run's seed and this name; envs keep theirs."""
        ...

    def state(self) -> dict[str, dict[str, Any]]: ...

    def load_state(self, state: dict[str, dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class Row(dict[str, Any]):
    """A progress row of events.jsonl, and the run as it is at that moment."""

    def __init__(self, values: dict[str, Any], session: TrainingSession, run: Path) -> None:
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

    def show(self, session: TrainingSession, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None: ...

    def say(self, text: str) -> None: ...


class NullProgress:
    """A `Progress` that prints nothing: for callers without a terminal, and for loops that are only timed."""

    def show(self, session: TrainingSession, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None:
        pass

    def say(self, text: str) -> None:
        pass


class Remarks(NullProgress):
    """Prints what is said, on stderr, and no bar: for a run in its caller's hands."""

    def say(self, text: str) -> None:
        say(text)


def require_size(start: Array, session: TrainingSession) -> None:
    """Refuse weights to start from that are of another network."""
    if len(start) != (own := len(session.weights())):
        raise SettingsError(
            f"the weights to start from are {len(start):,} numbers, this run's network has {own:,}",
            "`network` and the env's observations and actions must be those that the weights were learned with",
        )


State = dict[str, dict[str, Any]]
PARTS = ("policy", "metrics", "best")


def state_of(session: TrainingSession) -> State:
    envs, counters = session.collector.envs, session.counters
    return {
        "counters": counters.state() | _rollbacks(session),
        "learner": session.learner.state(),
        "collector": session.collector.state(),
        "envs": envs.get_state() if envs.saves_state else {},
        **{name: getattr(session, name).state() for name in PARTS},
    }


def _rollbacks(session: TrainingSession) -> dict[str, int]:
    return {"rollbacks": session.rollbacks} if session.rollbacks else {}


def load_state_of(session: TrainingSession, state: State) -> None:
    session.counters.load_state(state["counters"])
    session.rollbacks = state["counters"].get("rollbacks", 0)
    session.learner.load_state(state["learner"])
    load_envs(session, state)  # may make them anew, which wants the counters
    for name in PARTS:
        getattr(session, name).load_state(state[name])
