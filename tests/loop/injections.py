"""Numbers that are not finite, put into a run at a chosen place and iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.loop.small_runs import GRAPHS, small

LANE_STATE = {"parameter": "online", "target parameter": "target"}
BATCH = ("obs", "reward", "next_obs", "weight", "discount")
ROLLOUT = ("reward", "value when acting", "obs", "outputs", "advantage", "returns")


@dataclass
class Injection:
    """A progress display that spoils one number after so many iterations; `times` often, as far as it is asked to.

    `place` is also how the error's name for it begins.
    """

    place: str
    iteration: int = 60
    value: float = float("nan")
    seed: int = 0
    times: int = 1

    def __post_init__(self) -> None:
        self.shown = 0

    def say(self, text: str) -> None:
        pass

    def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
        if row is not None:
            return
        self.shown += 1
        if self.shown >= self.iteration and self.times > 0:
            self.times -= 1
            self.shown = 0
            self.inject(session)

    def inject(self, session: Any) -> None:
        if self.place in LANE_STATE:
            self.once(session.learner, "update", before=lambda *_: self.spoil_lane(session.learner.lane))
        elif self.place == "env":
            self.spoil(session.collector.envs._body)
        elif session.replay is not None:
            self.once(session.replay, "sample", after=lambda batches: self.spoil(getattr(batches, self.place)))
        elif self.place in ("reward", "value when acting"):
            self.once(
                session.learner, "compute_advantages", before=lambda rollout, *_: self.spoil_field(rollout, but=1)
            )
        else:
            self.once(session.learner, "update", before=lambda rollout, *_: self.spoil_field(rollout, but=0))

    def spoil_lane(self, lane: Any) -> None:
        state = lane.state()
        self.spoil(state[LANE_STATE[self.place]])
        lane.load_state(state)

    def spoil_field(self, rollout: Any, but: int) -> None:
        """One number of a rollout's field, `but` for so many of its last steps; of graphs one of a node."""
        field = getattr(rollout, self.place.split()[0])
        field = getattr(field, "nodes", field)
        self.spoil(field[..., : field.shape[-2] - but, :])

    def spoil(self, array: np.ndarray) -> None:
        """One number of it."""
        place = np.random.default_rng(self.seed).integers(array.size)
        array[np.unravel_index(place, array.shape)] = self.value

    def once(self, thing: Any, name: str, before: Callable[..., Any] | None = None, after: Any = None) -> None:
        """Step in the next time that the method is called, and never again."""
        method = getattr(thing, name)

        def changed(*arguments: Any) -> Any:
            setattr(thing, name, method)
            if before is not None:
                before(*arguments)
            answer = method(*arguments)
            if after is not None:
                after(answer)
            return answer

        setattr(thing, name, changed)


def settings_for(family: str, lane: str, folder: Path, name: str = "run", **more: Any) -> Any:
    """Of DQN, PPO or, as a family of its own, PPO on graphs."""
    if family == "graphs":
        family, more = "ppo", {**GRAPHS, **more}
    return small(family, folder, name, learner={"lane": lane}, **more)
