"""`hotloop.watch`: a run's best agent plays, into files or numbers, or on the terminal.

Light until it plays: `hotloop watch` answers a mistake before PyTorch is loaded.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import EnvError, SettingsError

if TYPE_CHECKING:
    from hotloop.core.types import Policy
    from hotloop.presets.env_settings import EnvSettings
    from hotloop.viewing.play import Episode


class NoPictureError(EnvError):
    """The env of a run cannot be drawn on a terminal."""


@dataclass(frozen=True)
class Viewing:
    """What was played and written."""

    episodes: list[dict[str, Any]]
    """Number, return, length, the workload's own measures and `end` of each: what `hotloop watch --json` prints."""
    files: tuple[Path, ...] = ()
    """What was written: a page, or a video and a folder of pictures."""
    frames: int = 0
    """Pictures in the video, or in the folder."""
    cut: bool = False
    """Whether `max_frames` ended it."""
    interrupted: bool = False
    """Whether Ctrl-C ended it."""


Each = Callable[["Episode"], None]


def watch(
    run_dir: str | Path,
    *,
    episodes: int = 1,
    seed: int = 0,
    video: str | Path | None = None,
    frames: str | Path | None = None,
    html: str | Path | None = None,
    speed: float = 1.0,
    fps: float | None = None,
    max_frames: int = 10_000,
    checkpoint: str = "",
    trust: bool = False,
    terminal: bool = False,
    each: Each = lambda episode: None,
) -> Viewing:
    """Play episodes of a run's best agent, acting greedily: return, length and the workload's own measures of each.

        for episode in hotloop.watch("runs/snake-dqn-20260101-120000", episodes=3).episodes:
            print(episode["return"], episode["length"], episode["end"])
        hotloop.watch("runs/snake-dqn-20260101-120000", video="snake.mp4", speed=2.0)
        hotloop.watch("runs/snake-dqn-20260101-120000", terminal=True)

    `video` names a `.mp4` or `.gif` file, `frames` a folder for one PNG per moment, `html` a page of the first episode
    (envs with one: sfc); without them nothing is drawn. A video shows `fps` env steps per second, or `speed` times as
    many as look natural, and ends after `max_frames`. Episode i of a seed is the first one of env i in `evaluate` with
    that seed. `checkpoint` names an older one than the newest: the agent is the best up to it. `each` is given every
    episode as soon as it has ended or was cut.

    `terminal` plays on this terminal, at a speed that keys change, until `q` or Ctrl-C is pressed; `each` is then given
    every episode seen. Raises `NoPictureError` for an env that has no pictures for a terminal.
    """
    _require_sense(episodes=episodes, max_frames=max_frames, speed=speed, fps=fps)
    if terminal and (video or frames or html):
        raise SettingsError("`terminal` and a file to write are both given", "choose one")
    agent, env = _agent_and_env(run_dir, trust, checkpoint)
    from hotloop.viewing.play import play_episodes

    if terminal:
        moments = play_episodes(agent, env, episodes, seed, trust=trust, pictures=True)
        return _on_terminal(moments, env.id, episodes, speed, fps, each)
    from hotloop.viewing.frames import FrameRecorder
    from hotloop.viewing.play import play_episodes
    from hotloop.viewing.scenes import page_writer

    def play(policy: Policy) -> Generator[Episode, None, None]:
        return play_episodes(policy, env, episodes, seed, trust=trust, pictures=True)

    if html is not None:
        return Viewing(_kept([page_writer(env.id)(agent, play, Path(html))], each), (Path(html),))
    if video is None and frames is None:
        return Viewing(_kept(play_episodes(agent, env, episodes, seed, trust=trust, pictures=False), each))
    film, folder = (None if name is None else Path(name) for name in (video, frames))
    with FrameRecorder(film, folder, speed, fps) as recorder:
        kept = _kept(recorder.take(play(agent), max_frames), each)
    return Viewing(kept, tuple(path for path in (film, folder) if path), recorder.frames, recorder.cut)


def _on_terminal(
    moments: Generator[Episode, None, None], env_id: str, of: int, speed: float, fps: float | None, each: Each
) -> Viewing:
    """Until the episodes end or `q` or Ctrl-C is pressed; then the terminal is as it was."""
    from hotloop.viewing.scenes import drawing_of, is_drawn
    from hotloop.viewing.screen import FramePace, Screen, colors_of
    from hotloop.viewing.terminal import Player

    if not is_drawn(env_id):
        raise NoPictureError(f"`{env_id}` has no picture for the terminal", "`--video FILE.mp4` shows it")
    natural, interrupted = float(drawing_of(env_id).FPS), False
    with Screen() as screen:
        player = Player(screen, FramePace(natural, fps / natural if fps else speed), colors_of(os.environ))
        try:
            player.show(moments, of)
        except KeyboardInterrupt:
            interrupted = True
    for episode in player.seen.values():
        each(episode)
    return Viewing([episode.as_data() for episode in player.seen.values()], interrupted=interrupted)


def _require_sense(speed: float, fps: float | None, **counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            flag = name.replace("_", "-")
            raise SettingsError(f"`--{flag}` is {count}, expected at least 1", f"`--{flag} 1`")
    for name, value in (("speed", speed), ("fps", fps)):
        if value is not None and not (math.isfinite(value) and 0 < value <= 1e6):
            raise SettingsError(f"`--{name}` is {value}, expected above 0", "`--speed 2` plays twice as fast")


def _agent_and_env(run_dir: str | Path, trust: bool, checkpoint: str = "") -> tuple[Policy, EnvSettings]:
    from hotloop.loop.agent_files import load_agent
    from hotloop.presets.registry import settings_of
    from hotloop.runs.directory import Run

    run = Run.open(run_dir)
    settings = settings_of(run, trust)
    return load_agent(run, settings, checkpoint).as_policy(), settings.env


def _kept(moments: Iterable[Episode], each: Each) -> list[dict[str, Any]]:
    """Every episode once, as far as it came; all moments of an episode are the same object."""
    kept: list[dict[str, Any]] = []
    last: Episode | None = None
    for last in moments:
        if last.end:
            kept.append(last.as_data())
            each(last)
    if last is not None and not last.end:
        kept.append(last.as_data())
        each(last)
    return kept
