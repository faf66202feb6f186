"""Small whole runs of every family: their settings, a display that breaks them off, and what must be equal after it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import hotloop
from hotloop.runs.events import read_events

CLOCK_FIELDS = ("time", "seconds", "env_steps_per_second", "phases")
JUDGED = {"checkpoint": {"every": 300}, "evaluation": {"every": 400, "episodes": 4, "final_episodes": 5}}
DQN: dict[str, Any] = {
    "total_env_steps": 1_200,
    "learning_starts": 200,
    "batch_size": 16,
    "log_every": 100,
    "network": {"hidden": [16]},
    **JUDGED,
}
PPO: dict[str, Any] = {
    "total_env_steps": 1_280,
    "rollout_steps": 16,
    "batch_size": 32,
    "n_epochs": 2,
    "log_every": 100,
    "network": {"hidden": [16]},
    "env": {"id": "cartpole", "num_envs": 4},
    **JUDGED,
}
FAMILIES = {"dqn": ("cartpole-dqn", DQN), "ppo": ("cartpole-ppo", PPO)}
EVERYTHING = {
    "normalize": {"obs": True, "reward": True},
    "kl_target": 0.01,
    "kl_stop": 0.02,
    "ent_coef": 0.01,
    "optimizer": {"lr_schedule": {"kind": "linear", "start": 1.0, "end": 0.0, "over": 1_280}},
}
GRAPHS: dict[str, Any] = {
    "env": {"id": "durotaxis", "num_envs": 4, "max_episode_steps": 12, "options": {"max_nodes": 20}},
    "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "groups": 2}},
    "normalize": {"reward": True},
}
PER_NODE = {**GRAPHS, "env": {**GRAPHS["env"], "options": {"max_nodes": 20, "action": "per_node"}}}
CURRICULUM = {**GRAPHS, "env": {**GRAPHS["env"], "options": {"max_nodes": 20, "curriculum_steps": 150}}}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "dqn": {
        "plain": {},
        "n-step": {"n_step": 3},
        "prioritized": {"replay": {"prioritized": True}},
        "noisy": {"network": {"hidden": [16], "noisy": True}, "exploration": {"start": 0.0, "end": 0.0}},
        "gymnasium": {"env": {"id": "CartPole-v1", "num_envs": 2}, "n_step": 2},
    },
    "ppo": {
        "plain": {},
        "everything": EVERYTHING,
        "gymnasium": {"env": {"id": "CartPole-v1", "num_envs": 4}, **EVERYTHING},
        "numbers": {"env": {"id": "Pendulum-v1", "num_envs": 4}, "network": {"hidden": [16], "squashed": True}},
        "eager": {"learner": {"lane": "eager"}},
        "graphs": GRAPHS,
        "graphs with a choice per node": PER_NODE,
        "graphs and a curriculum": CURRICULUM,
    },
}


def small(family: str, folder: Path, name: str = "run", **overrides: Any) -> Any:
    preset, tree = FAMILIES[family]
    return hotloop.preset(preset, **{**tree, "run_dir": str(folder / name), **overrides})


def rows(run_dir: str | Path) -> list[dict[str, Any]]:
    """Event rows without what the clock decides."""
    return [
        {key: value for key, value in row.items() if key not in CLOCK_FIELDS}
        for row in read_events(Path(run_dir) / "events.jsonl")
    ]


class WholeRuns:
    """Runs that nothing interrupted, each trained once for all tests that ask for it and leave it as it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._results: dict[str, dict[str, Any]] = {}

    def __call__(self, family: str, **overrides: Any) -> dict[str, Any]:
        key = json.dumps([family, overrides], sort_keys=True)
        if key not in self._results:
            name = f"whole{len(self._results)}"
            self._results[key] = hotloop.train(small(family, self._folder, name, **overrides))
        return self._results[key]


class Interrupt:
    """A progress display that stops the run after so many iterations, by raising or by a signal."""

    def __init__(self, iterations: int, signal_number: int = 0) -> None:
        self.left = iterations
        self.signal_number = signal_number

    def say(self, text: str) -> None:
        pass

    def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
        if row is not None:
            return
        self.left -= 1
        if self.left == 0 and self.signal_number:
            os.kill(os.getpid(), self.signal_number)
        elif self.left == 0:
            raise ZeroDivisionError
