"""`hotloop compare ARM [overrides] ARM [overrides] ... --seeds N [-- --any.setting VALUE]`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from hotloop.cli.arguments import print_json
from hotloop.cli.compare_options import OPTIONS, SWITCHES, compare_parser
from hotloop.core.interrupts import stop_code
from hotloop.core.terminal import print_line, say
from hotloop.core.verdicts import ExitCode

if TYPE_CHECKING:
    from hotloop.comparison.report import Comparison


def run(words: list[str]) -> int:
    parser = compare_parser()
    cut = words.index("--") if "--" in words else len(words)
    if {"-h", "--help"} & set(words[:cut]):
        parser.parse_args(["--help"])  # answers at once, before anything heavy is imported
    from hotloop.cli.console import display_console, print_table
    from hotloop.comparison.arms import explained, split_argv
    from hotloop.comparison.compare import compare
    from hotloop.comparison.planning import plan_compare
    from hotloop.comparison.report import conclusions, tables
    from hotloop.presets.named import preset_names
    from hotloop.render.tables import as_rich

    own, arms = split_argv(words[:cut], OPTIONS, SWITCHES, preset_names())
    arguments, overrides = parser.parse_args(own), words[cut + 1 :]
    names = [*[name[2:] for name in OPTIONS if name != "--fail-if"], "until_sure", "trust", "mixed"]
    options = {name: getattr(arguments, name) for name in names}
    command = shlex.join(["hotloop", "compare", *[word for word in words if word not in SWITCHES[:3]]])
    display = display_console(arguments.quiet)
    try:
        with explained(words[:cut], OPTIONS, preset_names()):
            if file := options.pop("plan"):
                planned = plan_compare(arms, overrides=overrides, file=file, command=command, **options)
                if planned.left:
                    print_json(planned.as_data()) if arguments.json else print_line(planned.words())
                    return 0
                options["out"] = planned.folder
            found = compare(*arms, overrides=overrides, command=command, console=display, **options)
    except KeyboardInterrupt as stop:
        say(str(stop) or "stopped; the same command continues it")
        return stop_code()
    if arguments.json:
        print_json(found.as_data())
    else:
        for rows in tables(found):
            print_table(as_rich(rows))
            print_line()
        print_line("\n".join(conclusions(found)))
    return exit_code(found, arguments.fail_if)


def exit_code(found: Comparison, fail_if: str | None) -> ExitCode:
    """`--fail-if` decides which verdicts are no success; a run that failed is none in any case."""
    learned = {contrast.learning for contrast in found.contrasts}
    if found.failed or (fail_if and learned & {"worse", "mixed"}):
        return ExitCode.NO
    open_ones = {"too few"} if fail_if == "worse" else {"too few", "unseen"}
    return ExitCode.UNDECIDED if fail_if and (learned & open_ones or not learned) else ExitCode.YES
