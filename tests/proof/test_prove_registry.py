from __future__ import annotations

import pytest

from hotloop.core.errors import SettingsError
from hotloop.proof.case import Case
from hotloop.proof.registry import Registry


def case(name: str, is_default: bool = False) -> Case:
    family, variant, lane, size = name.split("/")
    return Case(family, size, lambda: None, variant, lane, is_default=is_default)  # type: ignore[arg-type,return-value]


NAMES = [
    "dqn-update/dqn/eager/b32",
    "dqn-update/dqn/native/b32",
    "dqn-update/double/native/b32",
    "dqn-update/double/native/b256",
    "q-loss/forward/native/b32",
]
REGISTRY = Registry([case(name, name == NAMES[0]) for name in NAMES], {"compiled": "there is no C++ compiler"})


def chosen(*names: str, full: bool = False) -> list[str]:
    return [found.name for found in REGISTRY.select(names, full)]


def test_without_names_the_default_set_runs():
    assert chosen() == NAMES[:1]


def test_full_is_everything():
    assert chosen(full=True) == NAMES


def test_a_family_is_all_of_it():
    assert chosen("dqn-update") == NAMES[:4]


def test_a_whole_name_is_one_case():
    assert chosen("dqn-update/double/native/b32") == [NAMES[2]]


def test_leading_parts_choose_all_below_them():
    assert chosen("dqn-update/double") == NAMES[2:4]


def test_parts_may_be_left_out():
    assert chosen("dqn-update/native") == NAMES[1:4]
    assert chosen("dqn-update/native/b256") == [NAMES[3]]


def test_a_case_named_twice_runs_once():
    assert chosen("q-loss", "q-loss/forward") == [NAMES[4]]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("dqn-updat", "dqn-update"),
        ("q_loss", "q-loss"),
        ("dqn-update/duoble", "dqn-update/double"),
        ("dqn-update/double/nativ/b32", "dqn-update/double/native/b32"),
    ],
)
def test_a_typo_is_answered_with_the_right_name(wrong, right):
    with pytest.raises(SettingsError, match=f"no case `{wrong}`") as error:
        chosen(wrong)
    assert error.value.hint == f"did you mean `{right}`?"


def test_a_lane_that_is_not_there_says_why():
    with pytest.raises(SettingsError, match="the compiled lane is not available") as error:
        chosen("dqn-update/dqn/compiled/b32")
    assert error.value.hint == "there is no C++ compiler"
