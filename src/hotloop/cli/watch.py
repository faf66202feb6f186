"""`hotloop watch RUN`."""

from __future__ import annotations

import math
import os
import sys
from argparse import Namespace
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line, say

if TYPE_CHECKING:
    from hotloop.algos.registry import RunSettings
    from hotloop.core.types import Policy
    from hotloop.viewing.play import Episode


def run(words: list[str]) -> int:
    arguments = _parser().parse_args(words)
    _check(arguments)
    from hotloop.api import settings_of
    from hotloop.loop.agents import load_agent
    from hotloop.runs.directory import Run

    opened = Run.open(arguments.run)
    settings = settings_of(opened, arguments.trust)
    try:
        return _watch(load_agent(opened, settings).as_policy(), settings, arguments)
    except KeyboardInterrupt:
        return 130


def _parser() -> VerbParser:
    parser = VerbParser(
        "watch",
        "Watch a run's best agent play: in the terminal, as a video, or as pictures. While it plays in a terminal,\n"
        "+ and - change the speed, space pauses, . makes one step, n skips to the next episode, q quits.\n"
        "Where stdout is no terminal, and with --json, one line or object per episode is printed.",
        "hotloop watch runs/snake-dqn-20260101-120000 --episodes 3 --video snake.mp4",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--episodes", type=int, default=1, help="how many episodes (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="which episodes (default 0), as in `hotloop evaluate`")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=float, default=1.0, help="times the env's usual speed (default 1)")
    pace.add_argument("--fps", type=float, help="env steps per second, instead of --speed")
    parser.add_argument("--video", type=Path, metavar="FILE", help="write FILE.mp4 or FILE.gif")
    parser.add_argument("--frames", type=Path, metavar="FOLDER", help="write every picture into FOLDER, as PNG")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the first episode as a page (sfc)")
    parser.add_argument("--max-frames", type=int, default=10_000, help="end a video there (default 10000)")
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    return parser


def _check(arguments: Namespace) -> None:
    for name in ("episodes", "max_frames"):
        if getattr(arguments, name) < 1:
            flag = name.replace("_", "-")
            raise SettingsError(f"`--{flag}` is {getattr(arguments, name)}, expected at least 1", f"`--{flag} 1`")
    for name in ("speed", "fps"):
        value = getattr(arguments, name)
        if value is not None and not (math.isfinite(value) and 0 < value <= 1e6):
            raise SettingsError(f"`--{name}` is {value}, expected above 0", "`--speed 2` plays twice as fast")


def _watch(agent: Policy, settings: RunSettings, arguments: Namespace) -> int:
    from hotloop.viewing.scenes import has_text

    if arguments.html:
        return _write_page(agent, settings, arguments)
    if arguments.video or arguments.frames:
        return _record(agent, settings, arguments)
    on_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not arguments.json
    if on_terminal and has_text(settings.env.id):
        return _play(agent, settings, arguments)
    if on_terminal:
        say(f"`{settings.env.id}` has no picture for the terminal; `--video FILE.mp4` shows it")
    return _tell(_moments(agent, settings, arguments, pictures=False), arguments)


def _moments(
    agent: Policy, settings: RunSettings, arguments: Namespace, pictures: bool = True
) -> Generator[Episode, None, None]:
    from hotloop.viewing.play import play_episodes

    return play_episodes(
        agent, settings.env, arguments.episodes, arguments.seed, trust=arguments.trust, pictures=pictures
    )


def _play(agent: Policy, settings: RunSettings, arguments: Namespace) -> int:
    """In the terminal; what was seen is told when it has its own screen back."""
    from hotloop.viewing.scenes import DRAWERS
    from hotloop.viewing.screen import Pace, Screen, colours_of
    from hotloop.viewing.terminal import Player

    fps = DRAWERS[settings.env.id].fps
    interrupted = False
    with Screen() as screen:
        player = Player(
            screen, Pace(fps, arguments.fps / fps if arguments.fps else arguments.speed), colours_of(os.environ)
        )
        try:
            player.show(_moments(agent, settings, arguments), arguments.episodes)
        except KeyboardInterrupt:
            interrupted = True
    for episode in player.seen.values():
        _print_line(episode, arguments)
    return 130 if interrupted else 0


def _record(agent: Policy, settings: RunSettings, arguments: Namespace) -> int:
    from hotloop.viewing.frames import Recorder

    with Recorder(arguments.video, arguments.frames, arguments.speed, arguments.fps) as recorder:
        moments = recorder.take(_moments(agent, settings, arguments), arguments.max_frames)
        code = _tell(moments, arguments)
    for path in filter(None, (arguments.video, arguments.frames)):
        say(f"wrote {path}: {recorder.frames:,} frames")
    if recorder.cut:
        say(f"cut after {arguments.max_frames:,} frames; `--max-frames` allows more")
    return code


def _write_page(agent: Policy, settings: RunSettings, arguments: Namespace) -> int:
    from hotloop.viewing.html import Watched, require_page, write_page

    require_page(settings.env.id)
    watched = Watched(agent)
    episode = write_page(_moments(watched, settings, arguments), watched, arguments.html)
    say(f"wrote {arguments.html}")
    if arguments.json:
        print_json([episode.as_data()])
    else:
        _print_line(episode, arguments)
    return 0


def _tell(moments: Generator[Episode, None, None], arguments: Namespace) -> int:
    """One line for each episode when it is over, or all of them as JSON."""
    data: list[dict[str, Any]] = []
    last: Episode | None = None
    for episode in moments:
        last = episode
        if episode.end:
            data.append(episode.as_data())
            if not arguments.json:
                _print_line(episode, arguments)
    if last is not None and not last.end:
        data.append(last.as_data())
        if not arguments.json:
            _print_line(last, arguments)
    if arguments.json:
        print_json(data)
    return 0


def _print_line(episode: Episode, arguments: Namespace) -> None:
    from hotloop.viewing.terminal import numbers_line

    print_line(numbers_line(episode, arguments.episodes) + ("" if episode.end else "   (stopped)"), flush=True)
