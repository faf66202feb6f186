"""Two diagnoses side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hotloop.doctor.views.against_rows import LEAST_SHARE, Row
from hotloop.doctor.views.numbers import interval, number, times

_STYLES = {"slower": "bold red", "faster": "green", "same": "dim"}
_MOST_LINES = 12
_CAUTION = (
    "An interval knows how much a recording varies within itself, not how recordings of the same code differ from one "
    "another: what is allowed should leave room for that."
)


def render_rows(rows: Sequence[Row], notes: Sequence[str] = ()) -> RenderableType:
    whole = [row for row in rows if not row["what"].startswith("line ")]
    lines = [row for row in rows if row["what"].startswith("line ") and row["verdict"] != "same"]
    lines = [row for row in lines if abs(row["adds"]) >= LEAST_SHARE][:_MOST_LINES]
    unit = rows[0]["unit"] if rows else "env step"
    parts: list[RenderableType] = [Text(f"since the older report (us per {unit})", "bold"), _table(whole)]
    if lines:
        parts += [Text("\nlines that changed", "bold"), _table(lines)]
    parts += [Text(""), _conclusion(rows), *(Text(f"- {note}", "yellow") for note in notes)]
    return Group(*parts, Text(_CAUTION, "dim"))


def _table(rows: Sequence[Row]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    cells = [_cells(row) for row in rows]
    for place, heading in enumerate(("", "old", "new", "ratio", "95 %", "verdict", "")):
        justify: Literal["left", "right"] = "right" if 0 < place < 5 else "left"
        # Only the source, which comes last, may be shortened: half a number would mislead.
        widest = max((len(row[place]) for row in cells), default=0) if place < 6 else None
        table.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis", min_width=widest)
    for row in cells:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, 2))


def _cells(row: Row) -> list[Text]:
    name = row["what"].removeprefix("phase ").removeprefix("line ")
    ratio = times(row["ratio"]) if row["ratio"] is not None else "new"
    cells = [name, number(row["old"]), number(row["new"]), ratio, interval(row["low"], row["high"])]
    return [*map(Text, cells), Text(row["verdict"], _STYLES[row["verdict"]]), Text(row["source"], "dim")]


def _conclusion(rows: Sequence[Row]) -> Text:
    slower = [row["what"] for row in rows if row["verdict"] == "slower" and not row["what"].startswith("line ")]
    return Text(f"slower: {', '.join(slower)}", "bold red") if slower else Text("no phase became slower beyond doubt")
