"""`hotloop job run LIST --index N` and `hotloop job list LIST`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.interrupts import stop_code
from hotloop.core.terminal import print_line, printable, say
from hotloop.core.values import nearest

DEEDS = ("run", "list")


def run(words: list[str]) -> int:
    parser = VerbParser(
        "job",
        "Work through a list that `hotloop compare ... --plan jobs.jsonl` wrote, on this machine or on any other:\n"
        "`run` does one job of it (finished runs are kept, broken ones resumed), `list` tells how far they are.\n"
        "Exit code 1: the run failed, or (`list`) not all are finished; 130, 143: stopped, and\n"
        "the same command continues it. docs/scale.md shows Slurm, GNU parallel and ssh.",
        "hotloop job run jobs.jsonl --index $SLURM_ARRAY_TASK_ID",
        usage="hotloop job run|list LIST [--index N] [--out FOLDER] [--trust] [--mixed] [--json]",
    )
    parser.add_argument("deed", metavar="run|list", help="do one job, or tell the state of all")
    parser.add_argument("list", type=Path, metavar="LIST", help="the file that `--plan` wrote")
    parser.add_argument("--index", type=int, help="which job to do, from 0 on")
    parser.add_argument("--out", type=Path, help="folder for the runs (default: LIST without its ending)")
    parser.add_argument("--trust", action="store_true", help="allow scripts and envs that came with the list to run")
    parser.add_argument("--mixed", action="store_true", help="train on a machine that rounds in another way, too")
    arguments = parser.parse_args(words)
    if arguments.deed not in DEEDS:
        near = nearest(arguments.deed, DEEDS)
        raise SettingsError(
            f"`{arguments.deed}` is nothing that job does", f"did you mean `{near}`?" if near else "`run` or `list`"
        )
    from hotloop.scale.joblist import default_out, read_list

    jobs, out = read_list(arguments.list), arguments.out or default_out(arguments.list)
    if arguments.deed == "list":
        return _list(jobs, out, arguments.json)
    if arguments.index is None:
        raise SettingsError("`--index N` is missing: which job to do", f"the list has jobs 0 to {len(jobs.jobs) - 1}")
    from hotloop.scale.work import run_job

    try:
        outcome = run_job(jobs, arguments.index, out, trust=arguments.trust, mixed=arguments.mixed)
    except KeyboardInterrupt:
        say("stopped; the same command continues it")
        return stop_code()
    if arguments.json:
        print_json(outcome.as_data())
    elif not outcome.error:
        was = "was finished before" if outcome.kept else "is finished"
        print_line(printable(f"job {outcome.job.index}, {outcome.job.name}, {was}: {outcome.path}"))
    if outcome.error:
        say(f"error: job {outcome.job.index}, {outcome.job.name}: {outcome.error}")
    return 1 if outcome.error else 0


def _list(jobs: Any, out: Path, as_json: bool) -> int:
    from hotloop.cli.console import print_table
    from hotloop.render.tables import as_rich
    from hotloop.scale.work import states_of

    rows = states_of(jobs, out)
    if as_json:
        print_json({"jobs": rows})
    else:
        heading = ["job", "name", "state", "env steps", "run"]
        print_table(
            as_rich(
                [heading, *[["-" if value is None else str(value) for value in row.values()] for row in rows]],
                left=heading,
            )
        )
    return 0 if all(row["state"] == "finished" for row in rows) else 1
