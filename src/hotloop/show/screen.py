"""A terminal taken over for a while and given back as it was, whatever happens."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from types import FrameType
from typing import Any, TextIO

from hotloop.show.pace import Key, parse_keys

ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"  # the alternate screen, without a cursor, empty
LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
# One update that a terminal shows whole (2026; ignored where unknown), from the top left corner, nothing wiped before
# it is written over: no flicker.
BEGIN, END = "\x1b[?2026h\x1b[H", "\x1b[J\x1b[?2026l"


class Screen:
    """Draws in place on the alternate screen, and reads keys without waiting for Return."""

    def __init__(self, output: TextIO | None = None, keyboard: TextIO | None = None) -> None:
        self._output = sys.stdout if output is None else output
        keyboard = sys.stdin if keyboard is None else keyboard
        self._keyboard = keyboard.fileno() if keyboard is not None and keyboard.isatty() else None
        self._saved: list[Any] | None = None
        self._handlers: dict[int, Any] = {}

    @property
    def has_keys(self) -> bool:
        return self._saved is not None

    def __enter__(self) -> Screen:
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            self._handlers.setdefault(number, signal.signal(number, _leave))
        if self._keyboard is not None:
            self._saved = _without_return(self._keyboard)
        self._write(ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._write(LEAVE)
        finally:
            if self._saved is not None:
                _restore(self._keyboard, self._saved)
                self._saved = None
            for number, handler in self._handlers.items():
                signal.signal(number, handler)

    def draw(self, text: str) -> None:
        self._write(BEGIN + "".join(f"{line}\x1b[K\n" for line in text.split("\n")) + END)

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return shutil.get_terminal_size()

    def keys(self, timeout: float) -> list[Key]:
        """What was pressed, as soon as something is; nothing after `timeout` seconds."""
        if self._saved is None or self._keyboard is None:
            time.sleep(timeout)
            return []
        ready, _, _ = select.select([self._keyboard], [], [], timeout)
        if not ready:
            return []
        data = os.read(self._keyboard, 1024)
        return parse_keys(data) if data else ["quit"]  # nothing to read: the terminal is gone

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()


def _without_return(keyboard: int) -> list[Any] | None:
    """Hand every key over at once, unprinted; the settings to restore, or None where this cannot be done."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        return None
    saved = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)  # Ctrl-C still interrupts
    changed = termios.tcgetattr(keyboard)
    changed[6][termios.VSUSP] = b"\x00"  # Ctrl-Z would leave the shell on the alternate screen, without a cursor
    termios.tcsetattr(keyboard, termios.TCSADRAIN, changed)
    return saved


def _restore(keyboard: int | None, saved: list[Any]) -> None:
    import termios

    if keyboard is not None:
        termios.tcsetattr(keyboard, termios.TCSAFLUSH, saved)  # keys still in the queue are not for the shell


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
