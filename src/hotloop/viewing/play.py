"""An agent's episodes, step by step, for whoever looks on."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.rng import derive_seed
from hotloop.core.types import EnvStep, Policy
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent, require_same_actions
from hotloop.presets.env_settings import EnvSettings
from hotloop.viewing.scenes import Scene, make_scene


@dataclass(slots=True)
class Episode:
    """An episode as it stands; the same object after every step."""

    number: int  # from 1
    scene: Scene
    length: int = 0
    total: float = 0.0  # the return so far
    end: str = ""  # `terminated` or `truncated` once it is over
    stats: dict[str, Any] = field(default_factory=dict)  # the workload's own, once it is over

    def add(self, step: EnvStep) -> None:
        self.length += 1
        self.total += float(step.reward[0])
        if step.terminated[0] or step.truncated[0]:
            self.end = "terminated" if step.terminated[0] else "truncated"
            stats = {name: values[0].item() for name, values in step.episode_stats.items()}
            self.stats = {name: value for name, value in stats.items() if value == value}  # NaN: nothing to measure

    def numbers(self) -> dict[str, Any]:
        """What there is to say about it, finished or not."""
        return {"return": self.total, "length": self.length} | (self.stats if self.end else self.scene.measures())

    def as_data(self) -> dict[str, Any]:
        """One object of `hotloop watch --json`; `end` is `stopped` where somebody looked away before its end."""
        return {"episode": self.number, **self.numbers(), "end": self.end or "stopped"}


def play_episodes(
    policy: Policy, settings: EnvSettings, episodes: int, seed: int, *, trust: bool, pictures: bool
) -> Generator[Episode, None, None]:
    """Every moment of `episodes` episodes: after each reset and after each step.

    Episode i starts as the first one of env i of `hotloop evaluate` with the same seed does.
    """
    for index in range(episodes):
        scene = make_scene(settings, derive_seed(seed, "verb", index), trust=trust, pictures=pictures)
        with contextlib.closing(scene.envs):
            agent = getattr(policy, "policy", policy)  # `Watched` has one
            if isinstance(agent, Agent | ActorAgent | GraphAgent):
                require_same_actions(agent, scene.envs, settings.id)
            yield from _play(policy, Episode(index + 1, scene))


def _play(policy: Policy, episode: Episode) -> Generator[Episode, None, None]:
    scene = episode.scene
    obs, action_mask = scene.envs.reset()
    scene.note(None)
    yield episode
    while not episode.end:
        step = scene.envs.step(policy.act(obs, action_mask))
        scene.note(step)
        episode.add(step)
        yield episode
        obs, action_mask = step.obs, step.action_mask
