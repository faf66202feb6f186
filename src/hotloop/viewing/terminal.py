"""Episodes played in a terminal, at a speed that keys change."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Protocol

from hotloop.core.terminal import printable
from hotloop.viewing.play import Episode
from hotloop.viewing.screen import HELP, Colors, FramePace, Key, fitted, size_of

DRAWS_PER_SECOND = 60.0
LINGER_SECONDS = 1.5  # on how an episode ended
MOST_BEHIND = 0.1  # seconds that are made up for; what a slow terminal loses beyond is lost


class TerminalStage(Protocol):
    """Where it is drawn and who presses keys: a `Screen`."""

    @property
    def has_keys(self) -> bool: ...

    def draw(self, text: str) -> None: ...

    def size(self) -> tuple[int, int]: ...

    def keys(self, timeout: float) -> list[Key]: ...


class Player:
    """Shows every moment for as long as the pace says; remembers the episodes seen."""

    def __init__(
        self, screen: TerminalStage, pace: FramePace, colors: Colors, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.seen: dict[int, Episode] = {}
        self._screen, self._pace, self._colors, self._now = screen, pace, colors, now
        self._pressed: list[Key] = []
        self._due = now()
        self._drawn = float("-inf")

    def show(self, moments: Generator[Episode, None, None], of: int) -> None:
        """Play to the end, or until `quit` is pressed."""
        skipped = 0
        for episode in moments:
            self.seen[episode.number] = episode
            if episode.number == skipped:
                if self._key(0.0) == "quit":
                    break
                continue
            if self._pace.paused or episode.end or self._now() - self._drawn >= 1 / DRAWS_PER_SECOND:
                self._draw(episode, of)
            key = self._wait(episode, of)
            if key == "quit":
                break
            skipped = episode.number if key == "next" else 0
        moments.close()

    def _wait(self, episode: Episode, of: int) -> Key | None:
        """Until the next moment is due; the key, where one ends the waiting."""
        self._due = max(self._due, self._now() - MOST_BEHIND) + self._seconds(episode)
        while True:
            key = self._key(1.0 if self._pace.paused else max(self._due - self._now(), 0.0))
            if key is not None:
                self._pace.press(key)
                if key in ("quit", "next", "step"):
                    return key
                self._draw(episode, of)
                self._due = self._now() + self._seconds(episode)
            elif not self._pace.paused and self._now() >= self._due:
                return None

    def _seconds(self, episode: Episode) -> float:
        return LINGER_SECONDS if episode.end else self._pace.seconds

    def _key(self, timeout: float) -> Key | None:
        """One at a time: of three steps pressed at once none is lost."""
        if not self._pressed:
            self._pressed = self._screen.keys(timeout)
        return self._pressed.pop(0) if self._pressed else None

    def _draw(self, episode: Episode, of: int) -> None:
        columns, rows = self._screen.size()
        under = [numbers_line(episode, of), self._pace.words(), *([HELP] if self._screen.has_keys else [])]
        picture = fitted(episode.scene.text(self._colors != "none"), self._colors)
        width, height = size_of(picture)
        height += len(under) + 1
        if width > columns or height > rows:
            picture = f"the picture needs {width} x {height} characters,\nthe terminal has {columns} x {rows}"
        self._screen.draw("\n".join([picture, *(printable(line)[: columns - 1] for line in under)]))
        self._drawn = self._now()


def numbers_line(episode: Episode, of: int) -> str:
    """`episode 1/3   return 12.50   length 40   score 2   death_wall`: flags are named where they are true."""
    words = [f"episode {episode.number}/{of}"]
    numbers = {name: value for name, value in episode.numbers().items() if not name.startswith("reward_")}
    words += [said for name, value in numbers.items() if (said := _said(name, value))]
    return "   ".join([*words, *([] if episode.end != "truncated" else ["truncated"])])


def _said(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else ""
    return f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}"
