"""Envs in worker processes against Gymnasium's AsyncVectorEnv: the same envs stepped by both, taking turns.

Both wait for other processes, so the clock is the one on the wall. AsyncVectorEnv has a process for every env, and here
resets as we do, in the step that ended the episode.

    python -m benchmarks.workers cartpole
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from benchmarks import command
from benchmarks.peers.compare import PeerRow, draw_peers, remarks
from hotloop.cli.arguments import require_above_zero
from hotloop.cli.main import run_command
from hotloop.core.errors import SettingsError
from hotloop.envs.registry import is_file, make_envs
from hotloop.envs.user_files import load_maker
from hotloop.presets.env_settings import EnvSettings
from hotloop.proof import speed

TIMED_ENVS = Path(__file__).parent / "peers" / "timed_envs.py"


@dataclass(frozen=True)
class Work:
    name: str
    env_id: str
    num_envs: int
    workers: int

    @property
    def title(self) -> str:
        return f"{self.name}/{self.num_envs}-envs-{self.workers}-workers"


WORK = (
    Work("cartpole", "CartPole-v1", 64, 2),
    Work("cartpole-few", "CartPole-v1", 2, 2),
    Work("computing", f"{TIMED_ENVS}:Computing", 64, 2),
    Work("sleeping", f"{TIMED_ENVS}:Sleeping", 16, 16),
    Work("sleeping-few-workers", f"{TIMED_ENVS}:Sleeping", 16, 2),
)


def choose(names: Sequence[str]) -> list[Work]:
    known = [work.name for work in WORK]
    for name in names:
        if name not in known:
            raise SettingsError(f"there is no work `{name}` for the workers", f"one of {', '.join(known)}")
    return [work for work in WORK if not names or work.name in names]


def compare_workers(chosen: Sequence[Work], seconds: float) -> Iterator[tuple[str, PeerRow]]:
    """What was compared, and what came of it."""
    for work in chosen:
        with contextlib.ExitStack() as opened:
            theirs = _their_step(work, opened)  # first: it forks, and must not inherit what holds our workers
            ours = _our_step(work, opened)
            yield work.title, _row(work, speed.measure(theirs, ours, seconds, time.perf_counter))


def _their_step(work: Work, opened: contextlib.ExitStack) -> Callable[[], Any]:
    def make() -> gymnasium.Env:
        if is_file(work.env_id):
            return load_maker(work.env_id)()
        return gymnasium.make(work.env_id, disable_env_checker=True)

    envs = AsyncVectorEnv([make] * work.num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    opened.callback(envs.close)
    envs.reset(seed=0)
    actions = _actions(work)
    return lambda: envs.step(next(actions))


def _our_step(work: Work, opened: contextlib.ExitStack) -> Callable[[], Any]:
    settings = EnvSettings(id=work.env_id, num_envs=work.num_envs, workers=work.workers)
    envs = make_envs(settings, work.num_envs, np.arange(work.num_envs, dtype=np.uint64))
    opened.callback(envs.close)
    envs.reset()
    actions = _actions(work)
    return lambda: envs.step(next(actions))


def _actions(work: Work) -> Iterator[Any]:
    """Two actions in all of these envs; drawn before the clock starts."""
    drawn = np.random.default_rng(0).integers(0, 2, (64, work.num_envs))
    while True:
        yield from drawn


def _row(work: Work, measured: speed.Speed) -> PeerRow:
    return PeerRow(
        work=work.title,
        library="gymnasium AsyncVectorEnv",
        version=version("gymnasium"),
        unit="env steps/s",
        theirs=work.num_envs / measured.first_seconds,
        hotloop=work.num_envs / measured.second_seconds,
        ratio=measured.ratio,
        low=measured.low,
        high=measured.high,
    )


def run(words: list[str]) -> int:
    about = "Envs in worker processes against Gymnasium's AsyncVectorEnv, by the clock on the wall."
    parser = command.make_parser("benchmarks.workers", about, "an env (cartpole); without names, all")
    arguments = parser.parse_args(words)
    require_above_zero(arguments, "seconds")
    chosen = choose(arguments.names)
    rows = command.collect(compare_workers(chosen, arguments.seconds), len(chosen), arguments.quiet)
    return command.show(rows, draw_peers, remarks(rows), arguments.json, notes=[])


if __name__ == "__main__":
    raise SystemExit(run_command(run))
