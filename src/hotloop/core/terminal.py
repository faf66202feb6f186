"""Text on its way to a reader: what a name or a message brings along is shown, not obeyed.

Names of runs, envs and measures and the texts of exceptions may come from elsewhere. Raw, their control characters
would move the cursor, change the window's title or turn the reading order round.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from hotloop.core.program import answers

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # what changes the reading order, and other ends of line
    "\ud800-\udfff]"  # bytes of a file name that are no text, which no stream takes
)
_COLORS = re.compile("\x1b\\[[0-9;]*m")


def printable(text: str) -> str:
    """The text with its control characters written out: `\\x1b[2J`."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def print_line(text: str = "", *, end: str = "\n", flush: bool = False) -> None:
    """A line of a verb's answer, on stdout; AnswerLostError where it cannot be written."""
    print(printable(text), end=end, flush=flush, file=answer_stream())


def say(text: str) -> None:
    """A remark on stderr. That nobody can read it is no reason to stop."""
    print(printable(text), file=display_stream(), flush=True)


class AnswerLostError(Exception):
    """What was asked for cannot be written to stdout; not the user's mistake, and explained by `cli.main`."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.reader_left = isinstance(error, BrokenPipeError)


class Stream:
    """A stream of text that tells `on_loss` the first time it cannot be written to (its reader left, its disk is full),
    and is silent from then on. One that was closed at the start takes everything and keeps nothing."""

    def __init__(self, stream: TextIO | None, on_loss: Callable[[OSError], None]) -> None:
        self._stream, self._on_loss = stream, on_loss
        self.lost = "" if stream is not None else "it is closed"

    def write(self, text: str) -> int:
        self._do("write", text)
        return len(text)

    def flush(self) -> None:
        self._do("flush")

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def _do(self, what: str, *values: str) -> None:
        if self.lost:
            return
        try:
            getattr(self._stream, what)(*values)
        except OSError as error:
            self.lost = error.strerror or str(error)
            self._on_loss(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # `encoding`, `fileno`


def answer_stream() -> Stream:
    """Stdout: a verb that cannot give its answer ends."""

    def end(error: OSError) -> None:
        raise AnswerLostError(error) from None

    return Stream(answers(), end)


def display_stream() -> Stream:
    """Stderr: whoever draws or remarks there goes on without it."""
    return Stream(sys.stderr, lambda error: None)


def drop_unwritten() -> None:
    """At the end of a program: text that still waits in a lost stream would be a complaint of the interpreter's."""
    for stream in (answers(), sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def show_tracebacks_and_warnings_printable() -> None:
    """For a whole program: exceptions that nobody expected and warnings carry foreign texts too."""
    sys.excepthook = _show_traceback
    warnings.formatwarning = _format_warning


def _show_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    say("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"))


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """On one line. Gymnasium colors its warnings: colors alone are left out."""
    text = _COLORS.sub("", f"{filename}:{lineno}: {category.__name__}: {message}")
    return printable(text) + "\n"
