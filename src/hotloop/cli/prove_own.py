"""`hotloop prove FILE.py`, `--env`, `--module` and `--script`: code that is not ours, against its plain version."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json, require_above_zero
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line
from hotloop.core.verdicts import ExitCode

ABOUT = """Hold a fast program equal to a plain one, then time both by turns on one thread: your own (two functions in
a file of pairs, two envs, two networks; or two whole programs, unmodified, in processes of their own), or ours. A case
of ours is named family/variant/lane/size; parts may be left out. `--own` runs a small set, for a few minutes.
error: |fast - plain| / |plain|, per update made. growth: the fast form's time per unit at a larger size over that at a
smaller one. Exit code 0: identical, the same to rounding, or but for draws; 1: something differs; 2: a mistake; 3: not
everything could be compared, or a program does not repeat itself."""
EXAMPLES = """hotloop prove my_pairs.py --html proof.html
  hotloop prove --env slow.py:Env --against fast.py:Env
  hotloop prove --module slow.py:Net --against fast.py:Net --input 32,4
  hotloop prove --script old.py --against new.py --args "--seed 1"
  hotloop prove dqn-update/double/native/64x64-b32 replay-sample"""


def add_arguments(parser: VerbParser) -> None:
    what = "a file of pairs (everything in it that is marked `@hotloop.pair(...)`), or a case of ours"
    parser.add_argument("cases", nargs="*", metavar="FILE|CASE", help=what)
    own = parser.add_argument_group("two versions of your own code")
    named = "an id, or file.py:Name (a class, or a function that makes one)"
    own.add_argument("--env", metavar="ENV", help=f"the plain env: {named}")
    own.add_argument("--module", metavar="NET", help="the plain network: file.py:Name, made without arguments")
    own.add_argument("--script", type=Path, metavar="OLD.py", help="the plain program, run unmodified")
    own.add_argument("--against", metavar="FAST", help="the fast one, named in the same way")
    allowed = "share by which a number may differ (default 1e-6; of --script what rounding explains); 0: not a bit"
    own.add_argument("--tolerance", type=float, help=allowed)
    steps = "of --env: played, episodes to their end (default 2000); of --script: after which both are ended"
    own.add_argument("--env-steps", type=int, help=steps)
    own.add_argument("--num-envs", type=int, default=4, help="of --env: side by side, each with a seed of its own")
    own.add_argument("--episodes", type=int, default=200, help="of --env: tested where random draws differ in order")
    own.add_argument("--seed", type=int, default=0, help="of --env: that of the first env")
    shape = "of --module: a shape, e.g. 32,4 or 32,7:int64; once for each input (default: read from the first layer)"
    own.add_argument("--input", action="append", metavar="SHAPE", help=shape)
    mapped = "of --module: from the plain state_dict to the fast one's (default: by name, else by order and shape)"
    own.add_argument("--map", metavar="FILE:FUNCTION", help=mapped)
    own.add_argument("--optimiser-steps", type=int, default=5, help="of --module: made in each mode (default 5)")
    own.add_argument("--args", default="", metavar="WORDS", help='of --script: given to both, e.g. "--seed 1"')
    own.add_argument("--rounds", type=int, help="of --script: of timing, 0 for none (default: a minute's, at least 1)")
    own.add_argument(
        "--python", metavar="PATH", help="of --script: the interpreter (default: the active environment's)"
    )
    own.add_argument(
        "--in-place", action="store_true", help="of --script: run in the scripts' own folder, not in copies"
    )
    own.add_argument("--html", type=Path, metavar="FILE", help="write the evidence as one page")


def is_asked_for(arguments: argparse.Namespace) -> bool:
    files = [word.endswith(".py") for word in arguments.cases]
    plain = [one for one in (arguments.env, arguments.module, arguments.script) if one]
    own = bool(plain or arguments.against)
    if any(files) and (own or not all(files)):
        raise SettingsError(
            "files of pairs, names of cases, `--env`, `--module` and `--script` do not go together", "one at a time"
        )
    if own and (arguments.cases or not arguments.against or len(plain) != 1):
        raise SettingsError(
            "`--against` needs one plain version to hold against",
            "give `--env A --against B`, `--module A --against B` or `--script old.py --against new.py`",
        )
    if arguments.html and not (own or any(files)):
        raise SettingsError("`--html` is for code of yours", "name a file of pairs, `--env`, `--module` or `--script`")
    return own or any(files)


def explain(known: Any, as_json: bool) -> int:
    """Where nothing is named, nothing is run."""
    if as_json:
        raise SettingsError(
            "nothing was named to prove", "`hotloop prove --help` says what can be; `--own` proves ours"
        )
    print_line(f"Nothing was named, so nothing was proved. Two versions of your own code:\n\n  {EXAMPLES}")
    print_line(
        "\nOr fast paths of hotloop, by family or by case (`--list` names all of them); `--own` runs a small set,"
    )
    print_line("for a few minutes, `--full` every case:\n")
    print_line("\n".join(f"  {line}" for line in known.families()))
    return ExitCode.MISTAKE


def run(arguments: argparse.Namespace) -> int:
    require_above_zero(arguments, "env_steps", "num_envs", "episodes", "optimiser_steps")
    for name in ("tolerance", "rounds"):
        if (getattr(arguments, name) or 0) < 0:
            raise SettingsError(f"`--{name}` is {getattr(arguments, name)}, expected 0 or more")
    from hotloop.cli.console import Bar
    from hotloop.proof.verdict import lines, summary

    tasks = _tasks(arguments)
    with Bar(len(tasks), arguments.quiet or bool(arguments.script)) as bar:
        proofs = bar.collect(_proved(tasks, bar))
    if arguments.html:
        from hotloop.proof.pairs_page import write_page

        write_page(arguments.html, proofs)
    if arguments.json:
        print_json({"pairs": [proof.as_data() for proof in proofs]})
    else:
        print_line("\n\n".join("\n".join(lines(proof)) for proof in proofs))
        print_line(f"\n{summary(proofs)}" if len(proofs) > 1 else "")
    return worst_of(proof.exit_code for proof in proofs)


def worst_of(codes: Iterable[ExitCode]) -> int:
    """Different, if anything is; else not decided, if anything is not."""
    return max(codes, key=[ExitCode.YES, ExitCode.UNDECIDED, ExitCode.NO].index, default=ExitCode.YES)


def _proved(tasks: list[tuple[str, Any]], bar: Any) -> Iterator[tuple[str, Any]]:
    for name, prove in tasks:
        bar.advance(name, 0)
        yield name, prove()


def _tasks(arguments: argparse.Namespace) -> list[tuple[str, Any]]:
    """What is to be proved, by name."""
    plain, fast = arguments.env or arguments.module or arguments.script, arguments.against
    if arguments.script:
        return [(fast, lambda: _programs(arguments))]
    seconds = 1.0 if arguments.seconds is None else arguments.seconds
    options: dict[str, Any] = {"seconds": seconds}
    if arguments.tolerance is not None:
        options["tolerance"] = arguments.tolerance
    if arguments.env:
        from hotloop.proof.env_pairs import prove_envs

        options |= {name: getattr(arguments, name) for name in ("num_envs", "episodes", "seed")}
        if arguments.env_steps is not None:
            options["env_steps"] = arguments.env_steps
        return [(fast, lambda: prove_envs(plain, fast, **options))]
    if arguments.module:
        from hotloop.proof.module_pairs import prove_modules

        options |= {"mapping": arguments.map, "optimiser_steps": arguments.optimiser_steps}
        return [(fast, lambda: prove_modules(plain, fast, arguments.input, **options))]
    from hotloop.proof.function_pairs import pairs_in, prove_pair

    pairs = [pair for word in arguments.cases for pair in pairs_in(Path(word))]
    return [(pair.title, lambda pair=pair: prove_pair(pair, seconds)) for pair in pairs]


def _programs(arguments: argparse.Namespace) -> Any:
    from hotloop.core.terminal import say
    from hotloop.proof.program_pairs import prove_programs

    return prove_programs(
        arguments.script,
        arguments.against,
        arguments.args,
        tolerance=arguments.tolerance,
        env_steps=arguments.env_steps,
        seconds=arguments.seconds,
        rounds=arguments.rounds,
        python=arguments.python,
        in_place=arguments.in_place,
        say=(lambda _: None) if arguments.quiet else say,
    )
