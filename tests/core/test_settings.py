"""The strict loader: what is accepted, what is refused, and that nothing else than a SettingsError ever comes out."""

import contextlib
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hotloop.core.errors import SettingsError
from hotloop.core.settings import as_tree, build, flatten, leaf_types, merge
from hotloop.core.values import Count, Ratio, exact_fraction, parse_count
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.registry import class_of, settings_class


@dataclass(frozen=True, kw_only=True)
class Inner:
    steps: Count = 10
    widths: tuple[int, ...] = (1, 2)


@dataclass(frozen=True, kw_only=True)
class Sample:
    flag: bool = False
    whole: int = 3
    real: float = 0.5
    text: str = "a"
    kind: Literal["red", "blue"] = "red"
    ratio: Ratio = 1.0
    options: dict[str, int] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1e6", 1_000_000),
        ("1_000_000", 1_000_000),
        ("2M", 2_000_000),
        ("50k", 50_000),
        ("50K", 50_000),
        ("1.5M", 1_500_000),
        ("1G", 1_000_000_000),
        (1e6, 1_000_000),
        (7, 7),
        ("0", 0),
        ("9007199254740993", 2**53 + 1),
        (2**53 + 1, 2**53 + 1),
    ],
)
def test_counts_may_be_written_in_many_ways(written, meant):
    assert parse_count(written) == meant
    assert build(Inner, {"steps": written}).steps == meant
    assert type(build(Inner, {"steps": written}).steps) is int


@pytest.mark.parametrize(
    "written", [1.5, "1.5", "1.0005k", True, None, "", "M", "two", "1e-3", float("nan"), float("inf"), [1], {}, "1/0"]
)
def test_what_is_not_a_whole_number_is_no_count(written):
    with pytest.raises(SettingsError, match="whole number"):
        build(Inner, {"steps": written})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.03, Fraction(3, 100)),
        ("0.25", Fraction(1, 4)),
        ("1/32", Fraction(1, 32)),
        (8, Fraction(8)),
        (0.1, Fraction(1, 10)),
    ],
)
def test_ratios_are_what_the_user_meant_not_the_nearest_binary_number(written, meant):
    assert exact_fraction(build(Sample, {"ratio": written}).ratio) == meant


@given(st.fractions(min_value=0, max_value=1000, max_denominator=10**6))
def test_a_ratio_written_as_a_fraction_survives_a_round_trip_exactly(ratio):
    loaded = build(Sample, {"ratio": f"{ratio.numerator}/{ratio.denominator}"})
    again = build(Sample, as_tree(loaded))
    assert exact_fraction(again.ratio) == ratio


@pytest.mark.parametrize("written", ["x", "1/0", "", None, True, [1], float("nan"), float("inf"), "1//2"])
def test_bad_ratios_are_refused(written):
    with pytest.raises(SettingsError, match="a number"):
        build(Sample, {"ratio": written})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flag", 1),
        ("flag", "true"),
        ("flag", None),
        ("whole", 1.0),
        ("whole", "1"),
        ("whole", True),
        ("real", "0.5"),
        ("real", True),
        ("real", None),
        ("real", 10**400),
        ("text", 5),
        ("kind", "green"),
        ("kind", 1),
        ("kind", []),
        ("options", 3),
        ("options", {"a": [1]}),
        ("options", {"a": None}),
        ("inner", 3),
        ("inner", {"widths": 64}),
        ("inner", {"widths": "64"}),
        ("inner", {"widths": [1.5]}),
        ("inner", {"widths": [True]}),
    ],
)
def test_values_of_the_wrong_type_are_refused_and_the_setting_is_named(name, value):
    with pytest.raises(SettingsError, match=f"`{name}") as caught:
        build(Sample, {name: value})
    assert "expected" in caught.value.message


def test_a_list_is_no_table_even_where_its_entries_look_like_pairs():
    with pytest.raises(SettingsError, match="options"):
        build(Sample, {"options": ["ab", "cd"]})


def test_a_wrong_choice_suggests_the_right_one():
    with pytest.raises(SettingsError, match="expected one of `red`, `blue`") as caught:
        build(Sample, {"kind": "bleu"})
    assert caught.value.hint == "did you mean `blue`?"


