"""What may be searched, and what is refused before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop import api
from hotloop.cli import tune as verb
from hotloop.core.errors import SettingsError
from hotloop.core.settings import as_tree
from hotloop.presets.registry import settings_from_argv
from hotloop.tuning.space import Choices, Span, check_space, of_preset, parse_search, words_of


def parse(text: str) -> Any:
    return parse_search(text, api.DQNSettings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optimizer.learning_rate=1e-5..1e-2:log", Span("optimizer.learning_rate", 1e-5, 1e-2, whole=False, log=True)),
        ("n-step=1..5", Span("n_step", 1, 5, whole=True)),
        ("learning_starts=1k..4k:step=500", Span("learning_starts", 1000, 4000, whole=True, step=500)),
        ("updates_per_env_step=1/8..1", Span("updates_per_env_step", 0.125, 1.0, whole=False)),
        ("exploration.over=1k..5k", Span("exploration.over", 1000, 5000, whole=True)),
        ("exploration.over=10%,5k", Choices("exploration.over", ("10%", "5k"))),
        ("n_step=1,3,5", Choices("n_step", ("1", "3", "5"))),
        ("double=true,false", Choices("double", ("true", "false"))),
        ("network.hidden=64x64,256", Choices("network.hidden", ("64x64", "256"), is_list=True)),
        ("env.options.max_steps=10..20", Span("env.options.max_steps", 10, 20, whole=True)),
    ],
)
def test_ranges_and_lists_are_read_by_the_type_of_the_setting(text: str, expected: Any) -> None:
    assert parse(text) == expected


def test_values_become_the_words_that_train_them() -> None:
    space = [parse("optimizer.learning_rate=1e-5..1e-2:log"), parse("n_step=1,3"), parse("network.hidden=64x32,8")]
    values = {"optimizer.learning_rate": 0.00123456789, "n_step": "3", "network.hidden": "64x32"}
    words = words_of(space, values)
    assert words == ["--optimizer.learning-rate", "0.001235", "--n-step", "3", "--network.hidden", "64", "32"]
    settings = settings_from_argv("cartpole-dqn", words)
    assert (settings.optimizer.learning_rate, settings.network.hidden) == (0.001235, (64, 32))


def test_rounding_stays_within_the_range() -> None:
    assert float(Span("x", 0.0, 0.123456, whole=False).text(0.1234559)) <= 0.123456


def test_the_preset_is_found_in_the_space_or_not_at_all() -> None:
    settings = as_tree(api.preset("cartpole-dqn"))  # lr 5e-4, n_step 3, hidden 64 64, double
    space = [
        parse(text)
        for text in (
            "optimizer.learning_rate=1e-5..1e-2:log",
            "n_step=1,3",
            "network.hidden=64x64,8",
            "double=false,true",
        )
    ]
    assert of_preset(space, settings) == {
        "optimizer.learning_rate": 5e-4,
        "n_step": "3",
        "network.hidden": "64x64",
        "double": "true",
    }
    assert of_preset([*space, parse("gamma=0.5..0.9")], settings) is None
    shares = as_tree(api.preset("dqn"))  # exploration.over 20%
    assert of_preset([parse("exploration.over=1..100k")], shares) is None
    assert of_preset([parse("exploration.over=10%,20%")], shares) == {"exploration.over": "20%"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optimizer.lerning=1..2", "unknown setting"),
        ("optimizer.lr=1e-5..1e-2", "it is called `optimizer.learning_rate` now"),
        ("n_step", "names no values"),
        ("n_step=3", "at least two"),
        ("n_step=3,3", "at least two"),
        ("n_step=1.5..3", "not a whole number"),
        ("gamma=a..b", "not a number"),
        ("gamma=0.9..0.5", "the lower one first"),
        ("gamma=0..1:log", "above 0"),
        ("gamma=0.1..1:lag", "expected `:log`"),
        ("double=0..1", "is true or false"),
        ("seed=0..9", "--seeds"),
        ("evaluation.episodes=1,2", "must be the same for all"),
    ],
)
def test_mistakes_are_told_with_what_was_meant(text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse(text)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["n_step=0..4"], "`n_step` is 0, expected at least 1"),
        (["loss=huber,mae"], "expected one of `huber`, `mse`"),
        (["network.hidden=64x64,-1"], "`network.hidden` is [-1]"),
        (["gamma=0.9,0.99", "gamma=0.5..0.6"], "searched twice"),
    ],
)
def test_values_that_no_run_could_have_are_refused_at_once(texts: list[str], expected: str) -> None:
    space = [parse(text) for text in texts]
    with pytest.raises(SettingsError) as raised:
        check_space(space, "cartpole-dqn", [])
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cartpole-dqn", "--trials", "2"], "--search"),
        (["cartpole-dqn", "--search", "n_step=1,3"], "--trials"),
        (["cartpole-dqn", "--search", "n_step=1,3", "--trials", "0"], "at least 1"),
        (["cartpole-dqn", "--search", "n_step=1,3", "--trials", "2", "--seed", "3"], "--seeds"),
        (["cartpole-dqm", "--search", "n_step=1,3", "--trials", "2"], "cartpole-dqn"),
        (["cartpole-dqn", "--gama", "1", "--search", "n_step=1,3", "--trials", "2"], "gamma"),
    ],
)
def test_mistakes_of_the_verb_leave_nothing_behind(words: list[str], expected: str, run_folder: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        verb.run(words)
    assert expected in str(raised.value)
    assert list(run_folder.iterdir()) == []
