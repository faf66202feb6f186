"""`diagnose`: record a script, a preset or settings, apply the rules, and give all of it as one `Diagnosis`.

Light until it records: `hotloop doctor` answers a mistake before PyTorch is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import SettingsError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.doctor.finding import Finding
    from hotloop.doctor.trace import Trace
    from hotloop.doctor.views.against import TraceComparison
    from hotloop.presets.registry import RunSettings

Say = Callable[[str], None]
MOST_SLOWDOWN = 1.2
"""What an older report allows an env step to take longer, unless told otherwise."""


@dataclass(frozen=True)
class Diagnosis:
    """What was recorded of a training loop, and what the rules found in it, the greatest expected gain first."""

    trace: Trace
    findings: list[Finding]
    against: TraceComparison | None = None
    """What became slower or faster since an older report, where one was given."""

    @property
    def microseconds_per_env_step(self) -> float:
        return 1e6 * self.trace.loop_seconds / max(1, self.trace.counts.env_steps)

    def as_json(self) -> dict[str, Any]:
        """The object that `hotloop doctor --json` prints, and that a later `against` reads."""
        from hotloop.doctor.views.report import report_json

        compared = {} if self.against is None else {"against": self.against.as_json()}
        return report_json(self.trace, self.findings) | compared

    def as_text(self, full: bool = True) -> RenderableType:
        """For a terminal: `rich.print(diagnosis.as_text())`; what fits one screen with `full=False`."""
        from rich.console import Group

        from hotloop.doctor.views import render_screen, render_text

        compared = [] if self.against is None else [self.against.table()]
        return Group((render_text if full else render_screen)(self.trace, self.findings), *compared)

    def as_html(self) -> str:
        """One self-contained page."""
        from hotloop.doctor.views.page import page

        return page(self.trace, self.findings)

    def as_chrome_trace(self) -> dict[str, Any]:
        """The timeline for Perfetto and chrome://tracing."""
        from hotloop.doctor.views.report import chrome_trace

        return chrome_trace(self.trace)

    def write(
        self, *, html: str | Path | None = None, trace: str | Path | None = None, save: str | Path | None = None
    ) -> list[Path]:
        """Write the page, the Chrome trace and the report as JSON where a file is named for them; the files written.

        Each appears under its name when it is whole.
        """
        made: list[tuple[str | Path | None, Callable[[], str]]] = [
            (html, self.as_html),
            (trace, lambda: json.dumps(self.as_chrome_trace())),
            (save, lambda: json.dumps(self.as_json(), indent=1)),
        ]
        written = []
        for name, text in made:
            if name is not None:
                path = Path(name)
                partial = path.with_name(path.name + ".partial")
                partial.write_text(text())
                partial.replace(path)
                written.append(path)
        return written

    def slower_than(self, budget: float | None = None, max_slowdown: float = MOST_SLOWDOWN) -> str:
        """Why the loop is slower than allowed, empty where it is not: by a budget in microseconds per env step, or by
        how many times as long as in the older report an env step may take."""
        cost = self.microseconds_per_env_step
        if budget is not None and cost > budget:
            return f"over budget: {cost:.3g} us per env step, {budget:g} allowed"
        if self.against is not None and self.against.exceeds(max_slowdown):
            return "slower than the older report allows"
        return ""


def diagnose(
    target: str | Path | RunSettings,
    arguments: Sequence[str] = (),
    *,
    seconds: float | None = None,
    env_steps: int | None = None,
    after: int = 0,
    watch_seconds: float = 0.0,
    env_classes: Sequence[str] = (),
    ops: bool = False,
    quick: bool = False,
    experiments: bool = False,
    arms: Sequence[str] = (),
    python: str | Path | None = None,
    in_place: bool = False,
    module: bool = False,
    against: str | Path | None = None,
    label: str = "",
    say: Say | None = None,
) -> Diagnosis:
    """Say why a training loop is slow, with evidence, and what to do about it.

        diagnosis = hotloop.diagnose("train.py", ["--seed", "1"], seconds=10)
        for finding in diagnosis.findings:
            print(f"{finding.expected_gain:.1f}x", finding.title, finding.where)
        hotloop.diagnose(hotloop.preset("snake-dqn"), quick=True).write(html="report.html")

    `target` is a script, run as it is with its own `arguments`; a preset or TOML file; or settings, called `label` in
    the report. The loop is watched for `seconds` (12 for scripts, 10 for ours). `quick`: phases only, no experiments
    and no counting pass. `against` names an older report (`Diagnosis.write(save=...)`). `say` is told what happens.

    For scripts: skip the first env steps `after` which it is told (by default the first few updates); stop after
    `env_steps`; go on for `watch_seconds` at low cost, for what comes late; `env_classes` step
    the env where it is not found by itself; `ops` adds PyTorch's operators; `experiments` tries changes on the running
    program, `arms` (`"envs=--num-envs 32"`) further arguments in processes interleaved; `python` is the interpreter or
    environment that runs it (by default the active virtual or Conda environment's, else our own). It is run up to four
    times, and more often for experiments: first in its own folder, then in a copy of it, unless `in_place`. With
    `module` the target is the dotted name of one below the current folder (`"pkg.train"`), run as `python -m` does.
    """
    require_above_zero(seconds=seconds, env_steps=env_steps)
    old = None if against is None else _read_report(Path(against))
    for_scripts: dict[str, Any] = {"env_steps": env_steps, "after": after, "env_classes": tuple(env_classes)}
    for_scripts |= {"watch_seconds": watch_seconds, "ops": ops, "in_place": in_place}
    for_scripts |= {"experiments": experiments, "arms": tuple(arms)}
    if module:
        target, for_scripts["module"] = module_file(str(target)), str(target)
    if quick and (experiments or arms):
        raise SettingsError("`--quick` is one run, and experiments need more", "leave out one of the two")
    tell = say or (lambda text: None)
    if is_script(target):
        trace = _record_script(Path(str(target)), arguments, tell, seconds, quick, python, for_scripts)
    else:
        words = "--env-steps --after --env --watch-seconds --ops --in-place --experiments --arm --python"
        for flag, given in zip(words.split(), (*for_scripts.values(), python), strict=True):
            if given:
                raise SettingsError(f"`{flag}` is for scripts", "leave it out for a preset")
        trace = _record_settings(target, label, tell, seconds, quick)
    return _judged(trace, old)


