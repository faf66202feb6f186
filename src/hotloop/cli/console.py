"""Rich's console as all verbs use it: text is literal, whoever wrote it, and a display may be lost; tables on stdout,
and a bar on stderr for work that can be counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table

from hotloop.core.terminal import Stream, answer_stream, display_stream, printable

LITERAL: Any = {"highlight": False, "markup": False, "emoji": False}


def answer_console(**options: Any) -> Console:
    """For a verb's answer, on stdout."""
    stream: Any = answer_stream()
    return _LiteralConsole(file=stream, **LITERAL, **options)


def display_console(quiet: bool = False) -> Console:
    """For progress, on stderr; see `lost_display`."""
    stream: Any = display_stream()
    return _LiteralConsole(file=stream, quiet=quiet, **LITERAL)


def lost_display(console: Console) -> str:
    """Why a display could not be written to the end; empty where it was."""
    stream: Any = console.file
    return stream.lost if isinstance(stream, Stream) else ""


class _LiteralConsole(Console):
    """Whatever is drawn passes through `render`; codes of Rich's own come as control segments or as styles."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def print_table(table: Table) -> None:
    """On stdout, as wide as it needs to be: a narrow terminal wraps it, where a shortened number would mislead."""
    console = answer_console()
    boundless = console.options.update(max_width=1_000)
    console.width = max(console.width, console.measure(table, options=boundless).maximum)
    console.print(table)


class Bar:
    """How much of what is being timed is done; drawn by whoever calls `advance`: no thread beside what is timed."""

    def __init__(self, total: int, quiet: bool) -> None:
        about = TextColumn("{task.description}", markup=False)
        columns, console = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), about), display_console(quiet)
        self._progress = Progress(*columns, console=console, auto_refresh=False)
        self._task = self._progress.add_task("", total=total)
        self.print = self._progress.console.print

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def collect(self, results: Iterable[tuple[str, Any]]) -> list[Any]:
        """One step for each of the results, which come with what they are about; those that are not None."""
        collected = []
        for about, result in results:
            self.advance(about)
            collected += [] if result is None else [result]
        return collected

    def advance(self, about: str, steps: int = 1) -> None:
        self._progress.update(self._task, advance=steps, description=about, refresh=True)
