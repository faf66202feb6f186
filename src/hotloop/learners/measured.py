"""What an update of a learner measured, as the doors of learners return it."""

from __future__ import annotations

from hotloop.core.types import Array, UpdateStats


class Measured:
    """Reading a number waits for the device; nothing is read before."""

    __slots__ = ("_is_single", "_names", "_stats")

    def __init__(self, stats: UpdateStats, names: tuple[str, ...], is_single: bool = True) -> None:
        self._stats, self._names, self._is_single = stats, names, is_single

    @property
    def updates(self) -> int:
        """Optimizer steps made in the call; fewer than planned where `kl_stop` ended a rollout's epochs."""
        return self._stats.num_updates

    def __getattr__(self, name: str) -> float:
        """Means over the updates of the call."""
        if name not in self._names:
            raise AttributeError(f"an update measures {', '.join(self._names)}, not `{name}`")
        return float(self._stats.scalars[self._names.index(name)].mean())

    def __repr__(self) -> str:
        means = (f"{name}={getattr(self, name):.6g}" for name in self._names)
        return f"{type(self).__name__}(updates={self.updates}, {', '.join(means)})"


class MeasuredOnBatches(Measured):
    """Of an update on batches of replay: the same, and an error for each row."""

    __slots__ = ()

    @property
    def td_error(self) -> Array:
        """|target - prediction| of each row (the mean over critics), [B] or [k, B]: the new priorities."""
        error = self._stats.td_error_on_host()
        return error[0] if self._is_single else error


class QStats(MeasuredOnBatches):
    """`loss`: weighted mean of the rows' losses; `q_mean`: mean Q of the actions taken; `gradient_norm`: before
    clipping."""

    __slots__ = ()


class SACStats(MeasuredOnBatches):
    """`loss` (the critics'), `q_mean`, `actor_loss`, `entropy`, `temperature`, `gradient_norm`."""

    __slots__ = ()


class PolicyStats(Measured):
    """`loss`, `policy_loss`, `value_loss`, `entropy`, `kl`, `clip_fraction`, `gradient_norm` (before clipping)."""

    __slots__ = ()
