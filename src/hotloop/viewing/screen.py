"""A terminal taken over for a while and given back as it was, whatever happens.

How much color a terminal shows, and text made to fit it.

How fast it plays, and the keys that change that.
"""

from __future__ import annotations

import functools
import os
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any, Literal, TextIO

Colors = Literal["none", "256", "millions"]


_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MILLIONS = re.compile(r"([34]8);2;(\d+);(\d+);(\d+)")
_LEVELS = (0, 95, 135, 175, 215, 255)  # of the 6 x 6 x 6 cube in the 256 colors
_FIRST_CUBE, _FIRST_GREY = 16, 232


def colors_of(environment: Mapping[str, str]) -> Colors:
    """`NO_COLOR` set to anything means none (no-color.org)."""
    if environment.get("NO_COLOR"):
        return "none"
    millions = environment.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    return "millions" if millions else "256"


def fitted(text: str, colors: Colors) -> str:
    """The text with its 24-bit colors as the terminal can show them."""
    if colors != "256":
        return text
    return _MILLIONS.sub(lambda code: f"{code[1]};5;{nearest_256(int(code[2]), int(code[3]), int(code[4]))}", text)


@functools.cache
def nearest_256(red: int, green: int, blue: int) -> int:
    """The nearest of the 256 colors, in the cube or on the scale of greys."""
    levels = [min(range(6), key=lambda index: abs(_LEVELS[index] - part)) for part in (red, green, blue)]
    cube = [_LEVELS[index] for index in levels]
    step = min(max(round((red + green + blue) / 3 - 8) // 10, 0), 23)
    grey = [8 + 10 * step] * 3
    if _apart(grey, (red, green, blue)) < _apart(cube, (red, green, blue)):
        return _FIRST_GREY + step
    return _FIRST_CUBE + 36 * levels[0] + 6 * levels[1] + levels[2]


def size_of(text: str) -> tuple[int, int]:
    """Columns and rows that the text takes; codes take none."""
    lines = _CODE.sub("", text).split("\n")
    return max(len(line) for line in lines), len(lines)


def _apart(one: list[int], other: tuple[int, int, int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


Key = Literal["faster", "slower", "pause", "step", "next", "quit"]


KEYS: dict[bytes, Key] = {
    b"+": "faster",
    b"=": "faster",  # the same key without shift
    b"\x1b[A": "faster",
    b"\x1b[C": "faster",
    b"-": "slower",
    b"_": "slower",
    b"\x1b[B": "slower",
    b"\x1b[D": "slower",
    b" ": "pause",
    b".": "step",
    b"n": "next",
    b"q": "quit",
    b"Q": "quit",
}
HELP = "+ faster  - slower  space pause  . one step  n next  q quit"
LADDER = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)


_ONE_KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)


def parse_keys(data: bytes) -> list[Key]:
    """The keys in what a terminal sent; others are passed over."""
    pressed = (found.group().replace(b"\x1bO", b"\x1b[") for found in _ONE_KEY.finditer(data))
    return [KEYS[key] for key in pressed if key in KEYS]


class FramePace:
    """`speed` times `fps` env steps per second."""

    def __init__(self, fps: float, speed: float) -> None:
        self.fps = fps
        self.speed = speed
        self.paused = False

    @property
    def seconds(self) -> float:
        """Of one env step."""
        return 1.0 / (self.fps * self.speed)

    def press(self, key: Key) -> None:
        if key == "faster":
            self.speed = next((speed for speed in LADDER if speed > self.speed), self.speed)
        elif key == "slower":
            self.speed = next((speed for speed in reversed(LADDER) if speed < self.speed), self.speed)
        elif key == "pause":
            self.paused = not self.paused
        elif key == "step":
            self.paused = True

    def words(self) -> str:
        playing = "paused" if self.paused else f"{self.fps * self.speed:.3g} steps/s"
        return f"speed {self.speed:.3g}x ({playing})"


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
