"""The first run of its kind compiles side by side: the learner's kernels here, those of envs and replay in a process.

That process calls them once, on a few rows, which leaves their machine code in the cache. It ends with the process that
started it, whatever ends that one, and does not load PyTorch. Where there is one core, nowhere to keep machine code, or
nothing new to compile, there is no such process, and nothing is different but the time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import binding

from hotloop.core.children import own_child
from hotloop.core.kernel_cache import PACKAGE, kernels_are_kept, kernels_folder, source_hash
from hotloop.core.own_folders import NoFolder
from hotloop.core.settings import as_tree, build
from hotloop.envs.contract_play import Chooser, seeds_for
from hotloop.envs.registry import is_native, make_envs
from hotloop.presets.registry import class_of
from hotloop.presets.run_settings import learns_from_replay
from hotloop.replay.buffer import ReplayMemory
from hotloop.replay.layout import stored_action
from hotloop.replay.n_step import Returns

PROGRAM = "hotloop.loop.rehearsal"
MOST_SECONDS = 120.0
"""A process that takes longer is not waited for: what it would have compiled is compiled here."""
NUM_ENVS, ROWS = 2, 4

_under_way: dict[subprocess.Popen[bytes], Callable[[str], None]] = {}


@contextlib.contextmanager
def rehearsing(settings: Any, say: Callable[[str], None]) -> Iterator[None]:
    """While active, a process compiles for a run of these settings, where that pays; `finish_rehearsal` awaits it."""
    mark = _mark_of(settings)
    process = None if mark is None or mark.exists() else _start(settings, mark)
    if process is None:
        yield
        return
    say("compiling the kernels of envs and replay in a second process, which no run here has needed before")
    _under_way[process] = say
    try:
        yield
    finally:
        del _under_way[process]
        process.kill()
        process.communicate()


def _start(settings: Any, mark: Path) -> subprocess.Popen[bytes] | None:
    folder = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    request = json.dumps({"settings": as_tree(settings), "mark": str(mark)}).encode() + b"\n"
    try:
        process = subprocess.Popen(
            own_child(PROGRAM),
            env={**os.environ, "NUMBA_CACHE_DIR": folder} if folder else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the run, which ends this one
        )
    except OSError:  # no more processes, or no memory for one
        return None
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()  # and stays open: its end is the other's sign to leave
    return process


def finish_rehearsal() -> None:
    """Wait until what is compiled elsewhere is there."""
    for process, say in _under_way.items():
        if process.poll() is None:
            say("the learner's kernels are there; waiting for those of envs and replay")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(MOST_SECONDS)


def _mark_of(settings: Any) -> Path | None:
    """The file that says that such a run's kernels were compiled here before; None where none should be in advance."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not is_native(settings.env.id) or cores < 2 or numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None
    sources = sorted(PACKAGE.rglob("*_kernels.py"))
    told: list[Any] = [source_hash(path) for path in sources]
    told += [settings.env.id, sorted(settings.env.options.items()), binding.get_host_cpu_name()]
    if learns_from_replay(settings):
        told += [settings.n_step > 1, settings.replay.prioritized]
    try:
        return kernels_folder() / f"rehearsed-{hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]}"
    except NoFolder:
        return None


def rehearse(settings: Any) -> None:
    """Step the envs and fill and draw from the replay of such a run, once each."""
    envs = make_envs(settings.env, NUM_ENVS, seeds_for(NUM_ENVS))
    obs, mask = envs.reset()
    chooser, replay = Chooser(NUM_ENVS), None
    if learns_from_replay(settings):
        kept = dataclasses.replace(settings.replay, buffer_size=1_000, memory="ram", folder="")
        returns = Returns(settings.n_step, settings.gamma, settings.timeouts_are_terminal)
        width = envs.action_spec.mask_width if envs.has_action_mask else None
        replay = ReplayMemory(kept, envs.obs_spec, NUM_ENVS, returns, 0, width, stored_action(envs.action_spec))
    for _ in range(getattr(settings, "n_step", 1) + 1):
        action: Any = chooser.choose(envs.action_spec, obs, mask)
        step = envs.step(action)
        if replay is not None and isinstance(action, np.ndarray):
            replay.add(obs, action, step)
        obs, mask = step.obs, step.action_mask
    if replay is not None:
        drawn = replay.sample(ROWS, 1, 0, 1)
        if settings.replay.prioritized:
            replay.update_priorities(drawn.index, np.ones((1, ROWS), np.float32))
    envs.close()


def main() -> None:
    """What the second process does: the request is a line on stdin."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    tree = request["settings"]
    rehearse(build(class_of(tree), tree))
    if kernels_are_kept():
        Path(request["mark"]).touch(mode=0o600)


def _leave_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)
