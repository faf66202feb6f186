"""`hotloop prove FILE.py`, `--env` and `--module`: code that is not ours, held against its plain version."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json, require_above_zero
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line

EXAMPLES = """hotloop prove my_pairs.py --html proof.html
  hotloop prove --env slow.py:Env --against fast.py:Env
  hotloop prove --module slow.py:Net --against fast.py:Net --input 32,4
  hotloop prove dqn-update/double/native/64x64-b32 replay-sample"""


def add_arguments(parser: VerbParser) -> None:
    what = "a file of pairs (everything in it that is marked `@hotloop.pair(...)`), or a case of ours"
    parser.add_argument("cases", nargs="*", metavar="FILE|CASE", help=what)
    own = parser.add_argument_group("two versions of your own code")
    named = "an id, or file.py:Name (a class, or a function that makes one)"
    own.add_argument("--env", metavar="ENV", help=f"the plain env: {named}")
    own.add_argument("--module", metavar="NET", help="the plain network: file.py:Name, made without arguments")
    own.add_argument("--against", metavar="FAST", help="the fast one, named in the same way")
    own.add_argument("--tolerance", type=float, default=1e-6, help="share by which a number may differ (default 1e-6)")
    own.add_argument("--env-steps", type=int, default=2_000, help="of --env: played, episodes to their end")
    own.add_argument("--num-envs", type=int, default=4, help="of --env: side by side, each with a seed of its own")
    own.add_argument("--episodes", type=int, default=200, help="of --env: tested where random draws differ in order")
    own.add_argument("--seed", type=int, default=0, help="of --env: that of the first env")
    shape = "of --module: a shape, e.g. 32,4 or 32,7:int64; once for each input (default: read from the first layer)"
    own.add_argument("--input", action="append", metavar="SHAPE", help=shape)
    mapped = "of --module: from the plain state_dict to the fast one's (default: by name, else by order and shape)"
    own.add_argument("--map", metavar="FILE:FUNCTION", help=mapped)
    own.add_argument("--optimiser-steps", type=int, default=5, help="of --module: made in each mode (default 5)")
    own.add_argument("--html", type=Path, metavar="FILE", help="write the evidence as one page")


def is_asked_for(arguments: argparse.Namespace) -> bool:
    files = [word.endswith(".py") for word in arguments.cases]
    own = bool(arguments.env or arguments.module or arguments.against)
    if any(files) and (own or not all(files)):
        raise SettingsError(
            "files of pairs, names of cases, `--env` and `--module` do not go together", "one at a time"
        )
    if own and (arguments.cases or not arguments.against or bool(arguments.env) == bool(arguments.module)):
        raise SettingsError(
            "`--against` needs one plain version to hold against",
            "give `--env A --against B` or `--module A --against B`",
        )
    if arguments.html and not (own or any(files)):
        raise SettingsError("`--html` is for code of yours", "name a file of pairs, `--env` or `--module`")
    return own or any(files)


def run(arguments: argparse.Namespace) -> int:
    require_above_zero(arguments, "env_steps", "num_envs", "episodes", "optimiser_steps")
    if arguments.tolerance < 0:
        raise SettingsError(f"`--tolerance` is {arguments.tolerance}, expected 0 or more")
    from hotloop.cli.console import Bar
    from hotloop.proof.verdict import lines, summary

    tasks = _tasks(arguments)
    with Bar(len(tasks), arguments.quiet) as bar:
        proofs = bar.collect(_proved(tasks, bar))
    if arguments.html:
        from hotloop.proof.pairs_page import write_page

        write_page(arguments.html, proofs)
    if arguments.json:
        print_json([proof.as_data() for proof in proofs])
    else:
        print_line("\n\n".join("\n".join(lines(proof)) for proof in proofs))
        print_line(f"\n{summary(proofs)}" if len(proofs) > 1 else "")
    return 0 if all(proof.passed for proof in proofs) else 1


def _proved(tasks: list[tuple[str, Any]], bar: Any) -> Iterator[tuple[str, Any]]:
    for name, prove in tasks:
        bar.advance(name, 0)
        yield name, prove()


def _tasks(arguments: argparse.Namespace) -> list[tuple[str, Any]]:
    """What is to be proved, by name."""
    plain, fast, seconds = arguments.env or arguments.module, arguments.against, arguments.seconds
    options: dict[str, Any] = {"tolerance": arguments.tolerance, "seconds": seconds}
    if arguments.env:
        from hotloop.proof.env_pairs import prove_envs

        options |= {name: getattr(arguments, name) for name in ("env_steps", "num_envs", "episodes", "seed")}
        return [(fast, lambda: prove_envs(plain, fast, **options))]
    if arguments.module:
        from hotloop.proof.module_pairs import prove_modules

        options |= {"mapping": arguments.map, "optimiser_steps": arguments.optimiser_steps}
        return [(fast, lambda: prove_modules(plain, fast, arguments.input, **options))]
    from hotloop.proof.function_pairs import pairs_in, prove_pair

    pairs = [pair for word in arguments.cases for pair in pairs_in(Path(word))]
    return [(pair.title, lambda pair=pair: prove_pair(pair, seconds)) for pair in pairs]
