"""What came of each case: rows of plain data, the table a person reads, and the file that rows are kept in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rich.table import Table

from hotloop.core.errors import SettingsError
from hotloop.core.verdicts import CHANGES_LEARNING, IDENTICAL, TO_ROUNDING, ExitCode, Keeps
from hotloop.proof.case import Case
from hotloop.proof.equivalence import Equality
from hotloop.proof.memory import PeakMemory
from hotloop.proof.speed import Speed
from hotloop.proof.verdict import Verdict
from hotloop.render.tables import as_rich


@dataclass(frozen=True)
class Cost:
    """What only a case that is equal has."""

    speed: Speed
    reference_memory: PeakMemory
    fast_memory: PeakMemory
    growth: dict[str, Any] | None


@dataclass(frozen=True)
class CaseRow:
    case: Case
    equality: Equality
    cost: Cost | None

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def equal(self) -> bool | None:
        """None where equality is not promised."""
        return None if self.case.changes_learning else self.equality.within(self.case.tolerance)

    @property
    def verdict(self) -> Keeps | Verdict:
        if self.equal is None:
            return CHANGES_LEARNING
        if not self.equal:
            return "different"
        return TO_ROUNDING if self.equality.max_error else IDENTICAL

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.NO if self.equal is False else ExitCode.YES

    def as_data(self) -> dict[str, Any]:
        """One row of `hotloop prove --json`; what was not measured is null."""
        cost = self.cost
        return {
            "case": self.case.name,
            "kind": self.case.kind,
            "equal": self.equal,
            "verdict": self.verdict,
            "max_error": self.equality.max_error if isfinite(self.equality.max_error) else None,
            "tolerance": self.case.tolerance,
            "speedup": cost and cost.speed.ratio,
            "low": cost and cost.speed.low,
            "high": cost and cost.speed.high,
            "seconds": cost and {"fast": cost.speed.second_seconds, "reference": cost.speed.first_seconds},
            "peak_bytes": cost and _both(cost, "peak_bytes"),
            "allocations": cost and _both(cost, "allocations"),
            "growth": cost and cost.growth,
        }


def _both(cost: Cost, name: str) -> dict[str, int]:
    return {"fast": getattr(cost.fast_memory, name), "reference": getattr(cost.reference_memory, name)}


HEADINGS = ["case", "verdict", "error", "allowed", "plain µs", "fast µs", "speed-up", "95 %"]
HEADINGS += ["peak kB plain | fast", "allocations", "growth"]


def draw(rows: Sequence[CaseRow]) -> Table:
    """For a terminal, cases that are not equal in red."""
    unequal = [number for number, row in enumerate(rows) if row.equal is False]
    return as_rich([HEADINGS, *map(_cells, rows)], left=("verdict", "growth"), red=unequal)


def _cells(row: CaseRow) -> list[str]:
    cells = [row.case.name, row.verdict, f"{row.equality.max_error:.1e}", f"{row.case.tolerance:.0e}"]
    if row.cost is None:
        return [*cells, *["-"] * (len(HEADINGS) - len(cells))]
    speed, growth = row.cost.speed, row.cost.growth
    plain, fast = row.cost.reference_memory, row.cost.fast_memory
    return [
        *cells,
        f"{speed.first_seconds * 1e6:,.1f}",
        f"{speed.second_seconds * 1e6:,.1f}",
        f"{speed.ratio:.2f}x",
        f"{speed.low:.2f}-{speed.high:.2f}",
        f"{plain.peak_bytes / 1000:,.1f} | {fast.peak_bytes / 1000:,.1f}",
        f"{plain.allocations:,} | {fast.allocations:,}",
        f"x{growth['factor']:.2f} from {growth['from']} to {growth['to']}" if growth else "-",
    ]


def read_kept(path: Path) -> dict[str, dict[str, Any]]:
    """By case; empty where there is no file yet."""
    try:
        return {row["case"]: row for row in json.loads(path.read_text())} if path.exists() else {}
    except (OSError, ValueError, TypeError, KeyError):
        hint = "name a file that is not there yet, or one that it wrote"
        raise SettingsError(f"`{path}` does not hold rows of `hotloop prove --json`", hint) from None


def require_keepable(path: Path) -> None:
    """Said before the minutes that a proof takes."""
    read_kept(path)
    if not path.absolute().parent.is_dir():
        raise SettingsError(f"`--keep {path}`: there is no such folder", "make it first, or name another")


def keep(path: Path, row: Mapping[str, Any], known: Sequence[Case]) -> None:
    """Put a row in the place of the one of the same case, a new one at the end of its family.

    Of the families of `known`, rows of cases that are no longer there go.
    """
    rows = read_kept(path)
    if row["case"] not in rows:
        family = _family(row["case"])
        after = max((number for number, name in enumerate(rows, 1) if _family(name) == family), default=len(rows))
        order = [*list(rows)[:after], row["case"], *list(rows)[after:]]
        rows = {name: rows.get(name, {}) for name in order}
    rows[row["case"]] = dict(row)
    names, families = {case.name for case in known}, {case.family for case in known}
    lines = [json.dumps(rows[name]) for name in rows if name in names or _family(name) not in families]
    unfinished = path.with_name(f"{path.name}.tmp")
    unfinished.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    unfinished.replace(path)


def _family(name: str) -> str:
    return name.partition("/")[0]
