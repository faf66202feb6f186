"""Runs that are killed again and again: which they are, when they are killed, and what must hold at the end."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.runs.checkpoint import newest
from hotloop.runs.events import read_events

CLOCK_FIELDS = ("time", "seconds", "env_steps_per_second", "overall_env_steps_per_second", "phases")
DQN: dict[str, Any] = {
    "total_env_steps": 1_200,
    "learning_starts": 200,
    "batch_size": 16,
    "log_every": 100,
    "network": {"hidden": [16]},
    "checkpoint": {"every": 200},
    "evaluation": {"every": 400, "episodes": 2, "final_episodes": 2, "max_episode_steps": 50},
}
PPO: dict[str, Any] = {
    "total_env_steps": 1_280,
    "rollout_steps": 16,
    "batch_size": 32,
    "n_epochs": 2,
    "log_every": 100,
    "network": {"hidden": [16]},
    "normalize": {"obs": True, "reward": True},
    "checkpoint": {"every": 192},
    "evaluation": {"every": 400, "episodes": 2, "final_episodes": 2, "max_episode_steps": 50},
}
GRAPHS: dict[str, Any] = {
    **PPO,
    "total_env_steps": 640,
    "env": {"id": "durotaxis", "num_envs": 4, "max_episode_steps": 12, "options": {"max_nodes": 20}},
    "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "groups": 2}},
    "normalize": {"reward": True},
}
ITERATION = 64
"""The most env steps that lie between two moments at which a checkpoint can be made."""
SAC: dict[str, Any] = {
    **DQN,
    "env": {"id": "Pendulum-v1", "num_envs": 2, "max_episode_steps": 50},
    "network": {"hidden": [16, 16]},
    "normalize": {"obs": True},
    "replay": {"prioritized": True, "buffer_size": 700},
}
ON_CARTPOLE = {"id": "cartpole", "num_envs": 4}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "dqn-native": ("cartpole-dqn", {**DQN, "env": ON_CARTPOLE, "replay": {"prioritized": True}}),
    "dqn-disk-replay": ("cartpole-dqn", {**DQN, "env": ON_CARTPOLE, "replay": {"memory": "disk", "buffer_size": 700}}),
    "dqn-gymnasium": ("cartpole-dqn", {**DQN, "env": {"id": "CartPole-v1", "num_envs": 2}, "n_step": 2}),
    "sac": ("pendulum-sac", SAC),
    "ppo-native": ("cartpole-ppo", {**PPO, "env": ON_CARTPOLE}),
    "ppo-gymnasium": ("cartpole-ppo", {**PPO, "env": {"id": "CartPole-v1", "num_envs": 4}}),
    "ppo-graphs": ("cartpole-ppo", GRAPHS),
}


class Nursery:
    """The other end of `nursery.py`."""

    def __init__(self, folder: Path) -> None:
        program = Path(__file__).with_name("nursery.py")
        self._errors = (folder / "stderr.txt").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._folder = folder
        self._warm: set[str] = set()

    def life(self, family: str, run_dir: Path, kill: dict[str, Any] | None) -> dict[str, Any]:
        """One life of a training process: 0 where it finished its run, -9 where it was killed."""
        preset, tree = FAMILIES[family]
        if family not in self._warm:
            other = {**tree, "seed": 77, "run_dir": str(self._folder / f"warm-{family}")}
            self._ask({"warm_up": [(preset, other)]})
            self._warm.add(family)
        answer = self._ask({"preset": preset, "tree": {**tree, "seed": 5, "run_dir": str(run_dir)}, "kill": kill})
        assert answer["code"] in (0, -9), self._said()
        return answer

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self._said()
        return json.loads(line)

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-3000:]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()
        self._errors.close()


@contextlib.contextmanager
def nursery_in(folder: Path) -> Iterator[Nursery]:
    nursery = Nursery(folder)
    try:
        yield nursery
    finally:
        nursery.close()


def rows(run_dir: Path) -> list[dict[str, Any]]:
    """Event rows without what the clock decides."""
    return [
        {key: value for key, value in row.items() if key not in CLOCK_FIELDS}
        for row in read_events(run_dir / "events.jsonl")
    ]


def outcome(run_dir: Path) -> dict[str, Any]:
    """All that must be equal: the digest of the whole state, the result, every event row."""
    result = json.loads((run_dir / "result.json").read_text())
    kept = {name: value for name, value in result.items() if name not in (*CLOCK_FIELDS, "run")}
    return {"result": kept, "rows": rows(run_dir)}


def lost_env_steps(run_dir: Path) -> int:
    """From the newest checkpoint that counts to the last event that was told: what a resume makes again."""
    told = [row["env_steps"] for row in read_events(run_dir / "events.jsonl") if "env_steps" in row]
    found = newest(run_dir / "checkpoints", lambda text: None)
    saved = found[1]["counters"]["env_steps"] if found else 0
    return max(told, default=0) - saved


def kill_plan(seed: str, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Kills without end, interleaved at a moment of the clock and at a call that changes a file (before it, after it,
    in the middle of a write); drawn over the first half of a whole run, so that lives are short and kills many."""
    draw = random.Random(seed)
    while True:
        yield {"call": draw.randint(1, whole["calls"] // 2), "when": draw.choice(["before", "after", "half"])}
        yield {"seconds": draw.uniform(0.0, whole["seconds"] / 2)}


def kill_and_compare(nursery: Nursery, family: str, folder: Path, kills: int) -> dict[str, Any]:
    """Kill a run until it finishes in spite of it, then the next run, until there were `kills` kills; all end alike."""
    whole = nursery.life(family, folder / "whole", None)
    expected = outcome(folder / "whole")
    plan = kill_plan(family, whole)
    interval = FAMILIES[family][1]["checkpoint"]["every"] + ITERATION
    done, runs, moments = 0, 0, {"call": 0, "seconds": 0}
    while done < kills:
        run_dir = folder / f"killed{runs}"
        finished = False
        while not finished:
            kill = next(plan) if done < kills else None
            killed = nursery.life(family, run_dir, kill)["code"] == -9
            if killed and kill is not None:
                done += 1
                moments["call" if "call" in kill else "seconds"] += 1
                if (run_dir / "events.jsonl").exists():
                    assert lost_env_steps(run_dir) <= interval
            finished = not killed
        assert outcome(run_dir) == expected
        runs += 1
    return {"family": family, "kills": done, "runs": runs, **moments}
