"""`hotloop watch` on small runs: summaries, recordings, mistakes, and once in a real (pseudo) terminal."""

from __future__ import annotations

import builtins
import json
import os
import pty
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop import api
from hotloop.cli import watch
from hotloop.core.errors import EnvError, MissingExtraError, SettingsError
from hotloop.runs.directory import Run
from hotloop.viewing import watch as watching
from hotloop.viewing.frames import even, record
from hotloop.viewing.screen import LEAVE
from hotloop.workloads.snake.env import STATS

TINY: dict[str, Any] = {
    "total_env_steps": 400,
    "learning_starts": 100,
    "batch_size": 8,
    "network": {"hidden": [8]},
    "evaluation": {"episodes": 2, "final_episodes": 2},
    "learner": {"lane": "eager"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Env id -> a run of it, hardly trained."""
    folder = tmp_path_factory.mktemp("runs")
    made = {}
    for env_id in ("cartpole", "snake", "CartPole-v1"):
        env = {"id": env_id, "max_episode_steps": 60}
        made[env_id] = str(folder / env_id)
        api.train(api.preset("cartpole-dqn", **TINY, env=env, run_dir=made[env_id]))
    return made


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert watch.run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["episodes"]


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if a package were not installed."""
    plain_import = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return plain_import(name, *rest, **more)

    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.parametrize("env_id", ["cartpole", "snake", "CartPole-v1"])
def test_the_episodes_watched_are_those_that_evaluate_counts(
    env_id: str, runs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    episodes = ask(capsys, runs[env_id], "--episodes", "3", "--seed", "5")
    evaluation = api.evaluate(runs[env_id], episodes=3, seed=5)
    assert np.mean([episode["return"] for episode in episodes]) == pytest.approx(evaluation["mean_return"])
    assert np.mean([episode["length"] for episode in episodes]) == evaluation["mean_length"]


def test_from_python_episodes_are_those_of_the_verb_and_told_one_by_one(
    runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    seen = watching.watch(runs["snake"], episodes=2, seed=5, each=lambda episode: told.append(episode.end))
    assert seen.episodes == ask(capsys, runs["snake"], "--episodes", "2", "--seed", "5")
    assert told == [episode["end"] for episode in seen.episodes]
    assert (seen.files, seen.frames, seen.cut) == ((), 0, False)
    cut = watching.watch(runs["snake"], seed=5, frames=tmp_path / "frames", max_frames=2)
    assert (cut.files, cut.frames, cut.cut) == ((tmp_path / "frames",), 2, True)
    assert cut.episodes[0]["end"] == "stopped"


def test_from_python_a_terminal_shows_until_quit_and_tells_what_was_seen(
    runs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    class Terminal:
        has_keys = True

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            drawn.append("given back")

        def draw(self, text: str) -> None:
            drawn.append(text)

        def size(self) -> tuple[int, int]:
            return 200, 100

        def keys(self, timeout: float) -> list[str]:
            return ["quit"]

    monkeypatch.setattr("hotloop.viewing.screen.Screen", Terminal)
    told: list[bool] = []
    seen = watching.watch(
        runs["snake"], terminal=True, episodes=3, each=lambda episode: told.append("given back" in drawn)
    )
    assert "episode 1/3" in drawn[0]
    assert [(one["episode"], one["length"], one["end"]) for one in seen.episodes] == [(1, 0, "stopped")]
    assert told == [True]
    assert not seen.interrupted
    with pytest.raises(watching.NoPictureError, match="`CartPole-v1` has no picture for the terminal"):
        watching.watch(runs["CartPole-v1"], terminal=True)


def test_json_holds_the_workloads_own_measures(runs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    (episode,) = ask(capsys, runs["snake"])
    assert episode.keys() == {"episode", "return", "length", "end", "score", *STATS}
    assert episode["end"] in ("terminated", "truncated")


def test_without_a_terminal_an_episode_is_one_plain_line(
    runs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert watch.run([runs["cartpole"], "--episodes", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["episode", "1/2"], ["episode", "2/2"]]
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("env_id", ["cartpole", "snake"])
def test_a_recording_starts_with_the_first_picture_and_ends_with_how_it_ended(
    env_id: str, runs: dict[str, str]
) -> None:
    agent, settings = api.load(runs[env_id]), api.settings_of(Run.open(runs[env_id]), trust=False)
    recording = record(agent, settings, seed=3)
    assert len(recording.frames) == recording.stats["length"] + 1
    assert all(frame.shape == recording.frames[0].shape for frame in recording.frames)
    assert not np.array_equal(recording.frames[0], recording.frames[1])
    assert not np.array_equal(recording.frames[-1], recording.frames[0])  # not the next episode's start
    cut = record(agent, settings, seed=3, max_frames=2)
    assert (len(cut.frames), cut.stats["length"], cut.stats["end"]) == (2, 1, "stopped")


def test_a_cart_that_fell_is_drawn_as_it_fell(runs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    from hotloop.viewing.play import play_episodes

    settings = api.settings_of(Run.open(runs["cartpole"]), trust=False)

    class PushRight:
        def act(self, obs: Any, action_mask: Any) -> Any:
            return np.ones(1, np.int64)

    *_, last = play_episodes(PushRight(), settings.env, 1, 0, trust=False, pictures=True)
    assert last.end == "terminated"
    assert "\\" in last.scene.text(color=False)  # pushed right, it falls to the left


def test_sizes_are_made_even_by_doubling_an_edge() -> None:
    frame = np.arange(9, dtype=np.uint8).reshape(1, 3, 3)
    np.testing.assert_array_equal(even(frame), np.stack([np.vstack([frame[0], frame[0][-1:]])] * 2))
    assert even(np.zeros((2, 4, 3), np.uint8)).shape == (2, 4, 3)


def test_pictures_go_into_a_folder_that_has_none_yet(
    runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "some" / "frames"
    (episode,) = ask(capsys, runs["snake"], "--frames", str(folder))
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"{number:06d}.png" for number in range(1, episode["length"] + 2)]
    with pytest.raises(SettingsError, match="pictures in it already"):
        watch.run([runs["snake"], "--frames", str(folder)])


def test_a_recording_can_be_cut(runs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert watch.run([runs["cartpole"], "--frames", str(tmp_path), "--max-frames", "3"]) == 0
    captured = capsys.readouterr()
    assert "length 2" in captured.out
    assert "(stopped)" in captured.out
    assert "cut after 3 frames" in captured.err
    assert len(list(tmp_path.iterdir())) == 3


def test_a_video_without_its_extra_names_the_extra(
    runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[video\]"):
        watch.run([runs["snake"], "--video", str(tmp_path / "a.mp4")])
    assert not list(tmp_path.iterdir())


def test_pictures_of_a_gymnasium_env_without_pygame_name_gymnasiums_extra(
    runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "pygame")
    with pytest.raises(MissingExtraError, match=r"pip install 'gymnasium\[classic[-_]control\]'"):
        watch.run([runs["CartPole-v1"], "--frames", str(tmp_path / "frames")])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--episodes", "0"], "at least 1"),
        (["--max-frames", "0"], "at least 1"),
        (["--speed", "0"], "above 0"),
        (["--fps", "nan"], "above 0"),
        (["--speed", "2", "--fps", "3"], "not allowed with"),
        (["--video", "film.avi"], "FILE.mp4 or FILE.gif"),
    ],
)
def test_mistakes_are_told_before_anything_plays(words: list[str], expected: str, runs: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=expected):
        watch.run([runs["snake"], *words])


BOXES = """
import gymnasium
import numpy as np

class Boxes(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.clock = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.clock += 1
        return np.zeros(2, np.float32), 1.0, self.clock == 5, False, {}

    def render(self):
        return np.full((3, 5, 3), self.clock, np.uint8)
"""


def test_an_env_of_ones_own_is_run_when_trusted_and_drawn_by_its_render(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_folder / "boxes.py").write_text(BOXES)
    env_id = f"{run_folder / 'boxes.py'}:Boxes"
    api.train(api.preset("cartpole-dqn", **TINY, env={"id": env_id}, run_dir="mine"))
    with pytest.raises(EnvError, match="--trust"):
        watch.run(["mine"])
    settings = api.settings_of(Run.open("mine"), trust=True)
    recording = record(api.load("mine"), settings)
    assert [int(frame[0, 0, 0]) for frame in recording.frames] == [0, 1, 2, 3, 4, 5]
    assert recording.frames[0].shape == (4, 6, 3)


def test_in_a_terminal_it_plays_until_ctrl_c_and_gives_the_terminal_back(runs: dict[str, str]) -> None:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    program = f"import sys; from hotloop.cli.watch import run; sys.exit(run([{runs['snake']!r}, '--speed', '0.1']))"
    environment = {**os.environ, "TERM": "xterm", "COLORTERM": "truecolor", "COLUMNS": "80", "LINES": "24"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
    )
    try:
        said = read_until(master, b"q quit")
        assert b"\x1b[48;2;190;255;170m" in said  # the head
        os.kill(process.pid, 2)
        said = read_until(master, b"(stopped)")
        assert LEAVE.encode() in said
        assert process.wait(timeout=60) == 130
        assert termios.tcgetattr(slave) == before
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def read_until(master: int, wanted: bytes, seconds: float = 120.0) -> bytes:
    said, give_up = b"", time.monotonic() + seconds
    while wanted not in said and time.monotonic() < give_up:
        said += os.read(master, 65536)
    assert wanted in said
    return said
