"""Keys, speed and waiting with a clock that only moves when somebody waits; the real screen on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import signal
import termios
from collections.abc import Callable, Generator

import pytest

from hotloop.viewing.play import Episode
from hotloop.viewing.screen import ENTER, LEAVE, FramePace, Key, Screen, parse_keys
from hotloop.viewing.terminal import LINGER_SECONDS, Player, numbers_line


class StillScene:
    """Draws its own name."""

    fps = 10.0
    envs = None

    def note(self, step: object) -> None: ...

    def measures(self) -> dict[str, float]:
        return {"score": 3}

    def text(self, color: bool) -> str:
        return "colored" if color else "plain"

    def frame(self) -> None: ...


class FakeScreen:
    """Presses the scripted keys at the given times; waiting moves the clock."""

    has_keys = True

    def __init__(self, script: list[tuple[float, list[Key]]], size: tuple[int, int] = (80, 24)) -> None:
        self.clock = 0.0
        self.drawn: list[tuple[float, str]] = []
        self._script, self._size = script, size

    def draw(self, text: str) -> None:
        self.drawn.append((round(self.clock, 6), text))

    def size(self) -> tuple[int, int]:
        return self._size

    def keys(self, timeout: float) -> list[Key]:
        if self._script and self._script[0][0] <= self.clock + timeout:
            at, keys = self._script.pop(0)
            self.clock = max(at, self.clock)
            return list(keys)
        self.clock += timeout
        return []


def moments(episodes: int, length: int) -> Generator[Episode, None, None]:
    for number in range(1, episodes + 1):
        episode = Episode(number, StillScene())  # type: ignore[arg-type]
        yield episode
        for _ in range(length):
            episode.length += 1
            episode.end = "terminated" if episode.length == length else ""
            yield episode


def show(script: list[tuple[float, list[Key]]], episodes: int = 1, length: int = 4) -> tuple[FakeScreen, Player]:
    screen = FakeScreen(script)
    player = Player(screen, FramePace(10.0, 1.0), "none", now=lambda: screen.clock)
    player.show(moments(episodes, length), episodes)
    return screen, player


def test_keys_are_read_from_what_a_terminal_sends() -> None:
    assert parse_keys(b"+=-_ .nq") == ["faster", "faster", "slower", "slower", "pause", "step", "next", "quit"]
    assert parse_keys(b"\x1b[A\x1b[B\x1bOC") == ["faster", "slower", "faster"]
    assert parse_keys(b"xyz\x1b\x1b[15~\r\n\x1a") == []


def test_speed_goes_up_and_down_a_ladder_with_ends() -> None:
    pace = FramePace(fps=10.0, speed=1.2)
    pace.press("faster")
    assert (pace.speed, pace.seconds) == (1.5, pytest.approx(1 / 15))
    pace.press("slower")
    assert pace.speed == 1.0
    for _ in range(20):
        pace.press("slower")
    assert pace.speed == 0.1
    assert pace.words() == "speed 0.1x (1 steps/s)"


def test_every_moment_is_drawn_when_it_is_due() -> None:
    screen, _ = show([])
    assert [at for at, _ in screen.drawn] == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert screen.clock == pytest.approx(0.4 + LINGER_SECONDS)  # on how it ended
    assert screen.drawn[0][1].split("\n")[:3] == [
        "plain",
        "episode 1/1   return 0.00   length 0   score 3",
        "speed 1x (10 steps/s)",
    ]


def test_faster_plays_faster_from_the_moment_it_is_pressed() -> None:
    screen, _ = show([(0.05, ["faster", "faster"])])  # at twice the speed a step takes 0.05 s
    assert [at for at, _ in screen.drawn] == [0.0, 0.05, 0.05, 0.1, 0.15, 0.2, 0.25]


def test_pause_stops_the_game_and_steps_move_it_one_by_one() -> None:
    screen, _ = show([(0.05, ["pause"]), (10.0, ["step", "step"]), (20.0, ["pause"])])
    assert [(at, text.split("length ")[1][0], "paused" in text) for at, text in screen.drawn] == [
        (0.0, "0", False),
        (0.05, "0", True),
        (10.0, "1", True),
        (10.0, "2", True),
        (20.0, "2", False),
        (20.1, "3", False),
        (20.2, "4", False),
    ]


def test_quit_ends_it_and_what_was_seen_is_kept() -> None:
    screen, player = show([(0.15, ["quit"])], episodes=3)
    assert screen.clock == 0.15
    assert [(number, episode.length, episode.as_data()["end"]) for number, episode in player.seen.items()] == [
        (1, 1, "stopped")
    ]


def test_next_plays_the_rest_of_an_episode_unseen() -> None:
    screen, player = show([(0.15, ["next"])], episodes=2)
    assert [at for at, _ in screen.drawn][:3] == [0.0, 0.1, 0.15]
    assert screen.drawn[2][1].startswith("plain\nepisode 2/2")
    assert [episode.length for episode in player.seen.values()] == [4, 4]


def test_a_game_faster_than_the_eye_is_not_drawn_at_every_step() -> None:
    screen = FakeScreen([])
    Player(screen, FramePace(1_000.0, 1.0), "none", now=lambda: screen.clock).show(moments(1, 1_000), 1)
    assert 50 <= len(screen.drawn) <= 62  # one second


def test_a_terminal_that_is_too_small_is_told_what_is_needed() -> None:
    screen = FakeScreen([], size=(30, 4))
    Player(screen, FramePace(10.0, 1.0), "256", now=lambda: screen.clock).show(moments(1, 1), 1)
    text = screen.drawn[0][1]
    assert "the picture needs 7 x 5 characters" in text
    assert max(len(line) for line in text.split("\n")[2:]) < 30


def test_flags_of_an_episode_are_named_where_true() -> None:
    episode = Episode(
        2, StillScene(), length=7, total=1.25, end="truncated", stats={"score": 4, "won": False, "timeout": True}
    )  # type: ignore[arg-type]
    assert numbers_line(episode, 3) == "episode 2/3   return 1.25   length 7   score 4   timeout   truncated"


@pytest.fixture
def terminal() -> Generator[tuple[int, int], None, None]:
    master, slave = pty.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def play_and_raise(master: int, slave: int, mishap: Callable[[], None]) -> None:
    with (
        os.fdopen(os.dup(slave), "w") as output,
        os.fdopen(os.dup(slave), "r") as keyboard,
        Screen(output, keyboard) as screen,
    ):
        assert screen.has_keys
        assert not termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO)
        os.write(master, b" +")
        assert screen.keys(5.0) == ["pause", "faster"]
        screen.draw("one\ntwo")
        mishap()


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (None, ZeroDivisionError)]
)
def test_the_terminal_is_given_back_as_it_was(
    terminal: tuple[int, int], number: int | None, raised: type[BaseException]
) -> None:
    master, slave = terminal
    before, handler = termios.tcgetattr(slave), signal.getsignal(signal.SIGTERM)
    with pytest.raises(raised):
        play_and_raise(master, slave, lambda: os.kill(os.getpid(), number) if number else 1 / 0)  # type: ignore
    assert termios.tcgetattr(slave) == before
    assert signal.getsignal(signal.SIGTERM) is handler
    said = b""
    while not said.endswith(LEAVE.encode()):
        said += os.read(master, 10_000)
    assert said.startswith(ENTER.encode())
    assert b"one\x1b[K\r\n" in said
