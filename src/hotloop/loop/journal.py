"""What a run writes while it trains: event rows, checkpoints, and the final result."""

from __future__ import annotations

import copy
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotloop.core.timer import NOT_TRAINING, PhaseTimer
from hotloop.core.values import shortened
from hotloop.loop.agents import misfits_named
from hotloop.loop.contract import require_size
from hotloop.loop.evaluate import env_steps_of
from hotloop.loop.resuming import changed_settings, extension, require_counts, require_like, require_nanoseconds, told
from hotloop.loop.session import Session, State
from hotloop.loop.spec_data import specs_as_data, torso_as_data
from hotloop.runs import checkpoint
from hotloop.runs.digest import digest
from hotloop.runs.directory import Run
from hotloop.runs.events import EventLog, damage_before, salvage_events
from hotloop.runs.files import SCHEMA

LANE = "lane.json"
"""Which lane the run was begun on; a resumed run takes the same."""

EVALUATION_COST = "evaluation_cost"
"""In a checkpoint's facts, beside its state; older runs have none."""


class Journal:
    def __init__(self, run: Run, session: Session, timer: PhaseTimer, warn: Callable[[str], None]) -> None:
        self._run = run
        self._session = session
        self._timer = timer
        self._warn = warn
        self._settings = run.settings()  # as they stand in the file, which a later resume reads again
        self._opened: EventLog | None = None
        self._checkpoints = checkpoint.Checkpoints(run.checkpoints, session.settings.checkpoint.keep, warn)
        self._beginning: tuple[State, int] | None = None
        self.saved_env_steps = 0

    @property
    def run_path(self) -> Path:
        return self._run.path

    def begin(self) -> None:
        """A first row for a new run; for one that stopped, everything as its newest checkpoint has it."""
        found = self._checkpoints.newest(self._warn)
        if found is None:
            self._opened = EventLog(self._run.events)
            choice = self._session.learner.choice
            self._run.write_json(LANE, {"lane": choice.name, "reason": choice.reason})
            if self._events.offset:
                self._warn("the run had saved nothing yet: it begins anew, with the same seed")
            self._events.truncate(0)
            if (start := self._run.start_weights()) is not None:
                require_size(start, self._session)
                self._session.start_from(start)
            self._events.append({"event": "start", "schema": SCHEMA, "time": time.time(), "machine": machine_facts()})
            if self._session.settings.on_nan == "rollback":
                self._beginning = copy.deepcopy(self._session.state()), self._events.offset
            return
        path, state, meta = found
        with misfits_named(path):
            require_counts(state["counters"])
            require_like(state, self._session.state())
            self._session.load_state(state)
            self._session.best.load_cost(meta.get(EVALUATION_COST, {}))
            self._timer.add_ns(require_nanoseconds(meta["phases_ns"]))
            offset = meta["events_offset"]
            if type(offset) is not int or offset < 0:
                raise ValueError(f"`events_offset` is {shortened(offset)}")
        self.saved_env_steps = self._session.counters.env_steps
        self._warn(f"continues from {self.saved_env_steps:,} env steps")
        self._continue_events(offset)
        if extended := extension(meta.get("settings"), self._settings):
            self._warn(
                f"extended from {extended[0]:,} to {extended[1]:,} env steps: not promised to equal a longer run"
            )
            self.log({"event": "extended", "env_steps": self.saved_env_steps, "from": extended[0], "to": extended[1]})
        if changed := changed_settings(meta.get("settings"), self._settings):
            self._warn(f"settings were changed, so the run will not end as it would have: {told(changed)}")
            row = {"event": "settings", "env_steps": self.saved_env_steps}
            self.log(row | {"changed": {name: list(pair) for name, pair in changed.items()}})

    def _continue_events(self, offset: int) -> None:
        """Rows as they were at the checkpoint. A file that lost some is no reason to lose the run: it is put aside,
        what can be read of it is kept, and both are told."""
        damage = damage_before(self._run.events, offset)
        aside, kept = salvage_events(self._run.events, self.saved_env_steps) if damage else ("", 0)
        self._opened = EventLog(self._run.events)
        if not damage:
            self._events.truncate(offset)
            return
        where = f"; the damaged file is now {aside}" if aside else ""
        self._warn(f"{self._run.events} is damaged ({damage}): {kept} rows of it are kept, the others are lost{where}")
        lost = {"reason": damage, "rows_kept": kept, "damaged": aside}
        self.log({"event": "rows_lost", "env_steps": self.saved_env_steps, **lost})

    @property
    def _events(self) -> EventLog:
        assert self._opened is not None, "the journal has not begun"
        return self._opened

    def rewind(self) -> None:
        """Load the newest checkpoint, or the state that the run began with, and cut off the rows logged since."""
        found = self._checkpoints.newest(self._warn)
        if found is not None:
            state, offset, cost = found[1], found[2]["events_offset"], found[2].get(EVALUATION_COST, {})
        else:
            assert self._beginning is not None
            state, offset, cost = copy.deepcopy(self._beginning[0]), self._beginning[1], {}
        self._session.load_state(state)
        self._session.best.load_cost(cost)
        self._events.truncate(offset)

    def log(self, row: dict[str, Any]) -> None:
        self._events.append(row | self._clock_fields())

    def save(self) -> None:
        """A checkpoint of everything, its predecessors thinned out."""
        session = self._session
        envs = session.collector.envs
        meta = {
            "phases_ns": self._timer.totals_ns(),
            "events_offset": self._events.sync(),
            **specs_as_data(envs),
            **torso_as_data(session.settings),
            "lane": session.learner.lane.name,
            "settings": self._settings,
            EVALUATION_COST: session.best.cost(),
        }
        self._checkpoints.save(checkpoint.checkpoint_name(session.counters.env_steps), session.state(), meta)
        self._checkpoints.thin()
        self.saved_env_steps = session.counters.env_steps

    def finish(self, evaluation: dict[str, Any], final_evaluation: dict[str, Any], state_digest: str) -> dict[str, Any]:
        """The result of a run whose best weights and last weights were judged so; the same object: the same weights."""
        counters = self._session.counters
        judged = [evaluation] if final_evaluation is evaluation else [evaluation, final_evaluation]
        result = {
            "run": str(self._run.path),
            "env_steps": counters.env_steps,
            "updates": counters.updates,
            "episodes": counters.episodes,
            **self._clock_fields(with_shares=True),
            "evaluation_env_steps": self._session.best.spent + sum(map(env_steps_of, judged)),
            "evaluation": evaluation,
            "final_evaluation": final_evaluation,
            "lane": self._session.learner.lane.name,
            "precision": self._session.settings.learner.precision,
            "digest": state_digest,
        }
        self._run.write_json(
            "trace.json", {"schema": SCHEMA, "phases": result["phases"], "counts": self._timer.counts()}
        )
        self._run.write_json("result.json", {"schema": SCHEMA, **result})
        return result

    def state_digest(self) -> str:
        return digest(self._session.state())

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _clock_fields(self, with_shares: bool = False) -> dict[str, Any]:
        seconds = {name: ns / 1e9 for name, ns in self._timer.totals_ns().items()}
        total = sum(seconds.values())
        training = total - sum(seconds.get(name, 0.0) for name in NOT_TRAINING)
        phases: dict[str, Any] = {name: round(value, 6) for name, value in seconds.items()}
        if with_shares:
            phases = {name: {"seconds": value, "share": value / total} for name, value in seconds.items()}
        env_steps = self._session.counters.env_steps
        rate = env_steps / training if training > 0 else 0.0
        overall = {"overall_env_steps_per_second": round(env_steps / total, 3)} if with_shares else {}
        return {"seconds": round(total, 6), "env_steps_per_second": round(rate, 3), **overall, "phases": phases}


class NullJournal:
    """Takes a loop's rows and checkpoints and writes none: for loops without a run directory."""

    run_path = Path()

    def log(self, row: dict[str, Any]) -> None:
        pass

    def save(self) -> None:
        pass


def machine_facts() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "processor": platform.machine(),
        "torch_threads": torch.get_num_threads(),
    }
