"""The decision rule: what it says of clear cases, and how often it is wrong on arms that are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from hotloop.comparison.measures import RunMeasures
from hotloop.comparison.statistics import Estimate, Interval, looks_at
from hotloop.comparison.summary import ArmSummary, default_margin, default_threshold
from hotloop.comparison.verdict import Contrast, contrasts, speed_of
from hotloop.comparison.verdict_text import details, headline, sentence
from hotloop.core.types import Array
from tests.comparison.synthetic_runs import make_arm

SPAN = (1_000.0, 10_000.0)
ARMS = {label: make_arm(label) for label in "ab"}
Draw = Callable[[np.random.Generator], Array]


def run_of(seed: int, final: float, height: float, rate: float, reaches_at: int | None) -> RunMeasures:
    """A flat curve of that height, but for one evaluation above 450 at `reaches_at` thousand env steps."""
    env_steps = np.arange(1, 11) * 1_000
    score = np.full(10, height)
    if reaches_at is not None:
        score[reaches_at - 1] = 460.0
    seconds = 10_000 / rate
    return RunMeasures(
        Path(f"seed-{seed}"), seed, final, final, 10_000, 10, seconds, seconds, rate, env_steps, env_steps / rate, score
    )


def summary(
    label: str,
    finals: Sequence[float],
    heights: Sequence[float] | None = None,
    rate: float = 1_000.0,
    reaches_at: Sequence[int | None] | None = None,
) -> ArmSummary:
    heights = heights if heights is not None else [300.0 + seed for seed in range(len(finals))]
    places = reaches_at if reaches_at is not None else [5] * len(finals)
    rows = zip(finals, heights, places, strict=True)
    runs = [run_of(seed, float(final), float(height), rate + seed, at) for seed, (final, height, at) in enumerate(rows)]
    return ArmSummary(ARMS[label], runs, 450.0, SPAN)


def judged(reference: ArmSummary, *others: ArmSummary, margin: float = 25.0) -> list[Contrast]:
    return contrasts([reference, *others], margin, repeats=500)


GOOD, LOW, WIDE = [490.0 + seed for seed in range(8)], [400.0 + seed for seed in range(8)], [300.0, 500.0] * 4


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (summary("b", GOOD, rate=3_000.0), "faster and as good"),
        (summary("b", GOOD, rate=300.0), "slower, and as good"),
        (summary("b", GOOD, rate=1_000.0), "as fast and as good"),
        (summary("b", LOW, rate=3_000.0), "faster but worse by 90.0 in final score"),
        (summary("b", [score + 100 for score in GOOD]), "as fast and better by 100.0 in final score"),
        (summary("b", [score + 100 for score in GOOD], rate=300.0), "slower but better by 100.0 in final score"),
        (
            summary("b", [score + 100 for score in GOOD], [100.0 + seed for seed in range(8)]),
            "as fast; better by 100.0 in final score but worse by 177.8 in mean score over the run",
        ),
        (
            summary("b", LOW, reaches_at=[None] * 8, rate=3_000.0),
            "faster but worse by 90.0 in final score; never at 450",
        ),
    ],
)
def test_clear_cases_in_text(other: ArmSummary, expected: str) -> None:
    (contrast,) = judged(summary("a", GOOD), other)
    assert headline(contrast).startswith(expected)
    assert sentence(contrast).startswith("b against a: ")


def test_absence_of_evidence_is_told_from_equality() -> None:
    (unsure,) = judged(summary("a", WIDE), summary("b", WIDE[::-1]))
    assert unsure.learning == "unseen"
    said = " ".join([headline(unsure), *details(unsure, 450.0)])
    assert "no difference in learning seen" in said
    assert "seeds of each would be needed to see a difference of 25" in said
    assert "nor shown to be equal within ±25" in said
    (equal,) = judged(summary("a", GOOD), summary("b", GOOD[::-1]))
    assert equal.learning == "as good"
    said = " ".join([headline(equal), *details(equal, 450.0)])
    assert "equal within ±25" in said
    assert "seen" not in said


def test_a_real_difference_smaller_than_the_margin_is_of_no_account() -> None:
    first, second = [500.0 + seed / 100 for seed in range(8)], [499.0 + seed / 100 for seed in range(8)]
    (contrast,) = judged(summary("a", first), summary("b", second))
    assert contrast.measures[0].chance < 0.05
    assert contrast.learning == "as good"


def test_few_seeds_claim_nothing() -> None:
    (contrast,) = judged(summary("a", GOOD[:4]), summary("b", LOW[:4]))
    assert contrast.learning == "too few"
    assert "too few seeds to judge learning (4 and 4; 5 of each are the least)" in headline(contrast)


def test_more_env_steps_per_second_that_never_arrive_are_no_speed_up() -> None:
    (contrast,) = judged(summary("a", GOOD), summary("b", LOW, rate=9_000.0, reaches_at=[None] * 8))
    said = details(contrast, 450.0)
    assert "450 is reached by half of the seeds of a, not by half of its own." in said
    assert "More env steps per second, and yet never at 450." in said


def test_seeds_are_paired_where_both_arms_have_the_same_in_any_order() -> None:
    first = summary("a", GOOD)
    mixed = ArmSummary(make_arm("b"), list(reversed(summary("b", GOOD).runs)), 450.0, SPAN)
    (contrast,) = judged(first, mixed)
    assert contrast.paired
    assert contrast.measures[0].difference == Estimate(0.0, Interval(0.0, 0.0))
    fewer = ArmSummary(make_arm("b"), mixed.runs[:7], 450.0, SPAN)
    assert not judged(first, fewer)[0].paired


@pytest.mark.parametrize(
    ("interval", "expected"),
    [((1.1, 2.0), "faster"), ((0.5, 0.9), "slower"), ((0.97, 1.04), "as fast"), ((0.9, 1.2), "unclear")],
)
def test_speed_by_its_interval(interval: tuple[float, float], expected: str) -> None:
    assert speed_of(Estimate(1.0, Interval(*interval))) == expected


def test_an_arm_without_runs_is_left_out() -> None:
    empty = ArmSummary(make_arm("b"), [], 450.0, SPAN)
    assert judged(summary("a", GOOD), empty) == []
    assert judged(empty, summary("a", GOOD)) == []


def test_threshold_and_margin_follow_from_the_first_arm() -> None:
    reference = summary("a", [500.0] * 5, [20.0] * 5)
    assert default_threshold(reference) == 450.0  # 20 + 0.9 x 480 = 452
    assert default_margin(reference) == 24.0
    assert default_threshold(summary("a", [10.0] * 5, [20.0] * 5)) is None
    assert default_margin(summary("a", [-10.0] * 5, [20.0] * 5)) == 0.5


def test_the_margin_is_of_use_where_learning_was_over_at_the_first_evaluation() -> None:
    over = summary("a", [470.0, 480.0, 490.0, 500.0, 500.0], [475.0] * 5)
    assert default_margin(over) == 24.0  # of the score (489): seeds differ by more than it rose from 475 on


def normal(generator: np.random.Generator) -> Array:
    return generator.normal(300.0, 50.0, size=8)


def saturated(generator: np.random.Generator) -> Array:
    return np.minimum(500.0, generator.normal(510.0, 30.0, size=8))


def two_fates(generator: np.random.Generator) -> Array:
    return np.where(generator.random(8) < 0.3, 100.0, 480.0) + generator.normal(size=8)


def outcomes(draw: Draw, shift: float, repeats: int, margin: float = 25.0) -> dict[str, float]:
    """Shares of verdicts when the second arm's scores, over the run too, lie lower by `shift`."""
    generator = np.random.default_rng(7)
    found = []
    for _ in range(repeats):
        first, second = draw(generator), draw(generator) - shift
        wobble = generator.normal(scale=30.0, size=(2, 8))
        arms = summary("a", first, first / 2 + wobble[0]), summary("b", second, second / 2 + wobble[1])
        found.append(contrasts(arms, margin, repeats=200)[0].learning)
    return {kind: found.count(kind) / repeats for kind in set(found)}


