"""What the journal, the displays and the end of a run need of a session, whatever it trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hotloop.core.schedules import Counters
from hotloop.core.types import Array
from hotloop.doctor.timer import PhaseTimer
from hotloop.loop.collector import Collector
from hotloop.loop.evaluate import Best
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

    def evaluate(self, episodes: int, check: Callable[[], None], *stream: str | int) -> dict[str, Any]: ...

    def recreate_envs(self) -> None: ...

    def state(self) -> dict[str, dict[str, Any]]: ...

    def load_state(self, state: dict[str, dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class Progress(Protocol):
    """Shows how a run is getting on; never part of what it computes."""

    def show(self, session: TrainingSession, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None: ...

    def say(self, text: str) -> None: ...
