"""From finished jobs to one comparison: as data, as lines for a terminal, as Markdown (`table.md`, or a part of a page
that people write around), and the files it leaves in its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from hotloop.comparison.arms import Arm
from hotloop.comparison.jobs import TrainingJob
from hotloop.comparison.load import Load, cores_in_text
from hotloop.comparison.measures import Against, RunMeasures, learning_curve, read_measures
from hotloop.comparison.scores import read_scores, read_scores_of_command
from hotloop.comparison.statistics import LEVEL
from hotloop.comparison.summary import (
    ArmSummary,
    common_span,
    default_margin,
    default_threshold,
    untrained_score,
)
from hotloop.comparison.training_returns import WINDOW, read_script_run, read_training_of
from hotloop.comparison.verdict import Contrast, contrasts
from hotloop.comparison.verdict_text import arm_rows, details, pair_rows, sentence
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.program import versions
from hotloop.core.settings import flatten
from hotloop.render.chart import Chart, Frame, as_svg, lay_out
from hotloop.render.numbers import time_unit
from hotloop.render.picture import can_paint
from hotloop.render.tables import Rows, as_markdown, plain
from hotloop.runs.files import SCHEMA, explained, finite_or_null, make_folder, write_file
from hotloop.scale.specs import learning_settings
from hotloop.scale.work import is_script_run

CURVES: Mapping[Against, str] = {"env_steps": "curve-env-steps", "seconds": "curve-seconds"}
NOT_COUNTED = "start-up, compilation, evaluation and checkpoints not counted"


@dataclass(frozen=True)
class Question:
    """What was asked, as far as it shows in the answer; None: by the rule."""

    command: str
    measure: str
    threshold: float | None
    seeds: int
    workers: int
    cores: int
    margin: float | None = None
    looks: int = 1  # how often the verdict may be asked for while seeds are added
    on: str = "local"  # where runs were trained that were not there
    differing: Mapping[str, Sequence[str]] = field(default_factory=dict)  # machines that round in another way


@dataclass(frozen=True)
class Comparison:
    question: Question
    jobs: Sequence[TrainingJob]
    summaries: Sequence[ArmSummary]
    margin: float | None = None
    folder: Path = Path()
    untrained: float | None = None
    """What play before any update scored; a threshold at or below it times nothing."""
    load: Load | None = None
    """Of the machine while runs were trained; None where all were there before."""

    @property
    def failed(self) -> list[TrainingJob]:
        return [job for job in self.jobs if job.status == "failed"]

    @property
    def threshold(self) -> float | None:
        return self.summaries[0].threshold

    @cached_property
    def contrasts(self) -> list[Contrast]:
        return contrasts(self.summaries, self.margin, looks=self.question.looks)

    @property
    def by_training(self) -> bool:
        """Whether arms are judged by training episodes: where one is a script, whose evaluations we do not know."""
        return any(is_foreign(summary.arm) for summary in self.summaries)

    @property
    def machines(self) -> dict[str, list[str]]:
        """Of a cluster: which runs each of its machines has finished."""
        found: dict[str, list[str]] = {}
        for job in self.jobs:
            if job.where and job.status == "finished":
                found.setdefault(job.where, []).append(job.name)
        return found

    @property
    def decided(self) -> bool:
        """Whether more seeds would answer nothing: each arm was shown to be better, worse or as good."""
        return all(contrast.learning not in ("unseen", "too few") for contrast in self.contrasts) or bool(self.failed)

    @cached_property
    def differing_settings(self) -> dict[str, list[Any]]:
        """For each setting in which arms differ its value in each of them; None where an arm has no such setting."""
        flat = [flatten(learning_settings(summary.arm.settings)) for summary in self.summaries]
        names = list(dict.fromkeys(name for tree in flat for name in tree))
        rows = {name: [tree.get(name) for tree in flat] for name in names}
        return {name: values for name, values in rows.items() if any(value != values[0] for value in values)}

    def as_data(self) -> dict[str, Any]:
        """What `compare.json` holds; numbers that are not finite are null. But for `circumstances` it is the same, byte
        by byte, wherever the runs were trained."""
        question = self.question
        data = {
            "measure": question.measure,
            "threshold": self.threshold,
            "threshold_given": question.threshold is not None,
            "margin": self.margin,
            "margin_given": question.margin is not None,
            "seeds": question.seeds,
            "looks": question.looks,
            "arms": [summary.as_data() for summary in self.summaries],
            "contrasts": [contrast.as_data() for contrast in self.contrasts],
            "differing_settings": self.differing_settings,
            "failed": [{"arm": job.arm.label, "seed": job.seed} for job in self.failed],
            "circumstances": self.circumstances(),
        }
        return dict(finite_or_null(data))

    def circumstances(self) -> dict[str, Any]:
        """Command, clock, machine, folders and versions, and what follows from the clock: speed, and the verdicts in
        words, which tell of it."""
        return {
            "command": self.question.command,
            "folder": str(self.folder),
            "workers": self.question.workers,
            "cores": self.question.cores,
            "on": self.question.on,
            "machines": self.machines,
            "differing_machines": {name: list(words) for name, words in self.question.differing.items()},
            "load": self.load and self.load.as_data(),
            "reused": sum(job.reused for job in self.jobs),
            "versions": versions(),
            "arms": [summary.circumstances() for summary in self.summaries],
            "contrasts": [
                contrast.circumstances() | {"verdict": sentence(contrast), "details": details(contrast, self.threshold)}
                for contrast in self.contrasts
            ],
            "failed": [{"arm": job.arm.label, "seed": job.seed, "error": job.error} for job in self.failed],
        }


def collect(
    question: Question, jobs: Sequence[TrainingJob], folder: Path = Path(), load: Load | None = None
) -> Comparison:
    """Read what the jobs left. A run that cannot be read is a failed one."""
    arms = list({job.arm.label: job.arm for job in jobs}.values())
    runs: dict[str, list[RunMeasures]] = {arm.label: [] for arm in arms}
    by_training = any(is_foreign(arm) for arm in arms)
    for job in jobs:
        if job.status == "finished":
            try:
                runs[job.arm.label].append(_measured(job, question.measure, by_training))
            except RunError as error:
                job.status, job.error = "failed", str(error)
    summaries = [ArmSummary(arm, runs[arm.label], None, common_span([runs[arm.label]])) for arm in arms]
    threshold = default_threshold(summaries[0]) if question.threshold is None else question.threshold
    untrained = untrained_score(summaries)
    if threshold is not None and (untrained is None or threshold > untrained):
        summaries = [replace(summary, threshold=threshold) for summary in summaries]
    margin = default_margin(summaries[0]) if question.margin is None else question.margin
    return Comparison(question, jobs, summaries, margin, folder, untrained, load)


def is_foreign(arm: Arm) -> bool:
    """Whether the runs are another program's."""
    return arm.script is not None or arm.scores is not None or any(map(is_script_run, arm.runs))


