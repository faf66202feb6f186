"""`python -m benchmarks.lanes [NAME ...]`: the table behind `lane = auto`, measured on this machine."""

from __future__ import annotations

from benchmarks import command
from hotloop.cli.arguments import require_above_zero
from hotloop.cli.main import run_command
from hotloop.core.program import use_one_thread

ABOUT = "Microseconds per update on every lane, and where the rule behind `lane = auto` is right or wrong."


def run(words: list[str]) -> int:
    parser = command.make_parser("benchmarks.lanes", ABOUT, "a network and batch (64x64-b32); without names, all")
    arguments = parser.parse_args(words)
    require_above_zero(arguments, "seconds")
    use_one_thread()  # before PyTorch is loaded
    from benchmarks import lane_times

    chosen = lane_times.choose(arguments.names)
    results = lane_times.measure_lanes(chosen, arguments.seconds)
    rows = command.collect(results, len(chosen), arguments.quiet)
    return command.show(rows, lane_times.draw_lanes, lane_times.remarks(rows), arguments.json)


if __name__ == "__main__":
    raise SystemExit(run_command(run))
