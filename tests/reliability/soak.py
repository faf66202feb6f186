"""Memory, open files and threads over a long run, counted by what happened rather than by hours.

    python tests/reliability/soak.py --env-steps 100M --checkpoints 1000 --worker-kills 500

Prints a row now and then and a verdict for each kind of work, and exits with 1 where something grew: open files,
threads and child processes not at all, memory by no more than `--megabytes` between the second fifth and the last.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import psutil

import hotloop
from hotloop.core.values import parse_count
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings

SAMPLES = 50
"""Rows that each kind of work gives, where it lasts that long."""
SMALL: dict[str, Any] = {"network": {"hidden": [16]}, "batch_size": 16, "learning_starts": 200}


class Sample(NamedTuple):
    at: int
    megabytes: float
    handles: int
    threads: int
    children: int


class Watch:
    """Takes a sample at every `total / SAMPLES` of what it is told, and prints it."""

    def __init__(self, name: str, total: int) -> None:
        self.name = name
        self.samples: list[Sample] = []
        self._every = max(1, total // SAMPLES)
        self._own = psutil.Process()
        print(f"\n{name}\n{'at':>12}{'MB':>9}{'files':>7}{'threads':>9}{'children':>10}")

    def see(self, at: int) -> None:
        if self.samples and at // self._every == self.samples[-1].at // self._every:
            return
        gc.collect()
        memory = self._own.memory_info().rss / 2**20
        children = len(self._own.children(recursive=True))
        sample = Sample(at, memory, self._own.num_fds(), self._own.num_threads(), children)
        self.samples.append(sample)
        if len(self.samples) % 5 == 1:
            print(f"{at:>12,}{memory:>9.1f}{sample.handles:>7}{sample.threads:>9}{children:>10}", flush=True)

    def grown(self, megabytes: float) -> list[str]:
        """What grew between the second fifth of the samples and the last."""
        fifth = max(1, len(self.samples) // 5)
        early, late = self.samples[fifth : 2 * fifth] or self.samples[-1:], self.samples[-fifth:]
        found = []
        for field in ("handles", "threads", "children"):
            before, after = (max(getattr(sample, field) for sample in part) for part in (early, late))
            if after > before:
                found.append(f"{field} from {before} to {after}")
        before, after = (statistics.median(sample.megabytes for sample in part) for part in (early, late))
        if after - before > megabytes:
            found.append(f"memory from {before:.1f} to {after:.1f} MB")
        last = self.samples[-1].at
        print(f"{self.name}: {last:,}, memory {after - before:+.1f} MB, {', '.join(found) or 'flat'}")
        return found


class Telling:
    """A progress display that tells a watch about every iteration."""

    def __init__(self, watch: Watch, count: Callable[[Any], int]) -> None:
        self._watch = watch
        self._count = count

    def say(self, text: str) -> None:
        pass

    def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
        self._watch.see(self._count(session))


def soak_env_steps(total: int, folder: Path) -> Watch:
    """Native CartPole, updates, log rows and evaluations."""
    watch = Watch("env steps", total)
    settings = hotloop.preset(
        "cartpole-dqn",
        **SMALL,
        total_env_steps=total,
        env={"num_envs": 64},
        updates_per_env_step="1/64",
        replay={"buffer_size": 10_000},
        log_every=max(1, total // 1_000),
        checkpoint={"every": total},
        evaluation={"every": max(1, total // 100), "episodes": 4, "final_episodes": 4},
        run_dir=str(folder / "steps"),
    )
    hotloop.train(settings, progress=Telling(watch, lambda session: session.counters.env_steps))
    return watch


def soak_checkpoints(total: int, folder: Path) -> Watch:
    """A checkpoint every 64 env steps, the replay full for most of the time."""
    watch = Watch("checkpoints", total)
    settings = hotloop.preset(
        "cartpole-dqn",
        **SMALL,
        total_env_steps=64 * total,
        env={"num_envs": 8},
        updates_per_env_step="1/4",
        replay={"buffer_size": 2_000},
        log_every=64,
        checkpoint={"every": 64},
        evaluation={"every": 64 * total, "episodes": 2, "final_episodes": 2},
        run_dir=str(folder / "checkpoints"),
    )
    hotloop.train(settings, progress=Telling(watch, lambda session: session.counters.env_steps // 64))
    kept = [path.name for path in (folder / "checkpoints" / "checkpoints").iterdir()]
    assert len(kept) == 2, f"checkpoints left behind: {kept}"
    return watch


def soak_worker_kills(total: int) -> Watch:
    """SIGKILL for one worker after the other, in the middle of play."""
    watch = Watch("worker kills", total)
    seeds = np.arange(4, dtype=np.uint64)
    envs: Any = make_envs(EnvSettings(id="CartPole-v1", num_envs=4, workers=2, worker_restarts=total), 4, seeds)
    try:
        envs.reset()
        actions = np.ones(4, np.int64)
        for kill in range(total):
            envs.step(actions)
            os.kill(envs.worker_pids[kill % 2], signal.SIGKILL)
            while len(envs.incidents) == kill:
                envs.step(actions)
            watch.see(kill + 1)
    finally:
        envs.close()
    return watch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env-steps", default="100M", help="native env steps (0 leaves this out)")
    parser.add_argument("--checkpoints", default="1000", help="checkpoints written (0 leaves this out)")
    parser.add_argument("--worker-kills", default="500", help="worker processes killed (0 leaves this out)")
    parser.add_argument("--megabytes", type=float, default=8.0, help="by how much memory may grow")
    arguments = parser.parse_args()
    grown: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for soak, text in ((soak_env_steps, arguments.env_steps), (soak_checkpoints, arguments.checkpoints)):
            if total := parse_count(text):
                grown += soak(total, Path(folder)).grown(arguments.megabytes)
        if total := parse_count(arguments.worker_kills):
            grown += soak_worker_kills(total).grown(arguments.megabytes)
    print("\n" + (f"GREW: {'; '.join(grown)}" if grown else "flat"))
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