def _measured(job: TrainingJob, measure: str, by_training: bool) -> RunMeasures:
    """Where one arm is a script, all are judged by what they have in common: the episodes of their training."""
    if job.arm.scores is not None:
        by_command = job.arm.script is not None
        return (
            read_scores_of_command(job.arm.scores, job.path)
            if by_command
            else read_scores(job.arm.scores, job.path, job.seed)
        )
    if is_script_run(job.path):
        return read_script_run(job.path)
    return read_training_of(job.path, measure) if by_training else read_measures(job.path, measure)


def write_files(comparison: Comparison, folder: Path) -> None:
    """`compare.json` and both curves as SVG; the page in words is `write_table`'s."""
    data = {"schema": SCHEMA, **comparison.as_data()}
    write_file(folder / "compare.json", json.dumps(data, indent=2, allow_nan=False).encode() + b"\n")
    for against, name in CURVES.items():
        write_file(folder / f"{name}.svg", as_svg(chart_of(comparison, against)).encode())


def chart_of(comparison: Comparison, against: Against) -> Chart:
    question = comparison.question
    found = [learning_curve(summary.label, summary.runs, against) for summary in comparison.summaries]
    curves = [curve for curve in found if curve is not None]
    name = question.measure.replace("_", " ")
    title, subtitle = f"{name.capitalize()} against ", _over_seeds(comparison.summaries)
    if against == "env_steps":
        return lay_out(curves, Frame(title + "env steps", subtitle, "env steps", comparison.threshold))
    unit, scale = time_unit(max((float(curve.x[-1]) for curve in curves), default=0.0))
    x_label = f"{unit} of training"
    frame = Frame(title + "training time", subtitle, x_label, comparison.threshold, NOT_COUNTED, scale)
    return lay_out(curves, frame)


