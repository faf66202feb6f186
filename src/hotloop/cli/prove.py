"""`hotloop prove FILE[::NAME] ...`, `--env`, `--module`, `--script`; what each of them is, is in `prove_own.py`."""

from __future__ import annotations

import os
from pathlib import Path

from hotloop.cli import prove_answers, prove_own
from hotloop.cli.arguments import VerbParser, require_above_zero
from hotloop.core.program import use_one_thread


def run(words: list[str]) -> int:
    parser = VerbParser("prove", prove_own.ABOUT, prove_own.EXAMPLES)
    parser.add_argument("--quick", action="store_true", help="of cases a small set, for a few minutes")
    parser.add_argument("--list", action="store_true", help="name the pairs and cases of the files and stop")
    parser.add_argument(
        "--seconds", type=float, help="of timing for each pair and case (default 1); of --script: ends both then"
    )
    kept = "put each case's row into this JSON file as it comes, in the place of the case's last one"
    parser.add_argument("--keep", type=Path, metavar="FILE", help=kept)
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    prove_own.add_arguments(parser)
    arguments = parser.parse_args(words)
    require_above_zero(arguments, "seconds", hint="1 is enough on a quiet machine")
    if not arguments.script:  # whose programs have the threads that they have without us
        use_one_thread()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else PyTorch's memory profiler writes into the progress display
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    prove_own.require_one_subject(arguments)
    if not arguments.files and not arguments.against:
        return prove_own.explain(arguments.json)
    found = prove_own.found_in(arguments) if arguments.files else None
    if found and arguments.list:
        return prove_answers.show_list(found, arguments)
    tasks = prove_own.tasks_of(found, arguments) if found else prove_own.tasks(arguments)
    return prove_answers.show(prove_answers.collect(tasks, found, arguments), arguments)
