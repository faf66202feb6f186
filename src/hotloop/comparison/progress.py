"""How a comparison is getting on: a live table on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hotloop.comparison.jobs import TrainingJob
from hotloop.core.errors import HotloopError
from hotloop.core.terminal import printable
from hotloop.runs.directory import EVENTS
from hotloop.runs.events import last_events

JUDGED = ("evaluation", "episode")
_TERMINAL_SECONDS, _PLAIN_SECONDS = 0.5, 30.0


class CompareProgress:
    """`watch` may be called as often as one likes."""

    def __init__(
        self, jobs: Sequence[TrainingJob], measure: str, console: Console, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._jobs, self._measure, self._console, self._clock = jobs, measure, console, clock
        self._every = _TERMINAL_SECONDS if console.is_terminal else _PLAIN_SECONDS
        self._began = clock()
        self._next = self._began + self._every
        self._told = {id(job) for job in jobs if job.status == "finished"}
        self._seen: dict[Path, tuple[int, float | None]] = {}
        self._live: Live | None = None

    def __enter__(self) -> CompareProgress:
        for job in self._jobs:
            self._look(job)
        if self._console.is_terminal:
            self._live = Live(self._drawn(), console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.update(self._drawn(), refresh=True)
            self._live.stop()

    def watch(self) -> None:
        self._tell_endings()
        if self._clock() < self._next:
            return
        self._next = self._clock() + self._every
        for job in self._jobs:
            if job.status == "running":
                self._look(job)
        if self._live is not None:
            self._live.update(self._drawn(), refresh=True)
        else:
            self._say("; ".join(self._line(label) for label in self._labels()))

    def _tell_endings(self) -> None:
        for job in self._jobs:
            if job.status in ("finished", "failed") and id(job) not in self._told:
                self._told.add(id(job))
                self._look(job)
                if job.status == "failed":
                    self._say(f" {job.name}: {job.error}", ("failed", "red"))
                elif self._live is None:
                    self._say(
                        f"finished {job.name}{f' on {job.where}' if job.where else ''} ({self._line(job.arm.label)})"
                    )

    def _say(self, text: str, *before: tuple[str, str]) -> None:
        """Labels and errors are text, whatever brackets are in them."""
        self._console.print(Text.assemble(*before, printable(text)), highlight=False, soft_wrap=True)

    def _look(self, job: TrainingJob) -> None:
        """Env steps so far and the best evaluation; what cannot be read stays as it was."""
        with suppress(HotloopError):
            rows = last_events(job.path / EVENTS)
            env_steps = max([0, *[row["env_steps"] for row in rows if isinstance(row.get("env_steps"), int)]])
            scores = [row.get(self._measure, row.get("return")) for row in rows if row.get("event") in JUDGED]
            before = self._seen.get(job.path, (0, None))[1]
            found = [score for score in [*scores, before] if isinstance(score, int | float)]
            self._seen[job.path] = (env_steps, max(found, default=None))

    def _labels(self) -> list[str]:
        return list(dict.fromkeys(job.arm.label for job in self._jobs))

    def _of(self, label: str) -> tuple[list[TrainingJob], float, str]:
        """An arm's jobs, the share of their env steps that is done, and the best score so far."""
        jobs = [job for job in self._jobs if job.arm.label == label]
        best = [score for job in jobs if (score := self._seen.get(job.path, (0, None))[1]) is not None]
        return jobs, sum(map(self._share, jobs)) / len(jobs), f"{max(best):.4g}" if best else "-"

    def _share(self, job: TrainingJob) -> float:
        if job.status in ("finished", "failed"):
            return 1.0
        return min(1.0, self._seen.get(job.path, (0, None))[0] / self._planned(job))

    def _planned(self, job: TrainingJob) -> float:
        """How long a script trains is known once one run of it has ended."""
        if job.arm.script is None:
            return float(job.arm.settings["total_env_steps"])
        ended = [one for one in self._jobs if one.arm is job.arm and one.status == "finished"]
        return max([self._seen.get(one.path, (0, None))[0] for one in ended], default=0) or math.inf

    def _line(self, label: str) -> str:
        jobs, share, best = self._of(label)
        done = sum(job.status == "finished" for job in jobs)
        return f"{label}: {done}/{len(jobs)} runs, {share:.0%} of env steps, best {best}"

    def _drawn(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for label in self._labels():
            jobs, share, best = self._of(label)
            counts = {status: sum(job.status == status for job in jobs) for status in ("finished", "running", "failed")}
            table.add_row(
                Text(printable(label)),
                ProgressBar(total=1.0, completed=share, width=30),
                f"{counts['finished']}/{len(jobs)} runs",
                f"{counts['running']} running",
                Text(f"{counts['failed']} failed", "red") if counts["failed"] else "",
                f"best {best}",
            )
        for job in self._jobs:
            if job.status == "running" and job.where:
                bar = ProgressBar(total=1.0, completed=self._share(job), width=30)
                table.add_row(Text(printable(f"  {job.name}"), "dim"), bar, Text(printable(job.where), "dim"))
        table.add_row(f"{self._clock() - self._began:,.0f} s")
        return table
