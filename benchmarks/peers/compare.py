"""Hotloop against other libraries: training, replay, and the table of both.

Whole training runs against other libraries: a process each, one thread each, taking turns.

Every process times the same env steps by its processor time, after its start-up, compilation and first updates; each
run of a library has one of ours just before it, and the two give one ratio. Every process stays on one core.

Replay against other libraries: both calls interleaved in this process, by the paired timing of `hotloop prove`.

What came of a comparison with another library: rows of plain data, and the table a person reads.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from benchmarks.peers.libraries import ALGORITHMS, Library
from benchmarks.peers.replay_libraries import CALLS
from benchmarks.peers.replay_work import Call, Work, hotloop_call
from hotloop.core import program
from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.intervals import median_interval
from hotloop.core.keeper import Keeper
from hotloop.proof import speed
from hotloop.render.tables import as_rich


@dataclass(frozen=True)
class PeerRow:
    """`ratio` above 1: hotloop is that many times faster; `low` and `high` enclose it with 95 %.

    Fewer than six ratios cannot promise that (three: 75 %); they are then simply the lowest and the highest.
    """

    work: str
    library: str
    version: str
    unit: str  # of `theirs` and `hotloop`
    theirs: float
    hotloop: float
    ratio: float
    low: float
    high: float

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


HEADINGS = ["work", "library", "theirs", "hotloop", "unit", "ratio", "low-high"]


def draw_peers(rows: Sequence[PeerRow]) -> Table:
    """For a terminal; in red where hotloop is behind."""
    behind = [number for number, row in enumerate(rows) if row.ratio < 1]
    return as_rich([HEADINGS, *map(_cells, rows)], left=("library", "unit"), red=behind)


def _cells(row: PeerRow) -> list[str]:
    digits = 1 if row.unit == "µs" else 0
    return [
        row.work,
        f"{row.library} {row.version}",
        f"{row.theirs:,.{digits}f}",
        f"{row.hotloop:,.{digits}f}",
        row.unit,
        f"{row.ratio:.2f}x",
        f"{row.low:.2f}-{row.high:.2f}",
    ]


def losses(rows: Sequence[PeerRow]) -> list[str]:
    """Where hotloop does not win, in words."""
    return [f"{row.work}: {row.library} is {1 / row.ratio:.2f}x as fast as hotloop" for row in rows if row.ratio < 1]


def remarks(rows: Sequence[PeerRow]) -> list[str]:
    behind = losses(rows)
    ahead = f"hotloop is ahead in {len(rows) - len(behind)} of {len(rows)}; load average {program.load_average()}"
    return [ahead, *[f"behind: {sentence}" for sentence in behind]]


Results = Iterator[tuple[str, "PeerRow | str | None"]]
"""What was compared, and what came of it: a row, the reason why there is none, or nothing to tell yet."""


def compare_peers(
    libraries: Sequence[Library], parts: Sequence[str], seconds: float, rounds: int, env_steps: int
) -> Iterator[tuple[int, Results]]:
    """Replay, then training, as far as they are among `parts`: how many comparisons there will be, and those."""
    with arithmetic_on(threads=1):
        if "replay" in parts:
            yield count_comparisons(libraries), compare_replays(libraries, seconds)
        if planned := plan(libraries, WARM_UP, env_steps, parts):
            yield len(planned) * rounds, compare_training(planned, rounds)


FOLDER = Path(__file__).parent
PPO_SCRIPTS = {"stable-baselines3": "ppo_stable_baselines3.py"}
SCRIPTS = {
    "stable-baselines3": "dqn_stable_baselines3.py",
    "rlox": "dqn_rlox.py",
    "tianshou": "dqn_tianshou.py",
    "sbx-rl": "dqn_sbx.py",
    "rejax": "dqn_rejax.py",
}
SAC_SCRIPTS = {"stable-baselines3": "sac_stable_baselines3.py", "sbx-rl": "sac_sbx.py"}
SAC_SIZES = ("64x64-b64", "256x256-b256", "400x300-b256")
"""Hidden layers of actor and critics, and rows of a batch."""
OWN_ENV = ("rejax",)
"""Libraries that train on a CartPole of their own, without Gymnasium: ours then does so too."""
PPO_ROLLOUTS = 4
"""PPO makes so many times as many env steps: it learns from each for a shorter time."""
SAC_SHARE = 5
"""SAC makes a so-many-th part of them: an update of its larger networks takes milliseconds anywhere."""
WARM_UP = 1_000
"""Env steps before the clock starts, half of them with updates."""
TIMEOUT_SECONDS = 900
ONE_THREAD = {
    **dict.fromkeys(program.ONE_THREAD, "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


@dataclass(frozen=True)
class Training:
    """DQN on CartPole, hidden layers 64-64, batch 32, one update every so many env steps; PPO, by `ppo_cartpole`; or
    SAC on Pendulum, by `clocked_pendulum`."""

    update_every: int
    warm_up: int
    env_steps: int
    native_env: bool = False
    algorithm: str = "dqn"
    size: str = ""

    @property
    def name(self) -> str:
        if self.algorithm == "ppo":
            return f"ppo-cartpole/{'our-env' if self.native_env else 'gymnasium'}"
        if self.algorithm == "sac":
            return f"sac-pendulum/{self.size}"
        return f"dqn-cartpole{'-own-env' if self.native_env else ''}/update-every-{self.update_every}"

    @property
    def words(self) -> list[str]:
        numbers = ["--update-every", self.update_every, "--warm-up", self.warm_up, "--env-steps", self.env_steps]
        size = ["--size", self.size] if self.size else []
        return [*map(str, numbers), *(["--native-env"] if self.native_env else []), *size]


class ScriptFailedError(Exception):
    """A library's own training did not end well; the last line it wrote."""


