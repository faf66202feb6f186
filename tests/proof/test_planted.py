"""Planted differences are all found, with the field or value that differs first; equal rewrites are called equal."""

from __future__ import annotations

import pytest

from hotloop.proof.env_pairs import prove_envs
from hotloop.proof.function_pairs import Pair, check_pair
from hotloop.proof.verdict import Proof
from tests.proof import planted_env, planted_update

INPUTS = planted_update.inputs()


def named(table: list) -> list:
    return [pytest.param(*row, id=f"{number}") for number, row in enumerate(table)]


def of_envs(old: str = "", new: str = "") -> Proof:
    return prove_envs(planted_env.made(), planted_env.made(old, new), num_envs=3, env_steps=450, episodes=90, seconds=0)


def of_updates(old: str = "", new: str = "") -> Proof:
    pair = Pair(
        planted_update.made(), planted_update.made(old, new), INPUTS, tolerance=1e-5, gradients=False, made=False
    )
    return check_pair(pair)


def test_there_are_fifty_of_each_and_twenty_rewrites() -> None:
    assert len(planted_env.MUTANTS) >= 50
    assert len(planted_update.MUTANTS) >= 50
    assert len(planted_env.REWRITES) + len(planted_update.REWRITES) >= 20


@pytest.mark.parametrize(("old", "new", "field"), named(planted_env.MUTANTS))
def test_a_wrong_env_is_told_by_the_field_that_differs_first(old: str, new: str, field: str) -> None:
    found = of_envs(old, new).difference
    assert found is not None
    assert found.what.split("[")[0] == field, found.sentence()


@pytest.mark.parametrize(("old", "new", "value"), named(planted_update.MUTANTS))
def test_a_wrong_update_is_told_by_the_value_that_differs_first(old: str, new: str, value: str) -> None:
    found = of_updates(old, new).difference
    assert found is not None
    assert value == "result" or f"['{value}']" in found.what, found.sentence()


@pytest.mark.parametrize(("old", "new"), named([("", ""), *planted_env.REWRITES]))
def test_an_equal_rewrite_of_the_env_is_called_equal(old: str, new: str) -> None:
    proof = of_envs(old, new)
    assert proof.equal, proof.headline()
    assert proof.evidence["episodes"] > 20


@pytest.mark.parametrize(("old", "new"), named([("", ""), *planted_update.REWRITES]))
def test_an_equal_rewrite_of_the_update_is_called_equal(old: str, new: str) -> None:
    proof = of_updates(old, new)
    assert proof.equal, proof.headline()
