"""Tables of text: one list of rows, its headings first, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.table import Table
from rich.text import Text

from hotloop.core.terminal import printable

Cells = list[str]
Rows = Sequence[Cells]
"""The first holds the headings."""


def as_rich(rows: Rows, left: Collection[str] = (), red: Collection[int] = ()) -> Table:
    """For a terminal; never wrapped, since a shortened number would mislead. The first column and those called `left`
    begin at their left, the others end at their right; `red` numbers the rows that a reader must not miss."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, heading in enumerate(rows[0]):
        is_left = place == 0 or heading in left
        table.add_column(Text(printable(heading)), justify="left" if is_left else "right", no_wrap=True)
    for number, row in enumerate(rows[1:]):
        table.add_row(*[Text(printable(cell)) for cell in row], style="bold red" if number in red else None)
    return table


def as_markdown(rows: Rows) -> str:
    if not rows:
        return ""
    heading, *body = [[plain(cell) for cell in row] for row in rows]
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *body]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def plain(cell: str) -> str:
    """A label must not open a column or a tag."""
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
