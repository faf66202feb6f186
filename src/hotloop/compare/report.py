"""What a comparison leaves in its folder: compare.json, table.md and two curves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.compare.chart import Frame, draw_chart
from hotloop.compare.curves import Against, learning_curve
from hotloop.compare.jobs import Job
from hotloop.compare.measures import RunMeasures, read_measures
from hotloop.compare.summary import ArmSummary
from hotloop.compare.table import as_markdown
from hotloop.compare.ticks import time_unit
from hotloop.core.errors import RunError
from hotloop.runs.files import write_file
from hotloop.runs.plain import finite_or_null
from hotloop.runs.schema import SCHEMA, hotloop_version

CURVES: dict[Against, str] = {"env_steps": "curve-env-steps.svg", "seconds": "curve-seconds.svg"}
NOT_COUNTED = "start-up, compilation, evaluation and checkpoints not counted"


@dataclass(frozen=True)
class Question:
    """What was asked, as far as it shows in the answer."""

    command: str
    measure: str
    threshold: float | None
    seeds: int
    workers: int
    cores: int


@dataclass(frozen=True)
class Comparison:
    question: Question
    jobs: Sequence[Job]
    summaries: Sequence[ArmSummary]

    @property
    def failed(self) -> list[Job]:
        return [job for job in self.jobs if job.status == "failed"]

    def as_data(self) -> dict[str, Any]:
        question = self.question
        return {
            "command": question.command,
            "hotloop": hotloop_version(),
            "measure": question.measure,
            "threshold": question.threshold,
            "seeds": question.seeds,
            "workers": question.workers,
            "cores": question.cores,
            "reused": sum(job.reused for job in self.jobs),
            "arms": [summary.as_data() for summary in self.summaries],
            "failed": [{"arm": job.arm.label, "seed": job.seed, "error": job.error} for job in self.failed],
        }


def collect(question: Question, jobs: Sequence[Job]) -> Comparison:
    """Read what the jobs left. A run that cannot be read is a failed one."""
    arms = list({job.arm.label: job.arm for job in jobs}.values())
    runs: dict[str, list[RunMeasures]] = {arm.label: [] for arm in arms}
    for job in jobs:
        if job.status == "finished":
            try:
                runs[job.arm.label].append(read_measures(job.path, question.measure))
            except RunError as error:
                job.status, job.error = "failed", str(error)
    return Comparison(question, jobs, [ArmSummary(arm, runs[arm.label], question.threshold) for arm in arms])


def write_files(comparison: Comparison, folder: Path) -> None:
    data = {"schema": SCHEMA, **finite_or_null(comparison.as_data())}
    write_file(folder / "compare.json", json.dumps(data, indent=2, allow_nan=False).encode() + b"\n")
    for against, name in CURVES.items():
        write_file(folder / name, draw(comparison, against).encode())
    write_file(folder / "table.md", page(comparison).encode())


def draw(comparison: Comparison, against: Against) -> str:
    question = comparison.question
    found = [learning_curve(summary.label, summary.runs, against) for summary in comparison.summaries]
    curves = [curve for curve in found if curve is not None]
    name = question.measure.replace("_", " ")
    title, subtitle = f"{name.capitalize()} against ", _over_seeds(comparison.summaries)
    if against == "env_steps":
        return draw_chart(curves, Frame(title + "env steps", subtitle, "env steps", question.threshold))
    unit, scale = time_unit(max((float(curve.x[-1]) for curve in curves), default=0.0))
    x_label = f"{unit} of training"
    frame = Frame(title + "training time", subtitle, x_label, question.threshold, NOT_COUNTED, scale)
    return draw_chart(curves, frame)


def _over_seeds(summaries: Sequence[ArmSummary]) -> str:
    counts = sorted({len(summary.runs) for summary in summaries if summary.runs})
    if counts in ([], [1]):
        return "one seed"
    return (
        f"mean of {' to '.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} seeds, band: 95 % bootstrap interval"
    )


def page(comparison: Comparison) -> str:
    """The table, what made it, and how it is to be read."""
    question = comparison.question
    parts = [
        as_markdown(comparison.summaries, question.measure, question.threshold),
        f"```\n{question.command}\n```\n",
        notes(comparison) + "\n",
        *[f"![{question.measure} against {name}]({file})\n" for name, file in _PICTURES.items()],
    ]
    if comparison.failed:
        parts.insert(1, "".join(f"- failed: {job.name}\n" for job in comparison.failed))
    return "\n".join(parts)


_PICTURES = {"env steps": CURVES["env_steps"], "training time": CURVES["seconds"]}


def notes(comparison: Comparison) -> str:
    question, reused = comparison.question, sum(job.reused for job in comparison.jobs)
    sentences = [
        f"{question.measure} of the best weights of each seed on fresh episodes: mean with a t interval over seeds, "
        "interquartile mean with a bootstrap interval.",
        f"Rates and seconds as measured with {question.workers} runs at once on {question.cores} cores"
        + (f" ({reused} of {len(comparison.jobs)} runs were there before)." if reused else "."),
        f"Training s: {NOT_COUNTED}; all s: everything.",
    ]
    if question.threshold is not None:
        sentences.append(
            f"To {question.threshold:g}: median over seeds of the first periodic evaluation that got there; "
            "- where half of them or more never did."
        )
    if 1 < question.seeds < 6:
        sentences.append("With fewer than 6 seeds the bootstrap interval is hardly more than their range.")
    return "\n".join(sentences)
