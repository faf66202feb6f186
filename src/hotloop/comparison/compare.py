"""`hotloop.compare`: from arms to trained runs, a verdict, and the files that hold it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.comparison import jobs as pool
from hotloop.comparison.arms import parse_arms
from hotloop.comparison.jobs import DEFAULT_ROOT, TrainingJob, default_folder, most_at_once, plan_jobs
from hotloop.comparison.load import LoadMeter, load_of
from hotloop.comparison.page import as_html
from hotloop.comparison.progress import CompareProgress
from hotloop.comparison.report import (
    CURVES,
    Comparison,
    Question,
    chart_of,
    collect,
    is_foreign,
    parse_target,
    write_files,
    write_part,
    write_table,
)
from hotloop.comparison.statistics import looks_at
from hotloop.comparison.verdict import MEASURES
from hotloop.core.errors import SettingsError
from hotloop.core.overrides import Overrides, as_argv
from hotloop.core.places import Place
from hotloop.core.terminal import printable
from hotloop.doctor.facts import usable_cores
from hotloop.render.chart import as_pixels
from hotloop.render.picture import can_paint, png_bytes
from hotloop.runs.files import make_folder, write_file
from hotloop.scale.places import LOCAL, Places, require_place

if TYPE_CHECKING:
    from rich.console import Console


def compare(
    *arms: str | Path,
    seeds: int | None = None,
    overrides: Overrides = (),
    measure: str = "mean_return",
    scores: str | None = None,
    threshold: float | None = None,
    margin: float | None = None,
    workers: int = 0,
    on: str = "local",
    trust: bool = False,
    mixed: bool = False,
    until_sure: bool = False,
    out: str | Path | None = None,
    html: str | Path | None = None,
    markdown: str | None = None,
    command: str = "",
    console: Console | None = None,
) -> Comparison:
    """Train arms x seeds side by side, and say what a change did to learning and to speed.

        found = hotloop.compare("cartpole-dqn", "cartpole-dqn --double false", seeds=8, threshold=475)
        for contrast in found.contrasts:  # each arm against the first
            print(contrast.arm, contrast.learning, contrast.speed)
        found.as_data()  # what `hotloop compare --json` prints

    An arm is a preset or a TOML file with its own overrides after it, a folder of finished runs, or a command with
    `{seed}` among its arguments (`"old=train.py --seed {seed}"`); `LABEL=` may stand in front. `overrides` are those of
    all arms, as `hotloop.preset` takes them or as words. Finished runs of the same settings and seed are reused, so the
    same call continues what was stopped. Tables, curves and `compare.json` are written to `found.folder`; `html` and
    `markdown` (`FILE.md#NAME`) name pages to write besides. A run that fails is one of `found.failed`. `until_sure`
    adds seeds, `seeds` at most, until every verdict is decided. `workers` runs are trained at once, `on` this machine
    (`local`), a Ray cluster of its own (`ray`) or one that is there (`HOST:PORT`); `trust` sends your own code along,
    `mixed` takes machines that round in another way. `console`, one of Rich's, shows how it is getting on.
    """
    texts = [shlex.quote(str(arm)) if isinstance(arm, Path) else arm for arm in arms]
    _check(seeds, workers, threshold, margin, markdown)
    require_place(on)
    common = as_argv(overrides)
    parsed = parse_arms(texts, common, scores, trust)
    if seeds is None and not all(arm.runs for arm in parsed):
        raise SettingsError("`--seeds N` is missing: how many runs to train of each arm", "8 of each show most of it")
    if until_sure and (seeds is None or any(arm.runs for arm in parsed)):
        raise SettingsError(
            "`--until-sure` adds seeds, which finished runs do not have",
            "give `--seeds N`, the most to train of each arm",
        )
    folder = Path(out) if out else default_folder(parsed)
    counts = looks_at(seeds or 0, MEASURES) if until_sure else [seeds or 0]
    cores, foreign = usable_cores(), any(map(is_foreign, parsed))  # a script may use all cores by itself
    question = Question(
        command=command
        or _command(
            texts, common, seeds=seeds, threshold=threshold, margin=margin, measure=measure, scores=scores, out=out
        ),
        measure=measure,
        threshold=threshold,
        seeds=seeds or max(len(arm.runs) for arm in parsed),
        workers=workers or (1 if foreign else most_at_once(cores, *[arm.settings for arm in parsed])),
        cores=cores,
        margin=margin,
        looks=len(counts),
        on=on,
    )
    meter = LoadMeter()
    places = Places(on, workers, trust=trust, mixed=mixed, say=_sayer(console))
    with _stopped_in(folder), places:
        for count in counts:
            jobs = plan_jobs(parsed, count, folder, reuse=None if out else DEFAULT_ROOT)
            asked = replace(question, seeds=count or question.seeds, workers=min(question.workers, len(jobs)))
            place = places.open(asked.workers, needed=any(job.status == "waiting" for job in jobs))
            asked = replace(asked, workers=min(place.workers, len(jobs)), differing=place.differing)
            _train(jobs, place, asked, folder, console, meter)
            comparison = collect(asked, jobs, folder, load_of(meter.looks) if on == LOCAL else None)
            if comparison.decided:
                break
    _write(comparison, html, markdown)
    return comparison


def _check(
    seeds: int | None, workers: int, threshold: float | None, margin: float | None, markdown: str | None
) -> None:
    for name, value, least in (("seeds", seeds, 1), ("workers", workers, 0)):
        if value is not None and value < least:
            raise SettingsError(f"`--{name}` is {value}, expected at least 1")
    if threshold is not None and not math.isfinite(threshold):
        raise SettingsError(f"`--threshold` is {threshold}, expected a finite number")
    if margin is not None and not 0 < margin < math.inf:
        raise SettingsError(f"`--margin` is {margin}, expected a number above 0")
    if markdown is not None:
        parse_target(markdown)


def _command(texts: Sequence[str], common: Sequence[str], **options: object) -> str:
    """The line that does the same."""
    words = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return shlex.join(["hotloop", "compare", *texts, *words, *(["--", *common] if common else [])])


def _train(
    jobs: Sequence[TrainingJob],
    place: Place,
    question: Question,
    folder: Path,
    console: Console | None,
    meter: LoadMeter,
) -> None:
    if console is None:
        pool.run_jobs(jobs, place, meter.watch)
        return
    there = sum(job.reused for job in jobs)
    where = f" on {question.on}" if place.elsewhere else ""
    told = f"{len(jobs)} runs in {folder}, {question.workers} at once{where}"
    told += f"; {there} are finished already" if there else ""
    console.print(told, style="dim", soft_wrap=True)
    with CompareProgress(jobs, question.measure, console) as progress:

        def watch() -> None:
            progress.watch()
            meter.watch()

        pool.run_jobs(jobs, place, watch)


@contextmanager
def _stopped_in(folder: Path) -> Iterator[None]:
    """Ctrl-C says what is left."""
    try:
        yield
    except KeyboardInterrupt:
        stopped = f"stopped; what was trained is in {folder}, and the same command continues it"
        raise KeyboardInterrupt(stopped) from None


def _sayer(console: Console | None) -> Callable[[str], None]:
    """Text is text, whatever brackets a machine's name or error has."""
    return lambda text: console.print(printable(text), style="dim", soft_wrap=True, markup=False) if console else None


def _write(comparison: Comparison, html: str | Path | None, markdown: str | None) -> None:
    """Data, table and curves into the comparison's folder; its pages where they were asked for."""
    make_folder(comparison.folder)
    write_files(comparison, comparison.folder)
    write_table(comparison, comparison.folder)
    for against, name in CURVES.items() if can_paint() else ():
        write_file(comparison.folder / f"{name}.png", png_bytes(as_pixels(chart_of(comparison, against))))
    if html:
        make_folder(Path(html).parent)
        write_file(Path(html), as_html(comparison).encode())
    if markdown:
        write_part(comparison, *parse_target(markdown))
