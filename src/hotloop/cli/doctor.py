"""`hotloop doctor PRESET|SCRIPT.py`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json, settings_from_words
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import say

if TYPE_CHECKING:
    from hotloop.doctor.finding import Finding
    from hotloop.doctor.trace import Trace
    from hotloop.doctor.views.against import Comparison

BUDGET_EXCEEDED = 3


def run(words: list[str]) -> int:
    parser = _parser()
    arguments = parser.parse_args(words)
    is_script = arguments.target.endswith(".py")
    if not is_script:  # a preset takes the doctor's options on either side of its name
        options = _parser(with_target=False)
        arguments, arguments.rest = options.parse_known_args(arguments.rest, arguments)
    _require_sense(arguments)
    old = _read_old(arguments.against)
    trace = _record_script(arguments) if is_script else _record_preset(arguments)
    return _report(trace, arguments, old)


def _parser(with_target: bool = True) -> VerbParser:
    parser = VerbParser(
        "doctor",
        "Say why a training loop is slow, with evidence, and what to do about it.\n"
        "PRESET: one of ours, or a TOML file; settings follow as for `hotloop train`.\n"
        "SCRIPT.py: any training program, run as it is; the doctor's options stand before it, its own after.\n"
        "Exit code 0: a report was made; 2: a mistake; 3: slower than --against or --budget allow.",
        "hotloop doctor --html report.html train.py --seed 1",
        usage="hotloop doctor [options] PRESET|SCRIPT.py [settings or the script's own arguments]",
        argument_default=argparse.SUPPRESS if not with_target else None,
    )
    if with_target:
        parser.add_argument("target", help="a preset, a TOML file, or a Python script")
        parser.add_argument("rest", nargs=argparse.REMAINDER, help="settings, or the script's own arguments")
    options = {
        "--seconds": (float, "S", "watch the loop for so long (default: 10 for presets, 30 for scripts)"),
        "--env-steps": (int, "N", "a script: stop after so many env steps"),
        "--html": (Path, "FILE", "write the report as one self-contained page"),
        "--trace": (Path, "FILE", "write a Chrome trace, which opens in Perfetto"),
        "--save": (Path, "FILE", "write the report as JSON, for a later --against"),
        "--against": (Path, "OLD.json", "say what became slower since that report"),
        "--max-slowdown": (float, "R", "with --against: exit code 3 where an env step takes R times as long (1.2)"),
        "--budget": (float, "US", "exit code 3 where an env step takes more microseconds than this"),
    }
    for name, (kind, metavar, meaning) in options.items():
        parser.add_argument(name, type=kind, metavar=metavar, help=meaning)
    parser.add_argument(
        "--env", action="append", metavar="CLASS", help="a script's class (or function) that steps the env"
    )
    parser.add_argument("--ops", action="store_true", help="a script: add the torch operators")
    parser.add_argument("--quick", action="store_true", help="phases only: no experiments, no counting pass")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def _require_sense(arguments: argparse.Namespace) -> None:
    for name in ("seconds", "env_steps", "budget", "max_slowdown"):
        value = getattr(arguments, name)
        if value is not None and not value > 0:
            raise SettingsError(
                f"`--{name.replace('_', '-')}` is {value}, expected above 0", "`hotloop doctor --help` explains"
            )
    if arguments.max_slowdown is not None and arguments.against is None:
        raise SettingsError("`--max-slowdown` compares with an older report", "name it with `--against OLD.json`")
    for path in (arguments.html, arguments.trace, arguments.save):
        if path is not None and not path.parent.is_dir():
            raise SettingsError(f"there is no folder {path.parent} to write {path.name} to", "make it first")


def _read_old(path: Path | None) -> dict[str, Any] | None:
    """Before anything is run: a wrong file name must not cost a minute."""
    from hotloop.doctor.views.against import require_report

    if path is None:
        return None
    try:
        text = path.read_text()
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}", "`--save FILE` writes such a report") from None
    return require_report(text, str(path))


def _say(arguments: argparse.Namespace) -> Any:
    return (lambda text: None) if arguments.quiet else say


def _record_preset(arguments: argparse.Namespace) -> Trace:
    for name in ("env_steps", "env", "ops"):
        if getattr(arguments, name):
            raise SettingsError(f"`--{name.replace('_', '-')}` is for scripts", "leave it out for a preset")
    from hotloop.cli.doctor_preset import PresetPlan, record_preset

    settings = settings_from_words(arguments.target, arguments.rest)
    plan = PresetPlan(seconds=arguments.seconds or PresetPlan.seconds, experiments=not arguments.quick)
    return record_preset(settings, Path(arguments.target).stem, plan, _say(arguments))


def _record_script(arguments: argparse.Namespace) -> Trace:
    path = Path(arguments.target)
    if not path.is_file():
        raise SettingsError(f"there is no script {path}", "give a Python file, or a preset's name without `.py`")
    from hotloop.doctor.recorder import ScriptPlan, record_script

    plan = ScriptPlan(
        seconds=arguments.seconds or ScriptPlan.seconds,
        env_steps=arguments.env_steps,
        env_classes=tuple(arguments.env or ()),
        counting=not arguments.quick,
        threads=not arguments.quick,
        ops=bool(arguments.ops),
    )
    return record_script(path, arguments.rest, plan, _say(arguments))


def _report(trace: Trace, arguments: argparse.Namespace, old: dict[str, Any] | None) -> int:
    from hotloop.doctor.finding import findings
    from hotloop.doctor.growth import with_growth
    from hotloop.doctor.rules import load_rules
    from hotloop.doctor.views.against import compare_reports
    from hotloop.doctor.views.report import report_json

    trace = with_growth(trace)
    found = findings(trace, load_rules())
    compared = None if old is None else compare_reports(old, trace)
    report = report_json(trace, found)
    if compared is not None:
        report["against"] = compared.as_json()
    _write_files(trace, found, report, arguments)
    if arguments.json:
        print_json(report)
    else:
        _print(trace, found, compared)
    return BUDGET_EXCEEDED if _exceeded(trace, compared, arguments) else 0


def _write_files(trace: Trace, found: list[Finding], report: dict[str, Any], arguments: argparse.Namespace) -> None:
    from hotloop.doctor.views.page import page
    from hotloop.doctor.views.report import chrome_trace

    texts = {
        arguments.html: lambda: page(trace, found),
        arguments.trace: lambda: json.dumps(chrome_trace(trace)),
        arguments.save: lambda: json.dumps(report, indent=1),
    }
    for path, make in texts.items():
        if path is not None:
            partial = path.with_name(path.name + ".partial")
            partial.write_text(make())
            partial.replace(path)
            say(f"wrote {path}")


def _print(trace: Trace, found: list[Finding], compared: Comparison | None) -> None:
    from hotloop.cli.console import answer_console
    from hotloop.doctor.views.text import render_text

    console = answer_console()
    console.print(render_text(trace, found))
    if compared is not None:
        console.print(compared.table())


def _exceeded(trace: Trace, compared: Comparison | None, arguments: argparse.Namespace) -> bool:
    """Whether the loop is slower than was allowed, said on stderr."""
    cost = 1e6 * trace.loop_seconds / max(1, trace.counts.env_steps)
    if arguments.budget is not None and cost > arguments.budget:
        say(f"over budget: {cost:.3g} us per env step, {arguments.budget:g} allowed")
        return True
    if compared is not None and compared.exceeds(arguments.max_slowdown or 1.2):
        say("slower than the older report allows")
        return True
    return False
