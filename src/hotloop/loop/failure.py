"""What a run does when numbers are not finite: keep the update that failed, then go back once, or stop.

    failure/lane.safetensors batch.safetensors ... manifest.json

A folder like a checkpoint's, written in the same way: whole or not at all, every byte hashed, nothing that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hotloop.core.errors import NonFiniteError, RunError
from hotloop.core.settings import as_tree
from hotloop.lanes.nonfinite import FailedUpdate, NonFiniteTensorError
from hotloop.loop.journal import Journal
from hotloop.loop.session import Session
from hotloop.loop.spec_data import specs_as_data
from hotloop.runs import checkpoint
from hotloop.runs.directory import FAILURE, Run
from hotloop.runs.files import TEMPORARY, is_real_folder, is_temporary, remove_folder, require_real_folder


def go_back_or_raise(
    error: NonFiniteError, run: Run, session: Session, journal: Journal, say: Callable[[str], None]
) -> None:
    """Keep what failed. Then the run continues from its last checkpoint, if it may and has not done so before."""
    _keep(error, run, session, say)
    if session.settings.on_nan != "rollback" or session.rollbacks > 0:
        raise error
    reached = session.counters.env_steps
    journal.rewind()
    session.rollbacks += 1
    session.reseed("rollback", session.rollbacks)
    row = {"env_steps": session.counters.env_steps, "reached_env_steps": reached, "reason": error.message}
    journal.log({"event": "rollback", **row})
    journal.save()  # that the run went back is never forgotten
    say(f"{error.message}; back to {session.counters.env_steps:,} env steps, once")


def _keep(error: NonFiniteError, run: Run, session: Session, say: Callable[[str], None]) -> None:
    try:
        save_failure(error, run, session)
    except RunError as problem:  # a full disk must not hide what happened
        say(f"what failed could not be kept: {problem.message}")
        return
    error.hint = f"{error.hint}; `hotloop debug-nan '{run.path}'` repeats what failed".removeprefix("; ")


def save_failure(error: NonFiniteError, run: Run, session: Session) -> Path:
    """Write the bundle, in place of one that was there before."""
    require_real_folder(run.path / FAILURE)
    failed = error.failed if isinstance(error, NonFiniteTensorError) else FailedUpdate(0, 0.0, {}, {})
    counters, envs = session.counters, session.collector.envs
    meta = {
        "message": error.message,
        "first": error.first if isinstance(error, NonFiniteTensorError) else "",
        "update": failed.update,
        "lr": failed.lr,
        "counters": counters.state(),
        "rollbacks": session.rollbacks,
        "lane": session.learner.lane.name,
        "settings": as_tree(session.settings),
        **specs_as_data(envs),
    }
    ours = [path for path in run.path.glob(f"{TEMPORARY}{FAILURE}-*") if is_temporary(path.name)]
    for path in (run.path / FAILURE, *ours):
        if is_real_folder(path):
            remove_folder(path)
    state = {"lane": failed.state or session.learner.lane.state(), "batch": failed.batch}
    return checkpoint.save(run.path, FAILURE, state, meta)