def _over_seeds(summaries: Sequence[ArmSummary]) -> str:
    counts = sorted({len(summary.runs) for summary in summaries if summary.runs})
    if counts in ([], [1]):
        return "one seed"
    return (
        f"mean of {' to '.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} seeds, band: 95 % bootstrap interval"
    )


def notes(comparison: Comparison) -> list[str]:
    """How the figures came about, a sentence each."""
    question, reused = comparison.question, sum(job.reused for job in comparison.jobs)
    at_once = "one run at a time" if question.workers == 1 else f"{question.workers} runs at once"
    if comparison.by_training:
        judged = f"{question.measure} of the last {WINDOW} training episodes, at the end of each run"
        clock = "from the first env step on, without evaluation, start-up and compilation; all s: the whole process"
    else:
        judged, clock = (
            f"{question.measure} of the best weights of each seed on fresh episodes",
            f"{NOT_COUNTED}; all s: everything",
        )
    sentences = [
        f"{judged}, and over the run (area under the curve against env steps, divided by its width): "
        "interquartile means with bootstrap intervals.",
        f"Rates and seconds as measured with {at_once} on "
        + (cores_in_text(question.cores) if question.on == "local" else f"a cluster ({question.on})")
        + (f" ({reused} of {len(comparison.jobs)} runs were there before)." if reused else "."),
        f"Training s: {clock}.",
    ]
    arms = [summary.arm for summary in comparison.summaries]
    for arm, other in combinations((arm for arm in arms if not arm.runs), 2):
        if arm.settings == other.settings:
            sentences.append(
                f"{arm.label} and {other.label} have the same settings: they are one program under two names."
            )
    if question.differing:
        ran = [
            f"{', '.join(runs)} on {name} ({', '.join(question.differing.get(name, ['like this one']))})"
            for name, runs in comparison.machines.items()
        ]
        sentences.append(f"Machines that round in another way took part: {'; '.join(ran)}.")
    if comparison.load is not None:
        sentences.insert(2, comparison.load.sentence(question.cores, len(comparison.jobs) - reused, reused))
    for arm in arms:
        if arm.scores is not None:
            sentences.append(
                f"Scores of {arm.label}: `{arm.scores.column}` of {arm.scores.path}, the mean of {WINDOW} rows "
                "where a row is an episode, else of a tenth of the rows, at the env steps and seconds that it tells."
            )
    if comparison.threshold is not None:
        rule = "" if question.threshold is not None else " (nine tenths of what the first arm learned)"
        sentences.append(
            f"To {comparison.threshold:g}{rule}: median over seeds of the first periodic evaluation that got there; "
            "- where half of them or more never did."
        )
    elif question.threshold is not None and comparison.untrained is not None:
        sentences.append(
            f"No time to {question.threshold:g} is told: play before any update scores {comparison.untrained:.4g} "
            "already."
        )
    if len(comparison.contrasts) > 1:
        sentences.append(
            "Each arm is judged against the first as if the others were not there; of "
            f"{len(comparison.contrasts)} arms that are no different, chance calls one better or worse in up to "
            f"{100 * (1 - LEVEL) * len(comparison.contrasts):.0f} % of such comparisons."
        )
    if comparison.contrasts and comparison.margin is not None:
        rule = (
            "as given" if question.margin is not None else "a twentieth of what the first arm learned, or of its score"
        )
        sentences.append(f"As good: within ±{comparison.margin:g} ({rule}). Ratios above 1 are in the arm's favor.")
    if question.looks > 1:
        sentences.append(
            f"Seeds were added until the verdict was decided, with {question.looks} looks at most: each has "
            f"1/{question.looks} of the 5 %, so that all together keep to it."
        )
    if 1 < min(len(summary.runs) for summary in comparison.summaries) < 6:
        sentences.append("With fewer than 6 seeds the bootstrap interval is hardly more than their range.")
    return sentences


