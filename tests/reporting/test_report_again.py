"""The command on the page makes exactly the settings of the run."""

import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop import api
from hotloop.core.settings import as_tree
from hotloop.presets.registry import label_of, settings_from_argv, settings_of
from hotloop.reporting.facts import RunFacts, read_facts
from hotloop.reporting.reproduce import reproduce
from hotloop.runs.directory import Run
from tests.reporting.written_runs import write_run


def facts_of(label: str, settings, lane: str = "native") -> RunFacts:
    return RunFacts(Run(Path("somewhere")), label, "finished", as_tree(settings), lane={"lane": lane})


def learning_tree(settings):
    return {name: value for name, value in as_tree(settings).items() if name not in ("run_dir", "trust")}


def made_by(command: str):
    verb, name, *words = shlex.split(command)[1:]
    assert verb == "train"
    return settings_from_argv(name, words)


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("cartpole-dqn", []),
        (
            "cartpole-dqn",
            ["--seed", "3", "--network.hidden", "32", "16", "8", "--no-double", "--optimizer.learning-rate", "1e-4"],
        ),
        ("snake-dqn", ["--updates-per-env-step", "1/32", "--env.options.max_steps", "7", "--gamma", "0.5"]),
        ("cartpole-rainbow", ["--network.v-min", "-10", "--network.noisy", "false"]),
        ("cartpole-ppo", ["--total-env-steps", "1M", "--network.hidden"]),
        ("sfc-dqn", ["--env.options.max_data_centres", "6"]),
    ],
)
def test_a_preset_with_overrides_comes_back_as_one_command(preset, words):
    settings = settings_from_argv(preset, words)
    again = reproduce(facts_of(preset, settings))
    assert not again.file
    wanted = replace(settings, learner=replace(settings.learner, lane="native"))
    assert learning_tree(made_by(again.command)) == learning_tree(wanted)


@pytest.mark.parametrize("preset", ["dqn", "cartpole-ppo"])
def test_a_run_called_after_its_env_comes_back_as_the_preset_that_is_nearest(preset):
    settings = settings_from_argv(preset, ["--env.id", "Acrobot-v1", "--seed", "3"])
    again = reproduce(facts_of(label_of(settings, preset), settings))
    assert again.command == f"hotloop train {preset} --seed 3 --env.id Acrobot-v1 --learner.lane native"


def test_nothing_but_the_lane_is_added_to_a_plain_preset():
    again = reproduce(facts_of("cartpole-dqn", api.preset("cartpole-dqn"), lane="eager"))
    assert again.command == "hotloop train cartpole-dqn --learner.lane eager"


def test_what_no_preset_and_no_flag_can_say_becomes_a_file(tmp_path):
    settings = api.preset("snake-dqn", seed=5)
    bare = replace(settings, env=replace(settings.env, options={"observation": "flood_fill"}))  # options taken away
    for label in ("snake-dqn", "my own"):
        again = reproduce(facts_of(label, bare))
        assert again.command == "hotloop train settings.toml"
        file = tmp_path / "settings.toml"
        file.write_text(again.file)
        wanted = replace(bare, learner=replace(bare.learner, lane="native"))
        assert learning_tree(api.preset(str(file))) == learning_tree(wanted)
    assert "batch_size = 128" in again.file
    assert "loss" not in tomllib.loads(again.file)  # only what differs from the defaults


def test_settings_of_another_version_are_told_rather_than_guessed(tmp_path):
    path = write_run(tmp_path / "run")
    file = path / "settings.toml"
    file.write_text(file.read_text().replace("gamma = ", "gamme = "))
    assert "`gamme`" in reproduce(read_facts(path)).problem


def test_a_run_is_not_trusted_by_what_its_own_file_says(tmp_path):
    path = write_run(tmp_path / "run", trust=True)
    assert settings_of(read_facts(path).run, trust=False).trust is False
