"""`hotloop prove [CASE ... | FILE.py ...]`; code of the user's own is in `prove_own.py`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hotloop.cli import prove_own
from hotloop.cli.arguments import VerbParser, print_json, require_above_zero
from hotloop.core.program import use_one_thread
from hotloop.core.terminal import print_line
from hotloop.core.verdicts import ExitCode


def run(words: list[str]) -> int:
    parser = VerbParser("prove", prove_own.ABOUT, prove_own.EXAMPLES)
    parser.add_argument("--own", action="store_true", help="a small set of our own cases, for a few minutes")
    parser.add_argument("--full", "--all", action="store_true", help="every case of ours (long)")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument(
        "--seconds", type=float, help="of timing for each case (default 1); of --script: ends both then"
    )
    kept = "put each row into this JSON file as it comes, in the place of the case's last one"
    parser.add_argument("--keep", type=Path, metavar="FILE", help=kept)
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    prove_own.add_arguments(parser)
    arguments = parser.parse_args(words)
    require_above_zero(arguments, "seconds", hint="1 is enough on a quiet machine")
    if not arguments.script:  # whose programs have the threads that they have without us
        use_one_thread()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else PyTorch's memory profiler writes into the progress display
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if prove_own.is_asked_for(arguments):
        return prove_own.run(arguments)
    from hotloop.proof import figures, registry

    if arguments.keep is not None:
        figures.require_keepable(arguments.keep)
    known = registry.build_registry()
    if not (arguments.cases or arguments.own or arguments.full or arguments.list):
        return prove_own.explain(known, arguments.json)
    cases = known.select(arguments.cases, full=arguments.full or arguments.list)
    if not arguments.list:
        return _prove(cases, known, arguments)
    if arguments.json:
        found = [{"case": case.name, "kind": case.kind, "default": case.is_default} for case in cases]
        print_json({"cases": found})
    else:
        print_line("\n".join(known.listed(cases)))
    return 0


def _prove(cases: Any, known: Any, arguments: Any) -> int:
    from rich.text import Text

    from hotloop.cli.console import Bar, print_table
    from hotloop.core.arithmetic import arithmetic_on
    from hotloop.proof import figures
    from hotloop.proof.run import draw, prove_case

    rows = []
    with Bar(len(cases), arguments.quiet) as bar, arithmetic_on(threads=1):
        for line in known.not_available():
            bar.print(line)
        for case in cases:
            bar.advance(case.name, 0)
            rows.append(prove_case(case, arguments.seconds or 1.0))
            if arguments.keep:
                figures.keep(arguments.keep, rows[-1].as_data(), [each.name for each in known.cases])
            if rows[-1].equal is False:
                bar.print(Text.assemble(("not equal", "red"), f" {case.name}: {rows[-1].equality.where}"))
            bar.advance(case.name)
    unequal, promised = (sum(row.equal in kinds for row in rows) for kinds in ([False], [True, False]))
    if arguments.json:
        print_json({"cases": [row.as_data() for row in rows]})
    else:
        print_table(draw(rows))
        print_line(f"\n{promised - unequal} of {promised} cases equal" + (f", {unequal} NOT" if unequal else ""))
    return ExitCode.NO if unequal else ExitCode.YES
