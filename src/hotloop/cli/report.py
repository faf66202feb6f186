"""`hotloop report RUN`."""

from __future__ import annotations

from pathlib import Path

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line, say


def run(words: list[str]) -> int:
    parser = VerbParser(
        "report",
        "Write one self-contained HTML page of a run, finished or not: learning curves, evaluations, an episode of\n"
        "its best agent, losses, where the time went, settings, and the commands that make it again.",
        "hotloop report runs/cartpole-dqn-20260101-120000 --html cartpole.html",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--html", type=Path, metavar="FILE", help="where to write it (default: RUN/report.html)")
    parser.add_argument("--no-frames", action="store_true", help="play no episode: no pictures of the agent")
    parser.add_argument(
        "--doctor",
        type=Path,
        metavar="REPORT.json",
        help="what `hotloop doctor --json` printed, to be shown too (default: RUN/doctor.json where there is one)",
    )
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    arguments = parser.parse_args(words)
    from hotloop.reporting.make import report

    options = {"html": arguments.html, "frames": not arguments.no_frames, "trust": arguments.trust}
    made = report(arguments.run, doctor=arguments.doctor, **options)
    if arguments.json:
        print_json(made.data)
    else:
        print_line(made.sentence)
    for note in made.data["notes"]:
        say(note)
    say(f"wrote {made.file} ({made.data['bytes'] / 1e3:,.0f} kB)")
    return 0
