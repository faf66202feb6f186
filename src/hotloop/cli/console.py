"""Rich's console as all verbs use it: text is literal, whoever wrote it, and a display may be lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

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
