"""An arm that loses some of its runs is never as good as one that loses none, whatever its middle half says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hotloop.comparison.statistics import seeds_for_shares
from hotloop.comparison.verdict import Contrast, contrasts
from hotloop.comparison.verdict_text import details, headline
from tests.comparison.test_compare_verdict import GOOD, judged, summary

COMPARISONS = 200
MARGIN = 24.0


def compared(first_lost: int, second_lost: int | float, seeds: int) -> list[Contrast]:
    """Programs that learn alike (480 +- 5 at the end, 300 +- 5 over the run) but for runs that stay at random play:
    so many, or each with that chance."""
    generator, found = np.random.default_rng(17), []
    for _ in range(COMPARISONS):
        by_chance = isinstance(second_lost, float)
        second = int(generator.binomial(seeds, second_lost)) if by_chance else int(second_lost)
        arms = []
        for label, lost in (("a", first_lost), ("b", second)):
            finals, heights = generator.normal(480.0, 5.0, seeds), generator.normal(300.0, 5.0, seeds)
            finals[:lost] = heights[:lost] = generator.normal(22.0, 2.0, lost)
            order = generator.permutation(seeds)
            runs = summary(label, finals[order], heights[order])
            first = [replace(run, curve_score=np.append(20.0, run.curve_score[1:])) for run in runs.runs]
            arms.append(replace(runs, runs=first))
        found += contrasts(arms, MARGIN, repeats=300)
    return found


def verdicts(*case: float) -> Counter[str]:
    return Counter(contrast.learning for contrast in compared(int(case[0]), case[1], int(case[2])))


@pytest.mark.parametrize("seeds", [10, 20])
def test_arms_that_lose_nothing_are_as_good(seeds: int) -> None:
    assert verdicts(0, 0, seeds) == {"as good": COMPARISONS}


@pytest.mark.parametrize("seeds", [10, 20])
@pytest.mark.parametrize("lost", [1, 2])
def test_an_arm_that_loses_seeds_is_not_as_good_as_one_that_loses_none(lost: int, seeds: int) -> None:
    found = compared(0, lost, seeds)
    assert "as good" not in {contrast.learning for contrast in found}
    assert all(f"{lost} of {seeds} seeds lost (0 of {seeds} seeds of a)" in headline(contrast) for contrast in found)


@pytest.mark.parametrize("seeds", [10, 20])
def test_an_arm_that_loses_one_run_in_ten_is_as_good_only_where_none_was_lost(seeds: int) -> None:
    for contrast in compared(0, 0.1, seeds):
        assert (contrast.learning == "as good") == (contrast.lost[1] == 0)


@pytest.mark.parametrize("lost", [1, 2])
def test_arms_that_lose_alike_are_called_different_in_at_most_one_of_twenty(lost: int) -> None:
    found = verdicts(lost, lost, 20)
    assert found["better"] + found["worse"] + found["mixed"] <= COMPARISONS / 20


def test_a_lost_seed_is_told_in_words_whatever_the_verdict() -> None:
    reference = summary("a", GOOD)
    (alike,) = judged(reference, summary("b", [*GOOD[:7], 20.0]))
    assert alike.measures[0].finding == "unseen"  # the plain means differ by 59, the middle halves by nothing
    assert "1 of 8 seeds lost (0 of 8 seeds of a)" in headline(alike)
    assert "Lost seeds (final score below 398.0): 1 of 8 seeds of b, 0 of 8 seeds of a." in details(alike, None)
    (worse,) = judged(reference, summary("b", [100.0 + seed for seed in range(8)]))
    assert "worse by 390.0 in final score; 8 of 8 seeds lost (0 of 8 seeds of a)" in headline(worse)
    (none,) = judged(reference, summary("b", GOOD))
    # 1 - 0.05 ** (1 / 8): that share would have shown itself in eight seeds in 95 of 100 cases
    assert any(
        "No seed is lost (final score below 398.0); with so few, a share of 31 %" in text
        for text in details(none, None)
    )


MANY = [490.0 + seed for seed in range(20)]


def test_lost_seeds_within_a_wide_margin_are_no_equality_either() -> None:
    (contrast,) = judged(summary("a", MANY), summary("b", [*MANY[:19], 20.0]), margin=100.0)
    assert [measure.finding for measure in contrast.measures] == ["equal", "equal"]
    assert contrast.learning == "unseen"
    # h = 2 asin(sqrt 0.05) = 0.4510; 2 (1.960 + 0.842)^2 / h^2 = 77.2
    assert "alike but for lost seeds, which may be chance or not (78 of each would show it)" in headline(contrast)


def test_an_arm_that_loses_fewer_may_be_as_good() -> None:
    (contrast,) = judged(summary("a", [*MANY[:19], 20.0]), summary("b", MANY), margin=100.0)
    assert contrast.learning == "as good"
    assert "0 of 20 seeds lost (1 of 20 seeds of a)" in headline(contrast)


def test_seeds_that_show_a_difference_of_shares_by_hand() -> None:
    # h = 2 asin(sqrt 0.1) = 0.6435; 2 (1.960 + 0.842)^2 / h^2 = 37.9
    assert seeds_for_shares((0, 1), (10, 10)) == 38


def test_a_third_arm_changes_no_word_about_the_first_two() -> None:
    reference, second = summary("a", GOOD), summary("b", [score - 9 for score in GOOD], rate=900.0)
    shorter = summary("b", GOOD)
    cut = [
        replace(run, curve_env_steps=run.curve_env_steps // 2) for run in shorter.runs
    ]  # ends after half of the env steps
    (alone,) = judged(reference, second)
    beside, _ = judged(reference, second, replace(shorter, arm=replace(shorter.arm, label="c"), runs=cut))
    assert beside.as_data() == alone.as_data()
    assert [headline(beside), *details(beside, 450.0)] == [headline(alone), *details(alone, 450.0)]
