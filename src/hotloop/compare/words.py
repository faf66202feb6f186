"""A verdict in words: a headline, and the sentences that hold it up. What was shown to be equal and what was merely not
seen to differ never share a word."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotloop.compare.numbers import between, number, percent, signed, times
from hotloop.compare.two_samples import least_seeds
from hotloop.compare.verdict import Contrast, MeasureContrast, speed_of

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


def headline(contrast: Contrast) -> str:
    """`faster but worse by 2.0 in final score`, without names."""
    learning = _learning(contrast)
    if contrast.speed in ("unclear", "unknown"):
        return learning + ("; not seen to learn sooner or later" if contrast.speed == "unclear" else "")
    return _JOIN.get((contrast.speed, contrast.learning), f"{contrast.speed}; ") + learning


def _learning(contrast: Contrast) -> str:
    if contrast.learning == "as good":
        return "as good"
    if contrast.learning == "too few":
        n, m = contrast.seeds
        return f"too few seeds to judge learning ({n} and {m}; {least_seeds(contrast.tests)} of each are the least)"
    if contrast.learning == "unseen":
        open_ones = [measure for measure in contrast.measures if measure.finding == "unseen"]
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
    return f"{number(abs(measure.difference.value))} in {NAMES[measure.name]}"


def _and(parts: Sequence[str]) -> str:
    return " and ".join(parts)


def sentence(contrast: Contrast) -> str:
    return f"{contrast.arm} against {contrast.reference}: {headline(contrast)}."


def details(contrast: Contrast, threshold: float | None) -> list[str]:
    return [*[_measure(measure, contrast) for measure in contrast.measures], *_speed(contrast, threshold)]


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
        f"these seeds would show a difference of {number(measure.visible)} in four cases of five",
    }
    return f"{said}; {meaning[measure.finding]}."


def _chance(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _speed(contrast: Contrast, threshold: float | None) -> list[str]:
    said = []
    if contrast.seconds_ratio.value is not None and threshold is not None:
        said.append(_to_threshold(contrast, threshold))
    if contrast.rate_ratio.value is not None:
        said.append(f"Env steps/s: {times(contrast.rate_ratio)}.")
    by_rate, by_time = speed_of(contrast.rate_ratio), speed_of(contrast.seconds_ratio)
    if by_rate == "faster" and by_time == "slower":
        never = contrast.seconds_ratio.value == 0
        said.append(f"More env steps per second, and yet {'never' if never else 'later'} at {threshold:g}.")
    if by_rate == "faster" and by_time in ("unclear", "as fast") and contrast.learning != "as good":
        said.append(f"More env steps per second, but not seen to be sooner at {threshold:g}.")
    return said


def _to_threshold(contrast: Contrast, threshold: float) -> str:
    ratio = contrast.seconds_ratio.value
    if ratio == 0:
        return f"{threshold:g} is reached by half of the seeds of {contrast.reference}, not by half of its own."
    if ratio == math.inf:
        return f"{threshold:g} is reached by half of its seeds, not by half of those of {contrast.reference}."
    seconds, env_steps = times(contrast.seconds_ratio), times(contrast.env_steps_ratio)
    return f"Getting to {threshold:g} is {seconds} as fast in training seconds, {env_steps} in env steps."
