"""Settings under the names that they had before."""

from __future__ import annotations

import pytest

import hotloop
from hotloop.core.errors import SettingsError
from hotloop.core.settings import build
from hotloop.core.vocabulary import RENAMED, SETTINGS_SCHEMA, upgraded
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.runs.directory import Run


def test_tables_and_what_is_in_them_are_renamed_and_the_rest_stays() -> None:
    old = {"optimiser": {"lr": 0.5, "beta1": 0.9}, "replay": {"prioritised": True}, "clip": 0.1, "gamma": 0.9}
    new = {
        "optimizer": {"learning_rate": 0.5, "beta1": 0.9},
        "replay": {"prioritized": True},
        "clip_range": 0.1,
        "gamma": 0.9,
    }
    assert upgraded(old) == new
    assert upgraded(old | {"schema": 1}) == new
    assert upgraded(new) == new
    assert upgraded(new | {"schema": 2}) == new


def test_every_name_of_the_table_is_a_setting_today() -> None:
    known: set[str] = set()
    for preset in ("dqn", "ppo", "sac"):
        tree = paths_of(preset)
        known |= tree | {name.partition(".")[0] for name in tree}
    assert set(RENAMED.values()) <= known
    assert not set(RENAMED) & known


def paths_of(preset: str) -> set[str]:
    from hotloop.core.settings import as_tree, flatten

    return set(flatten(as_tree(hotloop.preset(preset))))


def test_an_old_name_on_the_command_line_is_told_with_todays() -> None:
    for old, now in (("optimiser", "optimizer"), ("clip", "clip_range"), ("normalise", "normalize")):
        with pytest.raises(SettingsError) as caught:
            build(PPOSettings, {old: {}})
        assert caught.value.hint == f"it is called `{now}` now"


def test_two_names_of_one_setting_are_refused() -> None:
    with pytest.raises(SettingsError, match="has both `warmup_env_steps` and `learning_starts`"):
        upgraded({"warmup_env_steps": 1, "learning_starts": 1})


@pytest.mark.parametrize("schema", [0, 3, "2", True, [2]])
def test_settings_of_another_schema_are_refused(schema: object) -> None:
    with pytest.raises(SettingsError, match="settings of schema"):
        upgraded({"schema": schema})


def test_old_names_are_read_in_files_only(tmp_path) -> None:
    file = tmp_path / "old.toml"
    file.write_text('algorithm = "dqn"\nwarmup_env_steps = 7\n[optimiser]\nlr = 0.5\n')
    settings = hotloop.preset(str(file))
    assert (settings.learning_starts, settings.optimizer.learning_rate) == (7, 0.5)
    with pytest.raises(SettingsError, match="learning_starts"):
        hotloop.preset("dqn", warmup_env_steps=7)


def test_a_run_says_which_names_its_settings_have(tmp_path) -> None:
    with Run.create(tmp_path / "run", "label", {"seed": 1}) as run:
        assert (run.path / "settings.toml").read_text().startswith(f"schema = {SETTINGS_SCHEMA}\n")
        assert run.settings() == {"seed": 1}
