"""`hotloop log RUN --tensorboard FOLDER | --wandb PROJECT`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line, say


def run(words: list[str]) -> int:
    parser = VerbParser(
        "log",
        "Show a run's event rows elsewhere: in TensorBoard or Weights & Biases, afterwards or while it trains.\n"
        "Said again, it adds what is new; no row is shown twice, not even after the run was stopped and resumed.",
        "hotloop log runs/cartpole-dqn-20260101-120000 --tensorboard boards/cartpole --follow",
    )
    parser.add_argument("run", help="a run's directory")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="a folder for this run (extra `tensorboard`)")
    where.add_argument("--wandb", metavar="[ENTITY/]PROJECT", help="a project of Weights & Biases (extra `wandb`)")
    parser.add_argument("--follow", action="store_true", help="go on until the run is finished or stopped")
    arguments = parser.parse_args(words)
    answer, code = _log(arguments)
    if arguments.json:
        print_json(answer)
    else:
        ending = "finished" if answer["finished"] else "not finished; the same command adds what comes"
        print_line(f"{answer['rows']:,} rows, {answer['scalars']:,} numbers to {answer['to']}; the run is {ending}")
    return code


def _log(arguments: Namespace) -> tuple[dict[str, Any], int]:
    from hotloop.export.follow import Feed, result_row, rows_until_the_end
    from hotloop.runs.directory import Run

    opened = Run.open(arguments.run)
    logger = _logger(opened, arguments)
    feed, code = Feed(logger, logger.once), 0
    try:
        for rows in rows_until_the_end(opened, follow=arguments.follow):
            feed.take(rows)
        if opened.finished:
            feed.take([result_row(opened.result())])
    except KeyboardInterrupt:
        say("stopped; the same command adds what is missing")
        code = 130
    finally:
        logger.close()
    to = f"wandb {arguments.wandb}" if arguments.wandb else str(arguments.tensorboard)
    counted = {"rows": feed.rows, "scalars": feed.scalars, "env_steps": max(logger.once.reached.values(), default=0)}
    return {"run": arguments.run, "to": to, **counted, "finished": opened.finished}, code


def _logger(opened: Any, arguments: Namespace) -> Any:
    if arguments.wandb:
        from hotloop.export.loggers import WeightsAndBiases

        return WeightsAndBiases(opened, arguments.wandb)
    from hotloop.export.loggers import TensorBoard

    return TensorBoard(opened, arguments.tensorboard)
