"""Curves and stretches from rows, in numbers that can be checked by eye."""

from hotloop.render.numbers import measured, number_of, shown
from hotloop.render.plots import Axes, axes_for, band, line
from hotloop.reporting.facts import best_row, names_of, phases_of, series, stretches, training_seconds
from tests.reporting.written_runs import rows


def evaluations(count: int = 4):
    return [row for row in rows(count) if row["event"] == "evaluation"]


def test_a_series_has_env_steps_and_seconds_of_training_alone():
    one = series(evaluations(3), "mean_return")
    assert one.env_steps == [100, 200, 300]
    assert one.seconds == [1.0, 2.0, 3.0]  # start-up and evaluation are left out
    assert one.values == [10.0, 30.0, 20.0]


def test_many_points_are_averaged_in_groups_that_stand_where_they_end():
    made = [{"env_steps": step, "loss": float(step), "phases": {}} for step in range(1, 7)]
    one = series(made, "loss", most=3)
    assert (one.env_steps, one.values) == ([2, 4, 6], [1.5, 3.5, 5.5])


def test_rows_without_the_number_are_no_points():
    made = [{"env_steps": 1, "loss": None}, {"loss": 2.0}, {"env_steps": 3, "loss": "x"}, {"env_steps": 4, "loss": 5}]
    assert series(made, "loss").values == [5.0]
    assert names_of(made, ("env_steps",)) == ["loss"]


def test_the_best_of_two_equal_evaluations_is_the_later_one():
    best = best_row(evaluations(4))
    assert best is not None
    assert (best["env_steps"], best["mean_return"]) == (400, 30.0)
    assert best_row([]) is None
    assert best_row([{"mean_return": 3.0}, {"env_steps": 5, "mean_return": float("nan")}]) is None


def test_stretches_hold_what_each_phase_took_between_two_places():
    made = stretches(rows(2))
    assert [(part.start, part.end) for part in made] == [(0, 100), (100, 200)]
    assert made[0].phases == {"start-up": 5.0, "update": 1.0, "evaluate": 0.5}
    assert made[1].phases == {"start-up": 0.0, "update": 1.0, "evaluate": 0.5}
    assert made[1].training_seconds == 1.0


def test_many_stretches_are_joined_without_losing_a_second():
    made = stretches(rows(50), most=7)
    assert len(made) <= 8
    assert sum(part.phases["update"] for part in made) == 50.0
    assert [part.start for part in made[1:]] == [part.end for part in made[:-1]]


def test_phases_are_seconds_or_tables_that_hold_them():
    assert phases_of({"phases": {"update": {"seconds": 2.0, "share": 1.0}, "act": 1, "log": "x"}}) == {
        "update": 2.0,
        "act": 1.0,
    }
    assert phases_of({"phases": [1, 2]}) == {}
    assert training_seconds({"phases": {"compile": 9.0, "act": 1.0}}) == 1.0


def test_only_numbers_that_can_be_drawn_count():
    assert number_of(3) == 3.0
    for value in (None, True, "3", float("nan"), float("inf"), 10**400, -1e200):
        assert number_of(value) is None


def test_values_read_as_they_were_written():
    assert shown(0.0005) == "0.0005"
    assert shown(1 / 3) == repr(1 / 3)
    assert shown([64, 64]) == "64, 64"
    assert shown(True) == "true"
    assert shown("") == "(empty text)"
    assert len(shown("x" * 9_999)) == 240
    assert shown(10**5_000) == "a number of thousands of digits"


def test_measurements_have_four_digits():
    assert [measured(value) for value in (500.0, 249.523, 0.012345, 11474.4, None)] == [
        "500",
        "249.5",
        "0.01235",
        "11,474",
        "-",
    ]


def test_shapes_stand_at_their_places():
    axes = Axes(0.0, 10.0, 0.0, 4.0)
    assert line(axes, [0, 5, 10], [0, 4, 2], "line") == '<path class="line" d="M0 100L50 0L100 50"></path>'
    assert line(axes, [5], [2], "line") == '<path class="line dot" d="M50 50h0"></path>'
    assert 'd="M0 0L100 0L100 100L0 100z"' in band(axes, [0, 10], [0, 0], [4, 4], "spread")


def test_axes_have_room_and_a_rate_that_stays_zero_nothing_below_it():
    assert axes_for([1, 8], [0.0, 0.0], "").y_low == 0.0
    axes = axes_for([0.0], [5.0], "")
    assert axes.y_low < 5.0 < axes.y_high
    assert axes.x_high == 1.0
