"""How a run is getting on: a live bar on a terminal, plain lines elsewhere; always on stderr.

The end of a run in words: what was learned and where the time went.
"""

from __future__ import annotations

import time
from typing import Any

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hotloop.cli.console import answer_console, display_console, lost_display
from hotloop.core.timer import PhaseTimer
from hotloop.doctor.trace import EVALUATE
from hotloop.loop.session import Session

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
        """When the rate began to be counted, and at how many env steps: anew with the first update, since a warm-up
        that learns nothing says nothing about the rest."""
        self._learns = False

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
        self._console.print(text, style="dim", soft_wrap=True)  # a path in it can be copied

    def show(self, session: Session, timer: PhaseTimer, row: dict[str, Any] | None = None) -> None:
        if row is not None:
            self._row = row
        if self._since[1] < 0 or self._learns < (session.counters.updates > 0):
            first, self._learns = self._since[1] < 0, session.counters.updates > 0
            self._since = (time.monotonic(), session.counters.env_steps)
            self._next_ns = timer.last_ns + self._every_ns if first else self._next_ns
        if timer.last_ns < self._next_ns:
            return
        self._next_ns = timer.last_ns + self._every_ns
        facts = self._facts(session)
        if self._live is not None:
            self._live.update(_drawn(session, facts, timer), refresh=True)
        else:
            self._console.print(_plain(session, facts, timer), soft_wrap=True)

    def _facts(self, session: Session) -> dict[str, str]:
        seconds, made = time.monotonic() - self._since[0], session.counters.env_steps - self._since[1]
        rate = made / seconds if seconds > 0 and made > 0 else 0.0
        left = max(0, session.settings.total_env_steps - session.counters.env_steps) / rate if rate else None
        loss = self._row.get("loss")  # rows before the first update have none
        facts = {
            "rate": f"{rate:,.0f} env steps/s",
            "left": "-" if left is None else _clock(left),
            "return": _number(session.metrics.mean_return),
            "loss": _number(session.metrics.latest("loss") if loss is None else loss),
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


def _drawn(session: Session, facts: dict[str, str], timer: PhaseTimer) -> Table:
    table = Table.grid(padding=(0, 1))
    done, total = session.counters.env_steps, session.settings.total_env_steps
    bar = ProgressBar(total=total, completed=done, width=30)
    table.add_row(bar, f"{done:,}/{total:,}  {facts['rate']}  {facts['left']} left")
    rest = [f"{name} {value}" for name, value in facts.items() if name not in ("rate", "left")]
    table.add_row(f"episodes {session.counters.episodes:,}", "  ".join(rest))
    table.add_row(f"updates {session.counters.updates:,}", _shares(timer))
    return table


def _plain(session: Session, facts: dict[str, str], timer: PhaseTimer) -> str:
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


FEW_EPISODES = 10
MUCH_EVALUATION = 0.2


def print_result(result: dict[str, Any]) -> None:
    console = answer_console()
    evaluation, last = result["evaluation"], result["final_evaluation"]
    console.print(
        Text("\nlearned", "bold"),
        f" mean return {evaluation['mean_return']:.1f} ± {evaluation['std_return']:.1f} over "
        f"{evaluation['episodes']} fresh episodes (best weights; the last ones: {last['mean_return']:.1f})",
    )
    if own := _own_measures(evaluation):
        console.print(f"         {own}")
    console.print(
        Text("made", "bold"),
        f"    {result['env_steps']:,} env steps, {result['updates']:,} updates, "
        f"{result['episodes']:,} episodes in {result['seconds']:.1f} s: "
        f"{result['env_steps_per_second']:,.0f} env steps/s while training, "
        f"{result['env_steps'] / result['seconds']:,.0f} all in all ({result['lane']} lane)",
    )
    console.print(_phase_table(result["phases"]))
    console.print(Text("run", "bold"), f"     {result['run']}", soft_wrap=True)


def remarks(result: dict[str, Any]) -> list[str]:
    """What a reader of the summary should know: a judgement on few episodes, and what LOG003 of the doctor says."""
    said, phases = [], result["phases"]
    if (episodes := result["evaluation"]["episodes"]) < FEW_EPISODES:
        said.append(
            f"judged on {episodes} episode{'s' * (episodes > 1)} only: `hotloop evaluate '{result['run']}' --episodes "
            "100` (with `--trust` where the env is a file of yours) says more, or `--evaluation.final-episodes 100` in "
            "the next run"
        )
    seconds = {name: phase["seconds"] for name, phase in phases.items() if name not in ("start-up", "compile")}
    share = seconds.get(EVALUATE, 0.0) / (sum(seconds.values()) or 1.0)
    if share >= MUCH_EVALUATION:
        said.append(
            f"LOG003: evaluation takes {share:.0%} of the loop ({seconds[EVALUATE]:.1f} s), and its env steps teach "
            "nothing; a larger `--evaluation.every`, or fewer `--evaluation.episodes` and "
            "`--evaluation.final-episodes`, give the time back"
        )
    return said


def _own_measures(evaluation: dict[str, Any]) -> str:
    """What the workload measures beside the return: scores, rates; the terms of a reward are left to `result.json`."""
    told = ("episodes", "mean_return", "std_return", "mean_length")
    names = [name for name in evaluation if name not in told and not name.startswith("reward_")]
    measured = {name: evaluation[name] for name in names if evaluation[name] is not None}
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in measured.items())


def _phase_table(phases: dict[str, dict[str, float]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("phase")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for name, phase in sorted(phases.items(), key=lambda item: -item[1]["seconds"]):
        table.add_row(name, f"{phase['seconds']:.2f}", f"{phase['share']:.1%}", "█" * round(40 * phase["share"]))
    return table


def print_evaluation(evaluation: dict[str, Any]) -> None:
    console = answer_console()
    width = max(16, *map(len, evaluation))
    for name, value in evaluation.items():
        text = "-" if value is None else f"{value:,.2f}" if isinstance(value, float) else str(value)
        console.print(f"{name:{width}} {text}")
