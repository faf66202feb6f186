from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hotloop.compare.arms import Arm, parse_arms
from hotloop.core.errors import SettingsError


def resolve(source: str, words: Sequence[str]) -> dict[str, Any]:
    return {"source": source, "words": list(words)}


def parse(*texts: str, common: Sequence[str] = ()) -> list[Arm]:
    return parse_arms(texts, common, resolve)


def test_an_arm_is_called_by_its_words_unless_a_label_stands_in_front() -> None:
    plain, overridden, labelled = parse(
        "cartpole-dqn", "cartpole-dqn --double false", "one net=cartpole-dqn --double=false"
    )
    assert (plain.label, plain.folder) == ("cartpole-dqn", "cartpole-dqn")
    assert (overridden.label, overridden.folder) == ("cartpole-dqn --double false", "cartpole-dqn-double-false")
    assert (labelled.label, labelled.folder, labelled.source) == ("one net", "one-net", "cartpole-dqn")
    assert labelled.words == ("--double=false",)


def test_an_equals_sign_in_a_setting_or_a_file_name_makes_no_label(tmp_path: Path) -> None:
    file = tmp_path / "lr=3.toml"
    file.write_text("")
    setting, named = parse("cartpole-dqn --double=false", f"{file} --seed-of-doubt 1")
    assert setting.source == "cartpole-dqn"
    assert named.source == str(file)
    assert named.label == "lr=3 --seed-of-doubt 1"


def test_common_overrides_come_first_so_that_an_arm_has_the_last_word() -> None:
    (arm,) = parse("a --gamma 0.5", common=["--gamma", "0.9", "--double"])
    assert arm.words == ("--gamma", "0.9", "--double", "--gamma", "0.5")
    assert arm.settings["words"] == list(arm.words)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a", "a"], "two arms are called `a`"),
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
