"""What `hotloop prove` is asked for: the options of its subjects, and each of them as a task by name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, require_above_zero
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line
from hotloop.core.verdicts import ExitCode

Task = tuple[str, Callable[[], Any]]

ABOUT = """Hold a fast program equal to a plain one, then time both interleaved on one thread: functions and cases in
files (`@hotloop.pair`, `@hotloop.cases`), two envs, two networks; or two whole programs, unmodified, in processes of
their own. A case is named family/variant/lane/size; parts may be left out.
error: |fast - plain| / |plain|, per update made. growth: the fast form's time per unit at a larger size over that at a
smaller one. Exit code 0: identical, the same to rounding, or but for draws; 1: something differs; 2: a mistake; 3: not
everything could be compared, or a program does not repeat itself."""
EXAMPLES = """hotloop prove my_pairs.py --html proof.html
  hotloop prove --env slow.py:Env --against fast.py:Env
  hotloop prove --module slow.py:Net --against fast.py:Net --input 32,4
  hotloop prove --script old.py --against new.py --args "--seed 1"
  hotloop prove benchmarks/update.py::dqn-update/native"""


def add_arguments(parser: VerbParser) -> None:
    what = "a file, or the files of a folder: everything marked `@hotloop.pair(...)` or `@hotloop.cases(...)`, or NAME"
    parser.add_argument("files", nargs="*", metavar="FILE[::NAME]", help=what)
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
    own.add_argument("--optimizer-steps", type=int, default=5, help="of --module: made in each mode (default 5)")
    own.add_argument("--args", default="", metavar="WORDS", help='of --script: given to both, e.g. "--seed 1"')
    own.add_argument("--rounds", type=int, help="of --script: of timing, 0 for none (default: a minute's, at least 1)")
    own.add_argument(
        "--python", metavar="PATH", help="of --script: the interpreter (default: the active environment's)"
    )
    own.add_argument(
        "--in-place", action="store_true", help="of --script: run in the scripts' own folder, not in copies"
    )
    own.add_argument("--html", type=Path, metavar="FILE", help="write the evidence as one page")


def require_one_subject(arguments: argparse.Namespace) -> None:
    plain = [one for one in (arguments.env, arguments.module, arguments.script) if one]
    own = bool(plain or arguments.against)
    if arguments.files and own:
        raise SettingsError("files, `--env`, `--module` and `--script` do not go together", "one at a time")
    if own and (not arguments.against or len(plain) != 1):
        raise SettingsError(
            "`--against` needs one plain version to hold against",
            "give `--env A --against B`, `--module A --against B` or `--script old.py --against new.py`",
        )
    if arguments.html and not (own or arguments.files):
        raise SettingsError("`--html` shows what was proved", "name a file, `--env`, `--module` or `--script`")
    require_above_zero(arguments, "env_steps", "num_envs", "episodes", "optimizer_steps")
    for name in ("tolerance", "rounds"):
        if (getattr(arguments, name) or 0) < 0:
            raise SettingsError(f"`--{name}` is {getattr(arguments, name)}, expected 0 or more")


def explain(as_json: bool) -> int:
    """Where nothing is named, nothing is run."""
    if as_json:
        raise SettingsError("nothing was named to prove", "`hotloop prove --help` says what can be")
    print_line(f"Nothing was named, so nothing was proved. Two versions of your own code:\n\n  {EXAMPLES}")
    print_line("\n`--list` names what a file or a folder has. Fast paths of hotloop's own are in `benchmarks/` of a")
    print_line("checkout: `hotloop prove benchmarks --list`; `--quick` proves a small set of them, in a few minutes.")
    return ExitCode.MISTAKE


def found_in(arguments: argparse.Namespace) -> Any:
    """The pairs and cases of the files, in which everything asked for has its use."""
    from hotloop.proof.case_files import find
    from hotloop.proof.case_rows import require_keepable

    if arguments.keep is not None:
        require_keepable(arguments.keep)
    found = find(arguments.files)
    if arguments.html and not found.pairs:
        raise SettingsError("`--html` is of pairs, and the files have none", "`--json` and `--keep` are of cases")
    return found


def tasks(arguments: argparse.Namespace) -> list[Task]:
    """What is to be proved, by name, where that is two things named by options."""
    plain, fast = arguments.env or arguments.module or arguments.script, arguments.against
    if arguments.script:
        return [(fast, lambda: _programs(arguments))]
    options: dict[str, Any] = {"seconds": seconds_of(arguments)}
    if arguments.tolerance is not None:
        options["tolerance"] = arguments.tolerance
    if arguments.env:
        from hotloop.proof.env_pairs import prove_envs

        options |= {name: getattr(arguments, name) for name in ("num_envs", "episodes", "seed")}
        if arguments.env_steps is not None:
            options["env_steps"] = arguments.env_steps
        return [(fast, lambda: prove_envs(plain, fast, **options))]
    from hotloop.proof.module_pairs import prove_modules

    options |= {"mapping": arguments.map, "optimizer_steps": arguments.optimizer_steps}
    return [(fast, lambda: prove_modules(plain, fast, arguments.input, **options))]


def tasks_of(found: Any, arguments: argparse.Namespace) -> list[Task]:
    """The pairs of files, then their cases."""
    from hotloop.proof.function_pairs import prove_pair
    from hotloop.proof.run import prove_case

    seconds = seconds_of(arguments)
    pairs: list[Task] = [(pair.title, partial(prove_pair, pair, seconds)) for pair in found.pairs]
    return [*pairs, *[(case.name, partial(prove_case, case, seconds)) for case in found.runnable(arguments.quick)]]


def seconds_of(arguments: argparse.Namespace) -> float:
    return 1.0 if arguments.seconds is None else float(arguments.seconds)


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