@pytest.mark.parametrize("draw", [normal, saturated, two_fates])
def test_identical_arms_are_called_different_in_at_most_one_of_twenty(draw: Draw) -> None:
    shares = outcomes(draw, 0.0, 400)
    assert sum(shares.get(kind, 0.0) for kind in ("better", "worse", "mixed")) <= 0.05, shares


@pytest.mark.parametrize(("draw", "shift"), [(normal, 100.0), (saturated, 60.0), (two_fates, 390.0)])
def test_a_planted_regression_is_caught(draw: Draw, shift: float) -> None:
    shares = outcomes(draw, shift, 150)
    assert shares.get("worse", 0.0) >= 0.85, shares


def test_a_difference_of_one_margin_is_called_equal_in_at_most_one_of_twenty() -> None:
    shares = outcomes(lambda generator: generator.normal(300.0, 15.0, size=8), 25.0, 300, margin=25.0)
    assert shares.get("as good", 0.0) <= 0.05, shares


def test_with_small_spread_equality_is_shown() -> None:
    shares = outcomes(lambda generator: generator.normal(300.0, 5.0, size=8), 0.0, 100, margin=60.0)
    assert shares.get("as good", 0.0) >= 0.85, shares


def verdicts_until_sure(scale: float, shift: float, repeats: int, margin: float = 25.0) -> list[tuple[str, int]]:
    """Verdict and seeds of each arm of comparisons that add seeds, 20 at most, until they are sure; normal scores."""
    generator, looks = np.random.default_rng(13), looks_at(20, 2)
    found = []
    for _ in range(repeats):
        first, second = generator.normal(300.0, scale, size=(2, 20)) - np.array([[0.0], [shift]])
        wobble = generator.normal(scale=scale, size=(2, 20))
        for seeds in looks:
            arms = [
                summary(label, scores[:seeds], scores[:seeds] / 2 + wobble[row, :seeds])
                for row, (label, scores) in enumerate((("a", first), ("b", second)))
            ]
            (contrast,) = contrasts(arms, margin, repeats=200, looks=len(looks))
            if contrast.learning != "unseen":
                break
        found.append((contrast.learning, seeds))
    return found


