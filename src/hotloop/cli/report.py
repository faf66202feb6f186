"""`hotloop report RUN`."""

from __future__ import annotations

from pathlib import Path

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line, say

USUAL_NAME = "report.html"


def run(words: list[str]) -> int:
    parser = VerbParser(
        "report",
        "Write one self-contained HTML page of a run, finished or not: learning curves, evaluations, an episode of\n"
        "its best agent, losses, where the time went, settings, and the commands that make it again.",
        "hotloop report runs/cartpole-dqn-20260101-120000 --html cartpole.html",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--html", type=Path, metavar="FILE", help=f"where to write it (default: RUN/{USUAL_NAME})")
    parser.add_argument("--no-frames", action="store_true", help="play no episode: no pictures of the agent")
    parser.add_argument(
        "--doctor",
        type=Path,
        metavar="REPORT.json",
        help="what `hotloop doctor --json` printed, to be shown too (default: RUN/doctor.json where there is one)",
    )
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    arguments = parser.parse_args(words)
    from hotloop.reporting.make import make_report
    from hotloop.runs.files import write_file

    made = make_report(arguments.run, frames=not arguments.no_frames, doctor=arguments.doctor, trust=arguments.trust)
    file = arguments.html or Path(arguments.run) / USUAL_NAME
    content = made.html.encode()
    write_file(file, content)
    if arguments.json:
        print_json({"page": str(file), "bytes": len(content), **made.data})
    else:
        print_line(made.sentence)
    for note in made.data["notes"]:
        say(note)
    say(f"wrote {file} ({len(content) / 1e3:,.0f} kB)")
    return 0
