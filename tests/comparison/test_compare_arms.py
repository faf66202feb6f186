from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hotloop.comparison import arms
from hotloop.comparison.arms import Arm, parse_arms, split_argv
from hotloop.core.errors import SettingsError
from tests.comparison.synthetic_runs import make_arm, write_run


@pytest.fixture(autouse=True)
def _any_name_is_a_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    def tree_from_argv(source: str, words: Sequence[str]) -> dict[str, Any]:
        return {"source": source, "words": list(words)}

    monkeypatch.setattr(arms, "tree_from_argv", tree_from_argv)


def parse(*texts: str, common: Sequence[str] = ()) -> list[Arm]:
    return parse_arms(texts, common)


def test_an_arm_is_called_by_its_words_unless_a_label_stands_in_front() -> None:
    plain, overridden, labelled = parse(
        "cartpole-dqn", "cartpole-dqn --double false", "one net=cartpole-dqn --double=false"
    )
    assert (plain.label, plain.folder) == ("cartpole-dqn", "cartpole-dqn")
    assert (overridden.label, overridden.folder) == ("cartpole-dqn, double false", "cartpole-dqn-double-false")
    assert (labelled.label, labelled.folder, labelled.source) == ("one net", "one-net", "cartpole-dqn")
    assert labelled.words == ("--double=false",)


def test_an_equals_sign_in_a_setting_or_a_file_name_makes_no_label(tmp_path: Path) -> None:
    file = tmp_path / "lr=3.toml"
    file.write_text("")
    setting, named = parse("cartpole-dqn --double=false", f"{file} --seed-of-doubt 1")
    assert setting.source == "cartpole-dqn"
    assert named.source == str(file)
    assert named.label == "lr=3, seed-of-doubt 1"


def test_common_overrides_come_first_so_that_an_arm_has_the_last_word() -> None:
    (arm,) = parse("a --gamma 0.5", common=["--gamma", "0.9", "--double"])
    assert arm.words == ("--gamma", "0.9", "--double", "--gamma", "0.5")
    assert arm.settings["words"] == list(arm.words)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a", "a"], "are the same"),
        (["x=a", "X=b"], "two arms are called"),
        (["a --seed 3"], "--seeds N"),
        (["a --run_dir=there"], "--out FOLDER"),
        (['a --env.id "b'], "cannot be read"),
        ([""], "an arm is empty"),
        (["x="], "after its label `x`"),
        (["..=a"], "folder name"),
    ],
)
def test_a_mistake_says_what_to_do(texts: list[str], expected: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse(*texts)
    assert expected in str(raised.value)


def test_labels_are_short_and_numbered_where_they_would_meet() -> None:
    long = " --network.hidden 256 256 --optimizer.learning-rate 0.001 --replay.buffer-size 100000 --gamma "
    arms = parse("a --env.x 1", "a --agent.x 1", f"a{long}0.9", f"a{long}0.99", "A")
    assert [arm.label for arm in arms] == [
        "a, x 1",
        "a, x 1 (2)",
        "a, hidden 256 256, learning-rate 0.001, ...",
        "a, hidden 256 256, learning-rate 0.001, ... (2)",
        "A",
    ]
    assert len({arm.folder.lower() for arm in arms}) == 5


def split(*words: str) -> tuple[list[str], list[str]]:
    return split_argv(words, ("--seeds", "--out"), ("--json",), ("snake-dqn", "cartpole-dqn"))


def test_overrides_follow_their_arm() -> None:
    assert split("snake-dqn", "--updates-per-env-step", "0.03", "snake-dqn", "--seeds", "8") == (
        ["--seeds", "8"],
        ["snake-dqn --updates-per-env-step 0.03", "snake-dqn"],
    )
    assert split("snake-dqn", "--network.hidden", "64", "64", "--json", "one=cartpole-dqn", "--double", "x.toml") == (
        ["--json"],
        ["snake-dqn --network.hidden 64 64", "one=cartpole-dqn --double", "x.toml"],
    )


def test_quoted_arms_and_misspelt_ones_are_arms() -> None:
    assert split("a=snake-dqn --x 1", "cartpol-dqn", "--seeds=3") == (
        ["--seeds=3"],
        ["a=snake-dqn --x 1", "cartpol-dqn"],
    )
    assert split("snake-dqn", "--env.id=cartpole-dqn", "--label", "two words")[1] == [
        "snake-dqn --env.id=cartpole-dqn --label 'two words'"
    ]


def test_a_folder_counts_as_an_arm_only_where_it_holds_runs(run_folder: Path) -> None:
    (run_folder / "64").mkdir()
    write_run(run_folder / "old" / "seed-0", make_arm("old"), 0, [1.0])
    assert split("snake-dqn", "--hidden", "64", "old")[1] == ["snake-dqn --hidden 64", "old"]


def test_an_option_before_any_arm_must_be_known() -> None:
    with pytest.raises(SettingsError, match="did you mean `--seeds`"):
        split("--seds", "8")