REPEATS_UNTIL_SURE = [150, pytest.param(1_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("repeats", REPEATS_UNTIL_SURE)
def test_looking_again_and_again_at_identical_arms_keeps_to_one_of_twenty(repeats: int) -> None:
    found = verdicts_until_sure(50.0, 0.0, repeats)
    wrong = sum(verdict in ("better", "worse", "mixed") for verdict, _ in found)
    assert wrong / repeats <= 0.05, wrong


@pytest.mark.parametrize("repeats", REPEATS_UNTIL_SURE)
def test_looking_again_and_again_at_a_difference_of_one_margin_calls_it_equal_in_at_most_one_of_twenty(
    repeats: int,
) -> None:
    found = verdicts_until_sure(15.0, 25.0, repeats)
    assert sum(verdict == "as good" for verdict, _ in found) / repeats <= 0.05


def test_a_large_difference_is_seen_at_the_first_look() -> None:
    found = verdicts_until_sure(20.0, 150.0, 30)
    assert {verdict for verdict, _ in found} == {"worse"}
    assert np.median([seeds for _, seeds in found]) == looks_at(20, 2)[0] == 6


def test_looks_are_few_and_each_can_tell_something() -> None:
    assert looks_at(20, 2) == [6, 9, 13, 20]
    assert looks_at(5, 2) == [5]
    assert looks_at(40, 4) == [7, 10, 15, 22, 33, 40]


def test_equal_speeds_are_called_different_in_at_most_one_of_twenty() -> None:
    generator = np.random.default_rng(11)
    wrong = 0
    for _ in range(300):
        rates, places = 1_000 * np.exp(generator.normal(scale=0.2, size=(2, 8))), generator.integers(3, 8, size=(2, 8))
        arms = []
        for row in (0, 1):
            rows = zip(rates[row], places[row], strict=True)
            runs = [run_of(seed, 490.0, 300.0, float(rate), int(at)) for seed, (rate, at) in enumerate(rows)]
            arms.append(ArmSummary(make_arm("ab"[row]), runs, 450.0, SPAN))
        wrong += contrasts(arms, 25.0, repeats=300)[0].speed in ("faster", "slower")
    assert wrong / 300 <= 0.05
