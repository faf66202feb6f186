"""What a run measured since its last log row, read from the device once per row."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any

import numpy as np
import torch

from hotloop.core.errors import NonFiniteError
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, UpdateStats

WINDOW_EPISODES = 100
_COMPACT_AT = 1_000


class Metrics:
    """Update statistics stay where they were computed until `row` takes their mean: one host read per log interval."""

    def __init__(self, names: tuple[str, ...], terms: tuple[str, ...] = ()) -> None:
        self._names = names  # of the S scalars of an update
        self._term_names = terms  # of an env's rewards, among its episodes' statistics
        self._scalars: list[Any] = []  # of [S, k]
        self._returns: deque[float] = deque(maxlen=WINDOW_EPISODES)
        self._lengths: deque[int] = deque(maxlen=WINDOW_EPISODES)
        self._terms: deque[list[float]] = deque(maxlen=WINDOW_EPISODES)  # a row for each episode

    def note_updates(self, stats: UpdateStats) -> None:
        self._scalars.append(stats.scalars)
        if len(self._scalars) >= _COMPACT_AT:
            self._scalars = [_join(self._scalars)]

    def note_episodes(self, returns: Array, lengths: Array) -> None:
        self._returns.extend(returns.tolist())
        self._lengths.extend(lengths.tolist())

    def note_terms(self, stats: dict[str, Array], ended: Array) -> None:
        """What each term of the reward came to in the episodes that `ended`."""
        if self._term_names:
            rows = np.stack([stats[name][ended] for name in self._term_names], axis=1)
            self._terms.extend(rows.tolist())

    def latest(self, name: str) -> float | None:
        """The mean of a measure over the updates that no row has told yet; for displays, between rows."""
        pending = self._pending()
        return float(pending[self._names.index(name)].mean()) if pending.shape[1] and name in self._names else None

    @property
    def mean_return(self) -> float | None:
        """Of the last 100 episodes."""
        return _mean(self._returns)

    @property
    def longest_episode(self) -> int:
        """Among the last 100; 0 where none has ended."""
        return max(self._lengths, default=0)

    def row(self, counters: Counters) -> dict[str, Any]:
        """Counters, means over the last 100 episodes, and the means of what updates measured since the last row."""
        row: dict[str, Any] = {
            "env_steps": counters.env_steps,
            "updates": counters.updates,
            "episodes": counters.episodes,
            "mean_return": self.mean_return,
            "mean_length": _mean(self._lengths),
        }
        self.require_finite(counters)
        return row | self._take_means() | self._term_means()

    def _term_means(self) -> dict[str, float | None]:
        """Of the last 100 episodes; NaN is of an episode that was not seen whole."""
        if not self._term_names:
            return {}
        rows = np.array(self._terms).reshape(-1, len(self._term_names))
        columns = (column[~np.isnan(column)] for column in rows.T)
        return {name: _mean(column) for name, column in zip(self._term_names, columns, strict=True)}

    def require_finite(self, counters: Counters) -> None:
        """Stop where a loss or gradient since the last row is not a number; asked before anything is saved."""
        finite = np.isfinite(self._pending()).all(axis=1)
        for name, good in zip(self._names, finite, strict=True):
            if not good:
                raise NonFiniteError(
                    f"`{name}` became NaN or infinite in the last updates before update {counters.updates:,}",
                    "a smaller `optimizer.learning_rate` or `optimizer.max_grad_norm` helps; nothing of it was saved",
                )

    def _take_means(self) -> dict[str, float | None]:
        if not self._scalars:
            return dict.fromkeys(self._names)
        means = self._pending().mean(axis=1, dtype=np.float64)
        self._scalars = []
        return {name: float(value) for name, value in zip(self._names, means, strict=True)}

    def _pending(self) -> Array:
        """What was noted since the last row, [S, n] on the host: read once, and kept there."""
        if not self._scalars:
            return np.empty((len(self._names), 0), np.float32)
        host = _to_host(_join(self._scalars))
        self._scalars = [host]
        return host

    def state(self) -> dict[str, Any]:
        lengths = np.array(self._lengths, dtype=np.int64)
        terms = {"terms": np.array(self._terms).reshape(-1, len(self._term_names))} if self._term_names else {}
        return {"returns": np.array(self._returns), "lengths": lengths, "pending": self._pending(), **terms}

    def load_state(self, state: dict[str, Any]) -> None:
        self._returns = deque(state["returns"].tolist(), maxlen=WINDOW_EPISODES)
        self._lengths = deque(state["lengths"].tolist(), maxlen=WINDOW_EPISODES)
        self._scalars = [state["pending"]] if state["pending"].shape[1] else []
        terms = state["terms"].tolist() if "terms" in state else []  # not in runs begun before there were any
        self._terms = deque(terms, maxlen=WINDOW_EPISODES)


def _join(scalars: list[Any]) -> Any:
    if any(isinstance(part, torch.Tensor) for part in scalars):
        device = next(part.device for part in scalars if isinstance(part, torch.Tensor))
        return torch.cat([torch.as_tensor(part, device=device) for part in scalars], dim=1)
    return np.concatenate(scalars, axis=1)


def _to_host(scalars: Any) -> Array:
    return scalars.cpu().numpy() if isinstance(scalars, torch.Tensor) else scalars


def _mean(values: Collection[Any]) -> float | None:
    return float(np.mean([*values])) if len(values) else None
