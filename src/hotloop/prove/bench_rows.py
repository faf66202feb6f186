"""What came of a comparison with another library: rows of plain data, and the table a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table


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


def draw_peers(rows: Sequence[PeerRow]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("work", no_wrap=True)
    table.add_column("library", no_wrap=True)
    for heading in ("theirs", "hotloop", "unit", "ratio", "low-high"):
        table.add_column(heading, justify="left" if heading == "unit" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row), style=None if row.ratio >= 1 else "bold red")
    return table


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
