"""What `hotloop prove` answers: the proofs of pairs in words, the rows of cases as a table, both as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from hotloop.cli.arguments import print_json
from hotloop.cli.prove_own import Task
from hotloop.core.terminal import print_line
from hotloop.core.verdicts import ExitCode


def show_list(found: Any, arguments: argparse.Namespace) -> int:
    if arguments.json:
        cases = [{"case": case.name, "kind": case.kind, "default": case.quick} for case in found.runnable(quick=False)]
        print_json({"pairs": [pair.title for pair in found.pairs], "cases": cases})
    else:
        print_line("\n".join(found.listed()))
    return ExitCode.YES


def collect(tasks: Sequence[Task], found: Any, arguments: argparse.Namespace) -> list[Any]:
    """A proof or a row of each, in order; rows are kept as they come."""
    from hotloop.cli.console import Bar

    answers = []
    with Bar(len(tasks), arguments.quiet or bool(arguments.script)) as bar:
        for line in found.not_available() if found else ():
            bar.print(line)
        for name, prove in tasks:
            bar.advance(name, 0)
            answers.append(prove())
            if is_row(answers[-1]):
                _noted(answers[-1], found, bar, arguments)
            bar.advance(name)
    return answers


def is_row(answer: Any) -> bool:
    """Whether it is that of a case."""
    return hasattr(answer, "case")


def _noted(row: Any, found: Any, bar: Any, arguments: argparse.Namespace) -> None:
    from rich.text import Text

    from hotloop.proof.case_rows import keep

    if arguments.keep:
        keep(arguments.keep, row.as_data(), found.cases)
    if row.equal is False:
        bar.print(Text.assemble(("not equal", "red"), f" {row.name}: {row.equality.where}"))


def show(answers: Sequence[Any], arguments: argparse.Namespace) -> int:
    proofs, rows = [one for one in answers if not is_row(one)], [one for one in answers if is_row(one)]
    if arguments.html:
        from hotloop.proof.pairs_page import write_page

        write_page(arguments.html, proofs)
    if arguments.json:
        of_pairs = {"pairs": [proof.as_data() for proof in proofs]} if proofs else {}
        print_json(of_pairs | ({"cases": [row.as_data() for row in rows]} if rows or not proofs else {}))
    else:
        _print_proofs(proofs)
        _print_rows(rows)
    return worst_of(answer.exit_code for answer in answers)


def _print_proofs(proofs: Sequence[Any]) -> None:
    if not proofs:
        return
    from hotloop.proof.verdict import lines, summary

    print_line("\n\n".join("\n".join(lines(proof)) for proof in proofs))
    print_line(f"\n{summary(proofs)}" if len(proofs) > 1 else "")


def _print_rows(rows: Sequence[Any]) -> None:
    if not rows:
        return
    from hotloop.cli.console import print_table
    from hotloop.proof.case_rows import draw

    print_table(draw(rows))
    unequal, promised = (sum(row.equal in kinds for row in rows) for kinds in ([False], [True, False]))
    print_line(f"\n{promised - unequal} of {promised} cases equal" + (f", {unequal} NOT" if unequal else ""))


def worst_of(codes: Iterable[ExitCode]) -> int:
    """Different, if anything is; else not decided, if anything is not."""
    return max(codes, key=[ExitCode.YES, ExitCode.UNDECIDED, ExitCode.NO].index, default=ExitCode.YES)
