"""Short runs over families, lanes and kinds, each broken off in the middle and resumed; and what is kept of them.

A digest is equal where the machine computes equally. Elsewhere a summary must agree: counters, events, episodes, and
size, sum and norm of every parameter tensor.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import binding as llvm

import hotloop
from hotloop.core.arithmetic import computed
from hotloop.core.settings import merge
from hotloop.runs import checkpoint
from hotloop.runs.events import read_events

FILE = Path(__file__).with_name("runs.json")
FOLLOWING = ("target", "mean", "square")
"""What a learner keeps beside its parameters, a vector of each for every network."""
VERSIONS = ("torch", "numpy", "numba", "llvmlite", "gymnasium")


class Kind(NamedTuple):
    preset: str
    lanes: tuple[str, ...]
    env_steps: int
    """Of the long run, in `make slow`, on every lane; the compiled one of DQN makes 2,000."""
    changes: dict[str, Any]
    short_env_steps: int
    """Of the short one, on every `make test`, on all lanes but the compiled one."""
    shorter: dict[str, Any] = {}
    """Further changes for the short one."""


PRIORITIZED = {"double": True, "replay": {"prioritized": True}, "n_step": 3}
ACCUMULATED = {"network": {"dueling": True}, "optimizer": {"accumulate": 2}}
NORMALIZED = {"normalize": {"obs": True, "reward": True}, "kl_stop": 0.005}
FEW_SERVICES = {"env": {"num_envs": 4}, "n_step": 4, "learning_starts": 60, "updates_per_env_step": "1/4"}
FEW_SNAKES = {"env": {"num_envs": 8}, "batch_size": 16, "network": {"hidden": [32]}, "updates_per_env_step": "1/4"}
FEW_ROWS = {"env": {"num_envs": 4}, "rollout_steps": 16, "batch_size": 32, "n_epochs": 2}
FEW_NODES = merge(
    FEW_ROWS,
    {
        "env": {"max_episode_steps": 12, "options": {"max_nodes": 20}},
        "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "groups": 2}},
    },
)
FEW_PENDULUMS = {"env": {"num_envs": 2}, "batch_size": 32, "network": {"hidden": [32, 32]}}
SEEN_EVENLY = merge(FEW_PENDULUMS, {"normalize": {"obs": True}, "replay": {"prioritized": True}, "n_step": 2})
ALL_LANES, NO_NATIVE, NOT_COMPILED = ("eager", "native", "compiled"), ("eager", "compiled"), ("eager", "native")
KINDS = {
    "dqn": Kind("cartpole-dqn", ALL_LANES, 3_000, {}, 400),
    "prioritized": Kind("cartpole-dqn", ALL_LANES, 3_000, PRIORITIZED, 400),
    "dueling": Kind("cartpole-dqn", NOT_COMPILED, 3_000, ACCUMULATED, 400),
    "c51": Kind("cartpole-rainbow", NOT_COMPILED, 3_000, {"network": {"noisy": False}}, 400),
    "noisy": Kind("cartpole-rainbow", NO_NATIVE, 3_000, {"network": {"noisy": True}}, 400),
    "bfloat16": Kind("cartpole-dqn", ("eager",), 3_000, {"learner": {"precision": "bfloat16"}}, 400),
    "branches": Kind("sfc-dqn", NOT_COMPILED, 1_500, {"learning_starts": 700}, 160, FEW_SERVICES),
    "topology": Kind("topology-dqn", ("eager",), 1_500, {}, 400),
    "grid": Kind("snake-dqn-grid", ("eager",), 3_000, {}, 400, FEW_SNAKES),
    "sac": Kind("pendulum-sac", ALL_LANES, 2_000, SEEN_EVENLY, 400),
    "td3": Kind("pendulum-td3", ALL_LANES, 2_000, FEW_PENDULUMS, 400),
    "ppo": Kind("cartpole-ppo", ALL_LANES, 8_192, {}, 512),
    "a2c": Kind("cartpole-a2c", NOT_COMPILED, 8_192, {}, 512),
    "continuous": Kind("pendulum-ppo", ALL_LANES, 8_192, NORMALIZED, 512, {"rollout_steps": 32}),
    "sfc-ppo": Kind("sfc-ppo", ("eager",), 2_048, {}, 256, FEW_ROWS),
    "graphs": Kind("durotaxis-ppo", ("eager",), 512, {}, 256, FEW_NODES),
    "per-node": Kind("durotaxis-per-node", ("eager",), 512, {}, 256, FEW_NODES),
}


def run_names(length: str) -> list[str]:
    """As `dqn/native/short`: kind, lane, and `short` or `long`."""
    return [
        f"{name}/{lane}/{length}"
        for name, kind in KINDS.items()
        for lane in kind.lanes
        if length == "long" or lane != "compiled"
    ]


def settings_of(name: str, run_dir: Path) -> Any:
    kind_name, lane, length = name.split("/")
    kind = KINDS[kind_name]
    total = kind.env_steps if length == "long" else kind.short_env_steps
    off_policy = not hasattr(hotloop.preset(kind.preset), "rollout_steps")
    if off_policy and lane == "compiled":
        total = 2_000
    tree: dict[str, Any] = {
        "total_env_steps": total,
        "run_dir": str(run_dir),
        "learner": {"lane": lane},
        "evaluation": {"episodes": 2, "final_episodes": 2},
        "checkpoint": {"every": total // 4},
    }
    if off_policy:
        tree["learning_starts"] = 200
    if length == "short":
        tree |= {"log_every": 100, "evaluation": {"every": 100, **tree["evaluation"], "max_episode_steps": 50}}
        tree |= {"target": {"every": 20}} if off_policy else {}
    return hotloop.preset(kind.preset, **merge(merge(tree, kind.changes), kind.shorter if length == "short" else {}))


class BreakOff(Exception):
    """The run is half done."""


class Halfway:
    """A progress display that ends the run once half of its env steps are made."""

    def say(self, text: str) -> None:
        pass

    def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
        if session.counters.env_steps * 2 >= session.settings.total_env_steps:
            raise BreakOff


def observe(name: str, run_dir: Path) -> dict[str, Any]:
    """Train to the middle, resume to the end; the digest, and a summary of what it stands for."""
    settings = settings_of(name, run_dir)
    try:
        hotloop.train(settings, progress=Halfway())
    except BreakOff:
        result = hotloop.resume(run_dir)
    else:
        raise AssertionError(f"{name} was over before its middle")
    return {"digest": result["digest"], "summary": _summary(result, run_dir)}


def _summary(result: dict[str, Any], run_dir: Path) -> dict[str, Any]:
    found = checkpoint.newest(run_dir / "checkpoints", warn=_refuse)
    assert found is not None
    learner = found[1]["learner"]
    agent: Any = hotloop.load(run_dir)
    parameters = {f"online/{name}": value.numel() for name, value in agent.network.named_parameters()}
    online = learner.get("weights", learner["online"])  # of several networks, `online` is the one that acts
    pieces = np.split(online, np.cumsum(list(parameters.values())))[:-1]  # what is left over normalizes observations
    vectors = {name: value for name, value in learner.items() if name.rpartition("_")[2] in FOLLOWING}
    tensors = dict(zip(parameters, pieces, strict=True)) | vectors
    events = Counter(row["event"] for row in read_events(run_dir / "events.jsonl"))
    return {
        "counters": {key: result[key] for key in ("env_steps", "updates", "episodes")},
        "events": dict(sorted(events.items())),
        "tensors": {name: _size_sum_norm(values) for name, values in tensors.items()},
    }


def _refuse(text: str) -> None:
    raise AssertionError(text)


def _size_sum_norm(values: np.ndarray) -> list[float]:
    exact = values.astype(np.float64)
    return [values.size, *(float(f"{value:.6g}") for value in (exact.sum(), np.linalg.norm(exact)))]


@functools.cache
def arithmetic() -> dict[str, Any]:
    """What decides how this machine rounds: versions, vector units, and the result of a small computation."""
    return {
        "versions": {name: importlib.metadata.version(name) for name in VERSIONS},
        "vector unit": torch.backends.cpu.get_cpu_capability(),
        "processor": llvm.get_host_cpu_name(),
        "computed": computed(),
        "compiler": _compiler(),
    }


def same_arithmetic(one: dict[str, Any], other: dict[str, Any], lane: str) -> bool:
    """The C++ compiler counts for the compiled lane only."""
    return all(one[key] == other[key] for key in one if key != "compiler" or lane == "compiled")


def _compiler() -> str:
    program = shutil.which("c++") or shutil.which("g++")
    return (
        subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split("\n")[0] if program else ""
    )


def frozen() -> dict[str, Any]:
    return json.loads(FILE.read_text())