Runner = Callable[[str, str, Training], dict[str, Any]]


def run_script(python: str, script: str, training: Training) -> dict[str, Any]:
    """Run one script of `peers/` by path; what its JSON line says."""
    words = [python, str(FOLDER / script), *training.words]
    pipe, variables = subprocess.PIPE, {**os.environ, **ONE_THREAD}
    with Keeper() as keeper, subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=variables) as process:
        keeper.watch(process.pid, signal.SIGKILL)
        _keep_on_one_core(process.pid)
        try:
            output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise ScriptFailedError(f"not finished after {TIMEOUT_SECONDS} s") from None
        finally:
            process.kill()
            process.wait()
            keeper.forget(process.pid)
    if process.returncode or not output.strip():
        raise ScriptFailedError((errors.strip() or "it said nothing").splitlines()[-1])
    return dict(json.loads(output.strip().splitlines()[-1]))


def _keep_on_one_core(pid: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # it may be over already
            os.sched_setaffinity(pid, {max(os.sched_getaffinity(0))})


def plan(
    libraries: Sequence[Library], warm_up: int, env_steps: int, algorithms: Sequence[str] = ALGORITHMS
) -> list[tuple[Library, Training]]:
    """What each library is compared on."""
    made = []
    for library in libraries:
        if library.name in OWN_ENV:
            made.append((library, Training(1, warm_up, env_steps, native_env=True)))
        elif library.name in SCRIPTS:
            made += [(library, Training(every, warm_up, env_steps)) for every in (1, 4)]
        if library.name in PPO_SCRIPTS:
            window = (PPO_ROLLOUTS * warm_up, PPO_ROLLOUTS * env_steps)
            made += [(library, Training(1, *window, own, "ppo")) for own in (False, True)]
        if library.name in SAC_SCRIPTS:
            window = (max(1, warm_up // SAC_SHARE), max(1, env_steps // SAC_SHARE))
            made += [(library, Training(1, *window, algorithm="sac", size=size)) for size in SAC_SIZES]
    chosen = [pair for pair in made if pair[1].algorithm in algorithms]
    return sorted(chosen, key=lambda pair: pair[1].name)


def compare_training(planned: Sequence[tuple[Library, Training]], rounds: int, run: Runner = run_script) -> Results:
    """After every pair of runs what was compared; with a library's last one its row, or the reason why it has none."""
    rates: list[list[tuple[float, float]]] = [[] for _ in planned]
    failed: dict[int, str] = {}
    for turn in range(rounds):
        for index, (library, training) in enumerate(planned):
            about = f"{training.name} {library.name}"
            if index not in failed:
                try:
                    rates[index].append(_pair(library, training, run))
                except ScriptFailedError as error:
                    failed[index] = f"{about} failed: {error}"
            if turn < rounds - 1:
                yield about, None
            else:
                yield about, failed.get(index) or _row(library, training, rates[index])


def _pair(library: Library, training: Training, run: Runner) -> tuple[float, float]:
    """Env steps per second of hotloop, then of the library."""
    scripts = {"dqn": SCRIPTS, "ppo": PPO_SCRIPTS, "sac": SAC_SCRIPTS}[training.algorithm]
    ours = run(sys.executable, f"{training.algorithm}_hotloop.py", training)
    theirs = run(library.python, scripts[library.name], training)
    return ours["env_steps"] / ours["seconds"], theirs["env_steps"] / theirs["seconds"]


def _row(library: Library, training: Training, rates: Sequence[tuple[float, float]]) -> PeerRow:
    ratios = [ours / theirs for ours, theirs in rates]
    low, high = median_interval(ratios)
    return PeerRow(
        work=training.name,
        library=library.name,
        version=library.version,
        unit="env steps/s",
        theirs=median(theirs for _, theirs in rates),
        hotloop=median(ours for ours, _ in rates),
        ratio=median(ratios),
        low=low,
        high=high,
    )


WORK = (
    Work("add", 1, 4),
    Work("store", 1, 4),
    Work("add", 256, 11),
    *(Work("sample", *size) for size in ((32, 4), (64, 11), (256, 11))),
    *(Work("prioritized", *size) for size in ((32, 4), (64, 11), (256, 11))),
)


def count_comparisons(libraries: Sequence[Library]) -> int:
    return len(WORK) * sum(library.name in CALLS for library in libraries)


def compare_replays(libraries: Sequence[Library], seconds: float) -> Results:
    """What was compared and what came of it; None where the library cannot do the work."""
    for work in WORK:
        ours = hotloop_call(work)
        for library in libraries:
            make = CALLS.get(library.name)
            if make is None:
                continue
            theirs = make(work)
            row = None if theirs is None else _compare(work, library, (theirs, ours), seconds)
            yield f"{work.name} {library.name}", row


def _compare(work: Work, library: Library, calls: tuple[Call, Call], seconds: float) -> PeerRow:
    for call in calls:
        call()  # what is compiled or loaded at the first call must not shape the samples
    measured = speed.measure(*calls, seconds)
    return PeerRow(
        work=work.name,
        library=library.name,
        version=library.version,
        unit="µs",
        theirs=measured.first_seconds * 1e6,
        hotloop=measured.second_seconds * 1e6,
        ratio=measured.ratio,
        low=measured.low,
        high=measured.high,
    )
