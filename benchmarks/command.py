"""What `python -m benchmarks.lanes`, `.peers` and `.workers` have in common: their options, and how they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.cli.console import Bar, print_table
from hotloop.core.program import load_average
from hotloop.core.terminal import print_line


def make_parser(program: str, about: str, names: str) -> VerbParser:
    """`program`: the module that is run; `names`: what may be named instead of all."""
    parser = VerbParser("", about, f"python -m {program} --json")
    parser.prog = f"python -m {program}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing for each pair of calls (default 1)")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def collect(results: Iterable[tuple[str, Any]], total: int, quiet: bool) -> list[Any]:
    """The results that are any, with a bar on stderr while they come."""
    with Bar(total, quiet) as bar:
        return bar.collect(results)


def show(
    rows: Sequence[Any], draw: Callable[[Sequence[Any]], Any], lines: Sequence[str], as_json: bool, **more: Any
) -> int:
    if as_json:
        print_json({"load_average": load_average(), "rows": [row.as_data() for row in rows], **more})
    else:
        print_table(draw(rows))
        print_line("\n".join(lines))
    return 0