def test_whole_numbers_are_numbers_and_lists_are_tuples():
    loaded = build(Sample, {"real": 2, "inner": {"widths": [8, 8]}, "options": {"size": 10, "on": True}})
    assert (loaded.real, type(loaded.real)) == (2.0, float)
    assert loaded.inner.widths == (8, 8)
    assert loaded.options == {"size": 10, "on": True}


def test_missing_keys_keep_their_defaults():
    assert build(Sample, {"inner": {"steps": 4}}) == Sample(inner=Inner(steps=4, widths=(1, 2)))


def test_the_source_of_a_mistake_is_told():
    with pytest.raises(SettingsError, match="in my.toml"):
        build(Sample, {"color": 1}, source="my.toml")


def test_settings_survive_the_way_to_plain_values_and_back():
    chosen = build(
        DQNSettings,
        {
            "updates_per_env_step": "1/3",
            "env": {"options": {"size": 10, "name": "x", "on": True}},
            "network": {"hidden": [32, 16], "atoms": 51},
            "exploration": {"kind": "decay", "end": 0.01},
        },
    )
    for settings_ in (chosen, DQNSettings()):
        assert build(DQNSettings, as_tree(settings_)) == settings_


def test_the_tree_of_settings_is_a_copy():
    chosen = DQNSettings()
    as_tree(chosen)["env"]["options"]["size"] = 3
    assert chosen.env.options == {}


def test_flatten_and_merge_by_hand():
    assert flatten({"a": 1, "b": {"c": 2, "d": {"e": 3}}}) == {"a": 1, "b.c": 2, "b.d.e": 3}
    base = {"a": 1, "b": {"c": 2, "d": 3}}
    assert merge(base, {"b": {"c": 9}, "e": 4}) == {"a": 1, "b": {"c": 9, "d": 3}, "e": 4}
    assert base == {"a": 1, "b": {"c": 2, "d": 3}}


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
names = st.sampled_from([*leaf_types(DQNSettings), "env", "network", "exploration", "optimizer"]) | st.text(max_size=6)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def nest(flat):
    tree = {}
    for path, value in flat.items():
        place, (*folders, last) = tree, path.split(".")
        for folder in folders:
            place = place[folder] if isinstance(place.get(folder), dict) else place.setdefault(folder, {})
            if not isinstance(place, dict):
                break
        else:
            place[last] = value
    return tree


@given(st.dictionaries(names, values, max_size=4))
@settings(max_examples=150)
def test_any_tree_gives_settings_or_a_settings_error(flat):
    tree = {key: value for key, value in nest(flat).items() if value is not None or key}
    with contextlib.suppress(SettingsError):
        build(DQNSettings, tree)


@pytest.mark.parametrize("key", list(leaf_types(DQNSettings)))
@given(value=values)
@settings(max_examples=8)
@example(value=float("-inf"))
@example(value=-(10**400))
def test_any_value_of_any_key_gives_settings_or_a_settings_error(key, value):
    with contextlib.suppress(SettingsError):
        build(DQNSettings, nest({key: value}))


@pytest.mark.parametrize("key", ["total_env_steps", "replay.buffer_size", "evaluation.every"])
def test_a_count_of_more_digits_than_python_prints_is_refused(key):
    for written in ("-1e5000", "1e5000"):
        with pytest.raises(SettingsError):
            build(DQNSettings, nest({key: written}))


def test_a_count_with_an_absurd_exponent_is_refused_rather_than_worked_out():
    """10^(10^6) has a million digits: an answer must not wait for them (1e999999999 would never end)."""
    with pytest.raises(SettingsError):
        build(DQNSettings, {"total_env_steps": "1e1000000"})


@pytest.mark.parametrize("name", ["ppoo", 3, None, [], {}])
def test_an_unknown_algorithm_is_a_settings_error(name):
    with pytest.raises(SettingsError):
        class_of({"algorithm": name})


def test_the_algorithm_of_a_tree_chooses_its_settings():
    assert class_of({}) is settings_class("dqn") is DQNSettings
    with pytest.raises(SettingsError, match="did you mean `dqn`"):
        settings_class("dqnn")
