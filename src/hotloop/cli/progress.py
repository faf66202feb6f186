"""How a run is getting on: a live bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import time
from typing import Any

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from hotloop.cli.console import display_console, lost_display
from hotloop.doctor.timer import PhaseTimer
from hotloop.loop.contract import TrainingSession

PHASES = ("act", "env", "store", "sample", "advantage", "update", "log")
_TERMINAL_SECONDS, _PLAIN_SECONDS = 0.2, 5.0


class TerminalProgress:
    """Redraws at most five times a second; asked at every iteration, so a refusal must cost next to nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = display_console(quiet)
        self._live: Live | None = None
        self._every_ns = int((_TERMINAL_SECONDS if self._console.is_terminal else _PLAIN_SECONDS) * 1e9)
        self._next_ns = 0
        self._row: dict[str, Any] = {}
        self._since: tuple[float, int] = (0.0, -1)

    def __enter__(self) -> TerminalProgress:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def lost(self) -> str:
        """Why the display ended before the run did; empty where it did not."""
        return lost_display(self._console)

    def say(self, text: str) -> None:
        self._console.print(text, style="dim")

    def show(self, session: TrainingSession, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None:
        if row is not None:
            self._row = row
        if self._since[1] < 0:
            self._since = (time.monotonic(), session.counters.env_steps)
            self._next_ns = timer.last_ns + self._every_ns
        if timer.last_ns < self._next_ns:
            return
        self._next_ns = timer.last_ns + self._every_ns
        facts = self._facts(session)
        if self._live is not None:
            self._live.update(_drawn(session, facts, timer), refresh=True)
        else:
            self._console.print(_plain(session, facts, timer), soft_wrap=True)

    def _facts(self, session: TrainingSession) -> dict[str, str]:
        seconds, made = time.monotonic() - self._since[0], session.counters.env_steps - self._since[1]
        rate = made / seconds if seconds > 0 and made > 0 else 0.0
        left = (session.settings.total_env_steps - session.counters.env_steps) / rate if rate else None
        facts = {
            "rate": f"{rate:,.0f} env steps/s",
            "left": "-" if left is None else _clock(left),
            "return": _number(session.metrics.mean_return),
            "loss": _number(self._row.get("loss")),
            **{name: _number(value) for name, value in session.facts().items()},
        }
        if session.best.env_steps >= 0:
            facts["best"] = _number(session.best.mean_return)
        return facts


def phase_shares(timer: PhaseTimer) -> dict[str, float]:
    """The share of each phase in the time the loop itself took."""
    totals = timer.totals_ns()
    loop = sum(totals.get(name, 0) for name in (*PHASES, "other")) or 1
    return {name: totals[name] / loop for name in PHASES if name in totals}


def _shares(timer: PhaseTimer) -> str:
    return "  ".join(f"{name} {share:.0%}" for name, share in phase_shares(timer).items())


def _drawn(session: TrainingSession, facts: dict[str, str], timer: PhaseTimer) -> Table:
    table = Table.grid(padding=(0, 1))
    done, total = session.counters.env_steps, session.settings.total_env_steps
    bar = ProgressBar(total=total, completed=done, width=30)
    table.add_row(bar, f"{done:,}/{total:,}  {facts['rate']}  {facts['left']} left")
    rest = [f"{name} {value}" for name, value in facts.items() if name not in ("rate", "left")]
    table.add_row(f"episodes {session.counters.episodes:,}", "  ".join(rest))
    table.add_row(f"updates {session.counters.updates:,}", _shares(timer))
    return table


def _plain(session: TrainingSession, facts: dict[str, str], timer: PhaseTimer) -> str:
    counters = session.counters
    words = [f"env steps {counters.env_steps:,}/{session.settings.total_env_steps:,}"]
    words += [f"updates {counters.updates:,}", f"episodes {counters.episodes:,}"]
    words += [f"{name} {value}" for name, value in facts.items()]
    return " | ".join([*words, _shares(timer)])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
