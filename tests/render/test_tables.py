"""One list of rows as a table of a terminal and of Markdown."""

from __future__ import annotations

import io

from rich.console import Console

from hotloop.render.tables import as_markdown, as_rich

ROWS = [["case", "equal", "speed-up"], ["a[red]", "yes", "12.00x"], ["b|<i>", "NO", "-"]]


def drawn(width: int = 80, **options: object) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="standard")
    console.print(as_rich(ROWS, **options))  # type: ignore[arg-type]
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_numbers_end_at_their_right_and_text_begins_at_its_left() -> None:
    plain = as_rich(ROWS, left=("equal",))
    assert [column.justify for column in plain.columns] == ["left", "left", "right"]
    assert all(column.no_wrap for column in plain.columns)


def test_text_is_literal_and_a_row_that_matters_is_red() -> None:
    _, first, second = drawn(red=[1])
    assert "a[red]" in first
    assert "\x1b[1;31m" not in first
    assert second.startswith("\x1b[1;31mb|<i>")


def test_in_markdown_a_cell_opens_neither_a_column_nor_a_tag() -> None:
    assert as_markdown(ROWS).splitlines() == [
        "| case | equal | speed-up |",
        "| --- | ---: | ---: |",
        "| a[red] | yes | 12.00x |",
        "| b\\|&lt;i> | NO | - |",
    ]
    assert as_markdown([]) == ""
