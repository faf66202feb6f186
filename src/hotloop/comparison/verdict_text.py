"""A verdict in words: a headline, and the sentences that support it. What was shown to be equal and what was merely not
seen to differ never share a word. And the rows of the tables: one per arm, and one per pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotloop.comparison.statistics import LEVEL, Estimate, least_seeds, seeds_for_shares
from hotloop.comparison.summary import ArmSummary
from hotloop.comparison.verdict import Contrast, MeasureContrast
from hotloop.render.numbers import number_or_never, signed, tick_label
from hotloop.render.tables import Cells, Rows


def with_interval(estimate: Estimate) -> str:
    if estimate.value is None or estimate.interval is None:
        return number_or_never(estimate.value)
    return f"{number_or_never(estimate.value)} {between(estimate)}"


def between(estimate: Estimate) -> str:
    assert estimate.interval is not None
    return f"[{number_or_never(float(estimate.interval.low))}, {number_or_never(float(estimate.interval.high))}]"


def percent(estimate: Estimate) -> str:
    assert estimate.value is not None
    if estimate.interval is None:
        return f"{100 * estimate.value:.0f} %"
    return f"{100 * estimate.value:.0f} % [{100 * estimate.interval.low:.0f}, {100 * estimate.interval.high:.0f}]"


def times(ratio: Estimate) -> str:
    """2.4x [1.9, 3.0]; `never` and `only it` where one of the two does not get there; an end without limit is `any`."""
    if ratio.value is None:
        return "-"
    if ratio.value == 0 or not math.isfinite(ratio.value):
        return "never" if ratio.value == 0 else "only it"
    if ratio.interval is None:
        return f"{_factor(ratio.value)}x"
    return f"{_factor(ratio.value)}x [{_factor(ratio.interval.low)}, {_factor(ratio.interval.high)}]"


def _factor(value: float) -> str:
    if not math.isfinite(value):
        return "any"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


NAMES = {"final score": "final score", "area": "mean score over the run"}
_JOIN = {
    ("faster", "as good"): "faster and ",
    ("faster", "better"): "faster and ",
    ("faster", "worse"): "faster but ",
    ("slower", "as good"): "slower, and ",
    ("slower", "better"): "slower but ",
    ("slower", "worse"): "slower and ",
    ("as fast", "as good"): "as fast and ",
    ("as fast", "better"): "as fast and ",
    ("as fast", "worse"): "as fast but ",
}
"""Faster and slower are env steps per second, and nothing else."""


def headline(contrast: Contrast) -> str:
    """`faster but worse by 2.0 in final score; 1 of 8 seeds lost (0 of 8); later at 450`, without names."""
    said = _learning(contrast)
    if contrast.speed == "unclear":
        said += "; no difference in speed seen"
    elif contrast.speed != "unknown":
        said = _JOIN.get((contrast.speed, contrast.learning), f"{contrast.speed}; ") + said
    return "; ".join([said, *_lost_and_arrival(contrast)])


def _lost_and_arrival(contrast: Contrast) -> list[str]:
    said = []
    if any(contrast.lost):
        said.append(f"{_lost(contrast, 1)} lost ({_lost(contrast, 0)} of {contrast.reference})")
    if contrast.threshold is not None and contrast.arrival in ("sooner", "later"):
        never = contrast.seconds_ratio.value == 0
        said.append(f"{'never' if never else contrast.arrival} at {contrast.threshold:g}")
    return said


def _lost(contrast: Contrast, arm: int) -> str:
    return f"{contrast.lost[arm]} of {contrast.seeds[arm]} seeds"


def _learning(contrast: Contrast) -> str:
    if contrast.learning == "as good":
        return "as good"
    if contrast.learning == "too few":
        n, m = contrast.seeds
        return f"too few seeds to judge learning ({n} and {m}; {least_seeds(contrast.tests)} of each are the least)"
    if contrast.learning == "unseen":
        open_ones = [measure for measure in contrast.measures if measure.finding == "unseen"]
        if not open_ones:
            return (
                "alike but for lost seeds, which may be chance or not "
                f"({seeds_for_shares(contrast.lost, contrast.seeds):,} of each would show it)"
            )
        most = max(open_ones, key=lambda measure: measure.seeds_needed)
        return (
            f"no difference in learning seen ({most.seeds_needed:,} seeds of each would be needed to see "
            f"a difference of {most.margin:g} in {NAMES[most.name]})"
        )
    worse = [_by(measure) for measure in contrast.measures if measure.finding == "worse"]
    better = [_by(measure) for measure in contrast.measures if measure.finding == "better"]
    return " but ".join([f"{word} by {_and(found)}" for word, found in (("better", better), ("worse", worse)) if found])


def _by(measure: MeasureContrast) -> str:
    assert measure.difference.value is not None
    return f"{number_or_never(abs(measure.difference.value))} in {NAMES[measure.name]}"


def _and(parts: Sequence[str]) -> str:
    return " and ".join(parts)


def sentence(contrast: Contrast) -> str:
    return f"{contrast.arm} against {contrast.reference}: {headline(contrast)}."


def details(contrast: Contrast, threshold: float | None) -> list[str]:
    measures = [_measure(measure, contrast) for measure in contrast.measures]
    return [*measures, *_lost_seeds(contrast), *_speed(contrast, threshold)]


def _lost_seeds(contrast: Contrast) -> list[str]:
    if contrast.lost_below is None:
        return []
    limit = f"final score below {number_or_never(contrast.lost_below)}"
    if any(contrast.lost):
        mine, theirs = _lost(contrast, 1), _lost(contrast, 0)
        return [f"Lost seeds ({limit}): {mine} of {contrast.arm}, {theirs} of {contrast.reference}."]
    unseen = 100 * (1 - (1 - LEVEL) ** (1 / contrast.seeds[1]))
    return [f"No seed is lost ({limit}); with so few, a share of {unseen:.0f} % cannot be ruled out."]


def _measure(measure: MeasureContrast, contrast: Contrast) -> str:
    difference = measure.difference
    assert difference.value is not None
    said = f"{NAMES[measure.name].capitalize()}: {signed(difference.value)}"
    if difference.interval is not None:
        said += f" {between(difference)}; better in {percent(measure.improvement)} of pairs of seeds"
    if contrast.learning == "too few":
        return said + "."
    margin = f"±{measure.margin:g}"
    meaning = {
        "equal": f"equal within {margin}: the interval lies inside",
        "better": f"better ({_chance(measure.chance)})",
        "worse": f"worse ({_chance(measure.chance)})",
        "unseen": f"not seen to differ ({_chance(measure.chance)}), nor shown to be equal within {margin}; "
        f"these seeds would show a difference of {number_or_never(measure.visible)} in four cases of five",
    }
    mean = ""
    if measure.finding != "equal" and abs(difference.value) <= measure.margin < abs(measure.mean_difference):
        mean = f" (plain means: {signed(measure.mean_difference)})"
    return f"{said}{mean}; {meaning[measure.finding]}."


def _chance(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _speed(contrast: Contrast, threshold: float | None) -> list[str]:
    said = []
    if contrast.seconds_ratio.value is not None and threshold is not None:
        said.append(_to_threshold(contrast, threshold))
    if contrast.rate_ratio.value is not None:
        said.append(f"Env steps/s: {times(contrast.rate_ratio)}.")
    if contrast.speed == "faster" and contrast.arrival == "later":
        never = contrast.seconds_ratio.value == 0
        said.append(f"More env steps per second, and yet {'never' if never else 'later'} at {threshold:g}.")
    if contrast.speed == "faster" and contrast.arrival in ("unclear", "as soon") and contrast.learning != "as good":
        said.append(f"More env steps per second, but not seen to be sooner at {threshold:g}.")
    return said


def _to_threshold(contrast: Contrast, threshold: float) -> str:
    ratio = contrast.seconds_ratio.value
    if ratio == 0:
        return f"{threshold:g} is reached by half of the seeds of {contrast.reference}, not by half of its own."
    if ratio == math.inf:
        return f"{threshold:g} is reached by half of its seeds, not by half of those of {contrast.reference}."
    seconds, env_steps = times(contrast.seconds_ratio), times(contrast.env_steps_ratio)
    return f"It gets to {threshold:g} {seconds} as soon by training seconds, {env_steps} by env steps."


def arm_rows(summaries: Sequence[ArmSummary], measure: str, threshold: float | None) -> Rows:
    name = measure.replace("_", " ")
    heading = ["arm", "seeds", f"{name} [95 %]", "over the run [95 %]"]
    if threshold is not None:
        aim = tick_label(threshold)
        heading += [f"reached {aim}", f"env steps to {aim}", f"training s to {aim}"]
    heading += ["env steps/s", "training s", "all s"]
    return [heading, *[_arm_cells(summary) for summary in summaries]]


def _arm_cells(summary: ArmSummary) -> Cells:
    cells = [summary.label, str(len(summary.runs)), with_interval(summary.score), with_interval(summary.area)]
    if summary.threshold is not None:
        cells += [
            f"{summary.arrived}/{len(summary.runs)}",
            with_interval(summary.env_steps_to),
            with_interval(summary.seconds_to),
        ]
    return [
        *cells,
        number_or_never(summary.rate.value),
        number_or_never(summary.mean("training_seconds")),
        number_or_never(summary.mean("seconds")),
    ]


def pair_rows(contrasts: Sequence[Contrast], threshold: float | None) -> Rows:
    """Every arm against the first; ratios above 1 are in the arm's favor."""
    if not contrasts:
        return []
    area = any(measure.name == "area" for contrast in contrasts for measure in contrast.measures)
    heading = [f"against {contrasts[0].reference}", "difference [95 %]", "better in"]
    heading += ["over the run [95 %]", "better in"] if area else []
    if threshold is not None:
        heading += [f"sooner at {tick_label(threshold)}, by s", "by env steps"]
    return [[*heading, "env steps/s"], *[_pair_cells(contrast, area, threshold) for contrast in contrasts]]


def _pair_cells(contrast: Contrast, area: bool, threshold: float | None) -> Cells:
    cells = [contrast.arm]
    for name in ("final score", "area")[: 1 + area]:
        found = [measure for measure in contrast.measures if measure.name == name]
        cells += [with_interval(found[0].difference), percent(found[0].improvement)] if found else ["-", "-"]
    if threshold is not None:
        cells += [times(contrast.seconds_ratio), times(contrast.env_steps_ratio)]
    return [*cells, times(contrast.rate_ratio)]
