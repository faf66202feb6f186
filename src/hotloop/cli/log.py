"""`hotloop log RUN --tensorboard FOLDER | --wandb PROJECT`."""

from __future__ import annotations

from pathlib import Path

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line, say


def run(words: list[str]) -> int:
    parser = VerbParser(
        "log",
        "Show a run's event rows elsewhere: in TensorBoard or Weights & Biases, afterwards or while it trains.\n"
        "Run again, it adds what is new; no row is shown twice, not even after the run was stopped and resumed.",
        "hotloop log runs/cartpole-dqn-20260101-120000 --tensorboard boards/cartpole --follow",
    )
    parser.add_argument("run", help="a run's directory")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="a folder for this run (extra `tensorboard`)")
    where.add_argument("--wandb", metavar="[ENTITY/]PROJECT", help="a project of Weights & Biases (extra `wandb`)")
    parser.add_argument("--follow", action="store_true", help="go on until the run is finished or stopped")
    arguments = parser.parse_args(words)
    from hotloop.export.loggers import log_run

    made = log_run(
        arguments.run, tensorboard=arguments.tensorboard, wandb=arguments.wandb or "", follow=arguments.follow
    )
    if made.interrupted:
        say("stopped; the same command adds what is missing")
    if arguments.json:
        print_json(made.as_data())
    else:
        ending = "finished" if made.finished else "not finished; the same command adds what comes"
        print_line(f"{made.rows:,} rows, {made.scalars:,} numbers to {made.to}; the run is {ending}")
    return 130 if made.interrupted else 0