def module_file(name: str) -> Path:
    """Of a dotted name, below the current folder: the module's file, or the package's `__main__.py`."""
    stem = Path(*name.split("."))
    found = [path for path in (stem.with_suffix(".py"), stem / "__main__.py") if path.is_file()]
    if not found:
        raise SettingsError(
            f"there is no module {name} below this folder",
            "start from the folder that holds its package; for an installed one, write a script of two lines that "
            "imports and calls it",
        )
    return found[0]


def is_script(target: object) -> bool:
    """Whether a target of `diagnose` is a Python file, and no preset, TOML file or settings."""
    return isinstance(target, str | Path) and str(target).endswith(".py")


def require_above_zero(**options: float | None) -> None:
    """Refuse a time, count or ratio that is not above 0; None is left out."""
    for name, value in options.items():
        if value is not None and not value > 0:
            raise SettingsError(
                f"`--{name.replace('_', '-')}` is {value}, expected above 0", "`hotloop doctor --help` explains"
            )


def require_folders(*files: Path | None) -> None:
    """Refuse a file in a folder that is not there: before minutes of recording, not after."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise SettingsError(f"there is no folder {file.parent} to write {file.name} to", "make it first")


def _read_report(path: Path) -> dict[str, Any]:
    """Before anything is run: a wrong file name must not cost a minute."""
    from hotloop.doctor.views.against import require_report

    try:
        text = path.read_text()
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}", "`--save FILE` writes such a report") from None
    return require_report(text, str(path))


def _record_script(
    path: Path,
    arguments: Sequence[str],
    say: Say,
    seconds: float | None,
    quick: bool,
    python: str | Path | None,
    more: dict[str, Any],
) -> Trace:
    if not path.is_file():
        raise SettingsError(f"there is no script {path}", "give a Python file, or a preset's name without `.py`")
    from hotloop.doctor.script import ScriptPlan, choose_interpreter, record_script
    from hotloop.doctor.script.arms import parse_arm

    for arm in more["arms"]:
        parse_arm(arm)
    interpreter = choose_interpreter(python)
    say(f"{path.name} is run by {interpreter}")
    plan = ScriptPlan(
        seconds=seconds or ScriptPlan.seconds,
        counting=not quick,
        threads=not quick,
        python=interpreter.path,
        **more,
    )
    return record_script(path, arguments, plan, say)


def _record_settings(target: Any, label: str, say: Say, seconds: float | None, quick: bool) -> Trace:
    """Of a preset or file by its name, or of settings; whoever hands over settings has chosen the env that they run."""
    if isinstance(target, str | Path):
        settings, label = _settings_of(str(target)), label or Path(target).stem
    else:
        settings, label = target, label or f"{target.env.id}-{target.algorithm}"
    from hotloop.diagnosis.preset import PresetPlan, record_preset
    from hotloop.presets.env_names import with_whole_path

    plan = PresetPlan(seconds=seconds or PresetPlan.seconds, experiments=not quick)
    return record_preset(replace(with_whole_path(settings), trust=True), label, plan, say)


def _settings_of(name: str) -> RunSettings:
    """Of a preset or TOML file; an env that is somebody's code is run only where settings are handed over."""
    from hotloop.core.settings import build
    from hotloop.presets.env_names import refuse_untrusted
    from hotloop.presets.named import settings_tree
    from hotloop.presets.registry import class_of

    tree = settings_tree(name)
    settings: RunSettings = build(class_of(tree), tree, source=name)
    refuse_untrusted(settings.env.id)
    return settings


def _judged(trace: Trace, old: dict[str, Any] | None) -> Diagnosis:
    from hotloop.doctor.finding import findings
    from hotloop.doctor.rules import load_rules
    from hotloop.doctor.views.against import compare_reports

    return Diagnosis(trace, findings(trace, load_rules()), None if old is None else compare_reports(old, trace))
