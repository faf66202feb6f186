"""`hotloop watch RUN`."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line, say
from hotloop.viewing.watch import NoPictureError, watch

if TYPE_CHECKING:
    from hotloop.viewing.play import Episode


def run(words: list[str]) -> int:
    arguments = _parser().parse_args(words)
    into_files = arguments.html or arguments.video or arguments.frames or arguments.checkpoint
    on_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not arguments.json and not into_files
    try:
        return _show(arguments) if on_terminal else _watch(arguments)
    except KeyboardInterrupt:
        return 130


def _show(arguments: Namespace) -> int:
    try:
        seen = watch(arguments.run, terminal=True, **_options(arguments))
    except NoPictureError as error:
        say(f"{error.message}; {error.hint}")
        return _watch(arguments)
    return 130 if seen.interrupted else 0


def _watch(arguments: Namespace) -> int:
    seen = watch(arguments.run, **_options(arguments, "html", "video", "frames", "max_frames", "checkpoint"))
    for path in seen.files:
        say(f"wrote {path}" + (f": {seen.frames:,} frames" if seen.frames else ""))
    if seen.cut:
        say(f"cut after {arguments.max_frames:,} frames; `--max-frames` allows more")
    if arguments.json:
        print_json({"episodes": seen.episodes})
    return 0


def _options(arguments: Namespace, *more: str) -> dict[str, Any]:
    def print_numbers(episode: Episode) -> None:
        from hotloop.viewing.terminal import numbers_line

        if not arguments.json:
            print_line(numbers_line(episode, arguments.episodes) + ("" if episode.end else "   (stopped)"), flush=True)

    names = ("episodes", "seed", "speed", "fps", "trust", *more)
    return {name: getattr(arguments, name) for name in names} | {"each": print_numbers}


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
    parser.add_argument("--checkpoint", default="", metavar="NAME", help="as of this one (not on a terminal)")
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    return parser
