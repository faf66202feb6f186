"""Command-line words as a settings tree."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.errors import SettingsError
from hotloop.core.overrides import as_argv, parse_overrides
from hotloop.core.settings import build, leaf_types
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.ppo_settings import PPOSettings


def tree_of(line: str) -> dict:
    return parse_overrides(line.split(), DQNSettings)


def settings_of(line: str) -> DQNSettings:
    return build(DQNSettings, tree_of(line))


@pytest.mark.parametrize(
    ("line", "tree"),
    [
        ("", {}),
        ("--seed 3", {"seed": 3}),
        ("--seed=3", {"seed": 3}),
        ("--env.num-envs 8", {"env": {"num_envs": 8}}),
        ("--env.num_envs 8", {"env": {"num_envs": 8}}),
        ("--gamma 0.9 --seed 1", {"gamma": 0.9, "seed": 1}),
        ("--double", {"double": True}),
        ("--no-double", {"double": False}),
        ("--double false", {"double": False}),
        ("--double=no", {"double": False}),
        ("--double ON", {"double": True}),
        ("--no-network.dueling", None),
        ("--network.no-dueling", {"network": {"dueling": False}}),
        ("--network.hidden 64 32", {"network": {"hidden": [64, 32]}}),
        ("--network.hidden 64", {"network": {"hidden": [64]}}),
        ("--network.hidden", {"network": {"hidden": []}}),
        ("--env.options.size 10", {"env": {"options": {"size": 10}}}),
        ("--env.options.is_slippery false", {"env": {"options": {"is_slippery": False}}}),
        ("--env.options.rate 0.5", {"env": {"options": {"rate": 0.5}}}),
        ("--env.options.map 8x8", {"env": {"options": {"map": "8x8"}}}),
        ("--env.options.a 1 --env.options.b 2", {"env": {"options": {"a": 1, "b": 2}}}),
        ("--optimizer.lr-schedule.kind linear", {"optimizer": {"lr_schedule": {"kind": "linear"}}}),
        ("--network.v-min -10", {"network": {"v_min": -10}}),
        ("--device cuda:1", {"device": "cuda:1"}),
        ("--run-dir 5", {"run_dir": "5"}),
    ],
)
def test_words_become_the_tree_they_describe(line, tree):
    if tree is None:
        with pytest.raises(SettingsError):
            tree_of(line)
    else:
        assert tree_of(line) == tree


def test_counts_and_ratios_are_read_by_the_loader():
    chosen = settings_of(
        "--total-env-steps 1e6 --replay.buffer-size 2M --updates-per-env-step 1/32 --learning-starts 1_000"
    )
    assert (chosen.total_env_steps, chosen.replay.buffer_size, chosen.learning_starts) == (1_000_000, 2_000_000, 1_000)
    assert chosen.updates_per_env_step == "1/32"


@pytest.mark.parametrize(
    "line",
    [
        "seed 3",
        "3",
        "-seed 3",
        "--seed",
        "--seed 3 4",
        "--seed 1.5",
        "--seed 1e3",
        "--batch-size 1e2",
        "--total-env-steps 1.5",
        "--double maybe",
        "--double true false",
        "--no-double true",
        "--no-seed",
        "--gamma high",
        "--loss hubert",
        "--network.hidden 64,64",
        "--network.hidden 6.5",
        "--env.options 3",
        "--env.options",
        "--env.options.size",
        "--env.options.size 1 2",
        "--env.options.a.b 1",
        "--env 3",
        "--network.activation",
        "--=3",
        "--",
        "--.",
        "--seed.x 3",
    ],
)
def test_lines_that_mean_nothing_are_refused(line):
    with pytest.raises(SettingsError):
        settings_of(line)


def test_a_whole_table_and_one_of_its_entries_do_not_go_together():
    for line in ("--env.options x --env.options.size 10", "--env.options.size 10 --env.options x"):
        with pytest.raises(SettingsError):
            settings_of(line)


def test_the_error_names_the_flag_and_what_was_expected():
    with pytest.raises(SettingsError, match=r"`--batch-size` got 2 values, expected a whole number") as raised:
        tree_of("--batch-size 1 2")
    assert (raised.value.kind, raised.value.key) == ("count", "batch_size")


def test_the_error_of_an_unknown_setting_has_its_name_for_who_may_know_better():
    with pytest.raises(SettingsError) as raised:
        tree_of("--env.num-enfs 3")
    assert (raised.value.kind, raised.value.key) == ("unknown", "env.num_enfs")


def test_a_tree_becomes_the_words_that_are_read_as_that_tree():
    tree = {
        "double": False,
        "gamma": 0.9,
        "total_env_steps": 30_000,
        "network": {"hidden": [64, 8]},
        "env": {"id": "snake", "options": {"max_steps": 5, "offset": -1}},
    }
    words = as_argv(tree)
    assert words[:4] == ["--double", "false", "--gamma", "0.9"]
    assert "--env.options.offset=-1" in words
    read = parse_overrides(words, DQNSettings)
    assert build(DQNSettings, read) == build(DQNSettings, tree)
    assert as_argv(["--double", "false"]) == ["--double", "false"]


flags = st.sampled_from([f"--{key}" for key in leaf_types(DQNSettings)])
near_flags = st.builds(lambda flag, tail: flag + tail, flags, st.sampled_from([".x", "=", "=1", ".", "-", "=x=y"]))
numbers = st.sampled_from(
    ["1", "-1", "1e3", "nan", "inf", "-inf", "1/2", "2M", "true", "huber", "x", "", "--", "9" * 5000]
)
words = st.lists(flags | near_flags | numbers | st.text(max_size=5), max_size=6)


@given(words)
@settings(max_examples=200)
def test_any_words_give_settings_or_a_settings_error(line):
    with contextlib.suppress(SettingsError):
        build(DQNSettings, parse_overrides(line, DQNSettings))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--normalize.obs", True),
        ("--normalize.no-obs", False),
        ("--normalize.obs auto", "auto"),
        ("--normalize.obs off", False),
    ],
)
def test_a_switch_may_be_left_to_the_env(line: str, expected: object) -> None:
    assert build(PPOSettings, parse_overrides(line.split(), PPOSettings)).normalize.obs == expected


def test_a_stretch_is_a_count_or_a_share_of_the_run() -> None:
    assert [settings_of(f"--exploration.over {text}").exploration.over for text in ("5k", "10%")] == [5_000, "10%"]
    for wrong in ("0%", "120%", "ten%", "0.5"):
        with pytest.raises(SettingsError, match="over"):
            settings_of(f"--exploration.over {wrong}")
