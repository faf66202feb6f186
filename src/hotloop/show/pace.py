"""How fast it plays, and the keys that change that."""

from __future__ import annotations

import re
from typing import Literal

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


class Pace:
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