def tables(comparison: Comparison) -> list[Rows]:
    """The arms; and where there are several, each against the first."""
    arms = arm_rows(comparison.summaries, comparison.question.measure, comparison.threshold)
    return [rows for rows in (arms, pair_rows(comparison.contrasts, comparison.threshold)) if rows]


def conclusions(comparison: Comparison) -> list[str]:
    """The verdicts, how the figures came about, what failed, and where everything lies: lines for a terminal."""
    verdicts = [
        "\n  ".join([sentence(contrast), *details(contrast, comparison.threshold)]) + "\n"
        for contrast in comparison.contrasts
    ]
    failed = [f"failed: {job.name}: {job.error}" for job in comparison.failed]
    kinds = ".svg and .png" if can_paint() else ".svg (.png takes Pillow, which is not installed)"
    files = f"\n{comparison.folder}: table.md, compare.json, curve-env-steps and curve-seconds as {kinds}"
    return [*verdicts, *notes(comparison), *failed, files]


_AGAINST: Mapping[Against, str] = {"env_steps": "env steps", "seconds": "training time"}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def as_page(comparison: Comparison, pictures: Mapping[Against, str]) -> str:
    """Tables, verdicts, both figures with the command under each, and how all that is to be read."""
    question, threshold = comparison.question, comparison.threshold
    verdicts = [
        f"- **{plain(sentence(contrast))}** " + plain(" ".join(details(contrast, threshold))) + "\n"
        for contrast in comparison.contrasts
    ]
    parts = [
        *map(as_markdown, tables(comparison)),
        "".join(verdicts),
        "".join(f"- failed: {plain(job.name)}\n" for job in comparison.failed),
        *[
            f"![{question.measure} against {name}]({pictures[against]})\n\n```\n{question.command}\n```\n"
            for against, name in _AGAINST.items()
        ],
        "\n".join(notes(comparison)) + "\n",
    ]
    return "\n".join(part for part in parts if part)


def write_table(comparison: Comparison, folder: Path) -> None:
    page = as_page(comparison, {against: f"{name}.svg" for against, name in CURVES.items()})
    write_file(folder / "table.md", page.encode())


def parse_target(text: str) -> tuple[Path, str]:
    """`FILE.md[#NAME]`; the name is the file's where none is given."""
    file, _, name = text.partition("#")
    name = name or Path(file).stem
    if not file.endswith(".md") or not _NAME.fullmatch(name):
        raise SettingsError(f"`--markdown` is `{text}`, expected FILE.md or FILE.md#NAME, NAME of letters and digits")
    return Path(file), name


def write_part(comparison: Comparison, file: Path, name: str) -> None:
    """Put the page between two marks in `file`, in the place of what stood there, or at its end; figures lie beside."""
    folder = file.parent
    make_folder(folder)
    pictures: dict[Against, str] = {against: f"{name}-{against.replace('_', '-')}.svg" for against in CURVES}
    for against, picture in pictures.items():
        write_file(folder / picture, as_svg(chart_of(comparison, against)).encode())
    with explained("read", file):
        before = file.read_text() if file.exists() else f"# {name}\n"
    write_file(file, with_part(before, name, as_page(comparison, pictures)).encode())


def with_part(before: str, name: str, content: str) -> str:
    start, end = f"<!-- compare {name} -->", f"<!-- end of compare {name} -->"
    part = f"{start}\n\n{content}\n{end}"
    if start not in before:
        return f"{before.rstrip()}\n\n{part}\n"
    head, _, rest = before.partition(start)
    _, found, tail = rest.partition(end)
    if not found:
        raise SettingsError(f"`{start}` has no `{end}` after it", "put that line back where the part ended")
    return head + part + tail
