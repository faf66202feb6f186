"""`hotloop debug-nan RUN`."""

from __future__ import annotations

from typing import Any

from hotloop.cli.arguments import VerbParser, print_json


def run(words: list[str]) -> int:
    parser = VerbParser(
        "debug-nan",
        "Repeat the update at which a run's numbers became NaN or infinite, in plain PyTorch, and say which tensor\n"
        "was the first. The run keeps that update in its folder `failure/`; nothing of it is changed or executed.",
        "hotloop debug-nan runs/cartpole-dqn-20260101-120000",
    )
    parser.add_argument("run", help="a run's directory")
    arguments = parser.parse_args(words)
    from hotloop.loop.rerun_failure import repeat_failure

    answer = repeat_failure(arguments.run)
    if arguments.json:
        print_json(answer)
    else:
        _show(answer)
    return 0


def _show(answer: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from hotloop.cli.console import answer_console

    console = answer_console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("tensor")
    for title in ("numbers", "not finite", "largest"):
        table.add_column(title, justify="right")
    for row in answer["tensors"]:
        largest = "-" if row["largest"] is None else f"{row['largest']:.3g}"
        table.add_row(row["tensor"], f"{row['numbers']:,}", f"{row['not_finite']:,}", largest)
    console.print(f"{answer['message']} ({answer['lane']} lane)\n", soft_wrap=True)
    console.print(table)
    if not answer["batch_kept"]:
        console.print("\nits batch was not kept: on this device the numbers were read only later")
    first = answer["first"]
    console.print(Text.assemble(("\nfirst", "bold"), f"  {first or 'nothing: in plain PyTorch all is finite'}"))
