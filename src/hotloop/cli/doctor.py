"""`hotloop doctor PRESET|SCRIPT.py`."""

from __future__ import annotations

from pathlib import Path

from hotloop.cli.arguments import print_json, settings_from_argv
from hotloop.cli.console import answer_console
from hotloop.cli.doctor_options import doctor_parser, option_names
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import say
from hotloop.core.verdicts import ExitCode

FOR_SCRIPT = "--"
"""Behind the script's name: all words after it are the script's own."""


def run(words: list[str]) -> int:
    from hotloop.diagnosis.diagnose import MOST_SLOWDOWN, diagnose, is_script, require_above_zero, require_folders

    arguments = doctor_parser().parse_args(words)
    script = arguments.module or is_script(arguments.target)
    if not script:  # a preset takes the doctor's options on either side of its name
        arguments, arguments.rest = doctor_parser(with_target=False).parse_known_args(arguments.rest, arguments)
    else:
        arguments.rest = words_of_script(arguments.target, arguments.rest)
    require_above_zero(budget=arguments.budget, max_slowdown=arguments.max_slowdown)
    if arguments.max_slowdown is not None and arguments.against is None:
        raise SettingsError("`--max-slowdown` compares with an older report", "name it with `--against OLD.json`")
    require_folders(arguments.html, arguments.trace, arguments.save)
    found = diagnose(
        arguments.target if script else settings_from_argv(arguments.target, arguments.rest),
        arguments.rest if script else (),
        seconds=arguments.seconds,
        env_steps=arguments.env_steps,
        after=arguments.after,
        watch_seconds=arguments.watch_seconds,
        env_classes=arguments.env or (),
        ops=arguments.ops,
        quick=arguments.quick,
        experiments=arguments.experiments,
        arms=arguments.arm or (),
        python=arguments.python,
        in_place=arguments.in_place,
        module=arguments.module,
        against=arguments.against,
        label=Path(arguments.target).stem,
        say=None if arguments.quiet else say,
    )
    for path in found.write(html=arguments.html, trace=arguments.trace, save=arguments.save):
        say(f"wrote {path}")
    if arguments.json:
        print_json(found.as_json())
    else:
        answer_console().print(found.as_text(full=arguments.full or not script))
    if found.trace.nothing_to_judge:
        say(f"nothing to judge: {found.trace.nothing_to_judge}")
        return ExitCode.UNDECIDED
    reason = found.slower_than(arguments.budget, arguments.max_slowdown or MOST_SLOWDOWN)
    if reason:
        say(reason)
    return ExitCode.OVER_BUDGET if reason else ExitCode.YES


def words_of_script(script: str, words: list[str]) -> list[str]:
    """What the script is given. An option of the doctor's behind it is refused, since the script would get it; what
    follows `--` is the script's, whatever it is called."""
    before = words[: words.index(FOR_SCRIPT)] if FOR_SCRIPT in words else words
    ours = next((word for word in before if word.partition("=")[0] in option_names()), None)
    if ours is not None:
        rest = " ".join(words)
        raise SettingsError(
            f"`{ours}` stands behind {script}: it is an option of the doctor, and all words there are the script's own",
            f"write it before the script; if it is the script's own: `hotloop doctor {script} -- {rest}`",
        )
    return [*before, *words[len(before) + 1 :]]
