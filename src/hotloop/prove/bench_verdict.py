"""What the lanes' times mean for a run of so many updates: plain data, and the table a person reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from rich.table import Table

NEAR_ENOUGH = 1.1
"""The rule's choice may cost so much more than the cheapest lane."""


@dataclass(frozen=True)
class LaneTime:
    microseconds: float  # per update
    ratio: float  # of eager's time to this
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What `auto` chooses for a run of so many updates, and what would have been cheapest."""

    updates: int
    chosen: str
    reason: str
    cheapest: str
    cost: float | None  # of the choice, as a multiple of the cheapest; None where it cannot run at all
    agrees: bool


@dataclass(frozen=True)
class LaneRow:
    work: str
    k: int
    times: dict[str, LaneTime]
    refused: dict[str, str]  # lane -> why
    compile_seconds: float | None
    verdicts: list[Verdict]

    @property
    def break_even_updates(self) -> int | None:
        """Updates that repay compiling, against the best other lane; None where they never do."""
        return break_even(self.times, self.compile_seconds)

    def as_data(self) -> dict[str, Any]:
        return {**asdict(self), "break_even_updates": self.break_even_updates}


def break_even(times: Mapping[str, LaneTime], compile_seconds: float | None) -> int | None:
    if "compiled" not in times or compile_seconds is None:
        return None
    others = min(entry.microseconds for lane, entry in times.items() if lane != "compiled")
    saved = others - times["compiled"].microseconds
    return ceil(compile_seconds * 1e6 / saved) if saved > 0 else None


def judge(updates: int, chosen: str, reason: str, times: Mapping[str, LaneTime], compile_seconds: float) -> Verdict:
    """Compile time counts for the compiled lane alone: the native lane's machine code is kept between all runs."""
    prices = {
        lane: entry.microseconds * updates + (compile_seconds * 1e6 if lane == "compiled" else 0.0)
        for lane, entry in times.items()
    }
    cheapest = min(prices, key=lambda lane: prices[lane])
    cost = prices[chosen] / prices[cheapest] if chosen in prices else None
    return Verdict(updates, chosen, reason, cheapest, cost, cost is not None and cost <= NEAR_ENOUGH)


def draw_lanes(rows: Sequence[LaneRow]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("work", no_wrap=True)
    for heading in ("k", "eager µs", "compiled µs", "native µs", "compile s", "repaid after"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("auto", no_wrap=True)
    for row in rows:
        wrong = any(not verdict.agrees for verdict in row.verdicts)
        table.add_row(*_cells(row), style="bold red" if wrong else None)
    return table


def _cells(row: LaneRow) -> list[str]:
    return [
        row.work,
        str(row.k),
        *(_time(row, lane) for lane in ("eager", "compiled", "native")),
        "-" if row.compile_seconds is None else f"{row.compile_seconds:.1f}",
        "never" if row.break_even_updates is None else f"{row.break_even_updates:,}",
        "; ".join(map(_words, row.verdicts)),
    ]


def _time(row: LaneRow, lane: str) -> str:
    entry = row.times.get(lane)
    if entry is None:
        return "refuses" if lane in row.refused else "-"
    return f"{entry.microseconds:,.1f}" + ("" if lane == "eager" else f" ({entry.ratio:.1f}x)")


def _words(verdict: Verdict) -> str:
    choice = f"{verdict.updates:,}: {verdict.chosen}"
    if verdict.agrees:
        return choice
    if verdict.cost is None:
        return f"{choice}, which cannot run"
    return f"{choice}, but {verdict.cheapest} is {verdict.cost:.1f}x cheaper"
