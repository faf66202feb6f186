"""Every one-edit typo of every setting, as somebody would type it: exit 2, one sentence, the right key, no traceback.

`tests/core/test_settings_typos.py` asks the loader itself; here the whole verb is asked, for both algorithms. The quick
suite takes one typo in ten.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest

from hotloop.cli.main import main
from hotloop.core import overrides, settings
from hotloop.core.settings import leaf_types
from hotloop.core.values import nearest
from hotloop.presets.registry import ALGORITHMS
from tests.core.test_settings_typos import distance

NEIGHBORS = dict(zip("abcdefghijklmnopqrstuvwxyz", "svxswdfguhjknbioaedrycqztx", strict=True))
"""A key that lies beside each letter on the keyboard."""
KEYS = {name: list(leaf_types(cls)) for name, cls in ALGORITHMS.items()}
CASES = [(name, key) for name, keys in KEYS.items() for key in keys]


def typos(flag: str) -> Iterator[str]:
    """Each letter left out, doubled by its neighbor, replaced by it, and swapped with the one behind it."""
    for i, letter in enumerate(flag):
        near = NEIGHBORS.get(letter, "-" if letter == "." else ".")
        yield flag[:i] + flag[i + 1 :]
        yield flag[: i + 1] + near + flag[i + 1 :]
        yield flag[:i] + near + flag[i + 1 :]
        if i + 1 < len(flag):
            yield flag[:i] + flag[i + 1] + letter + flag[i + 2 :]


def wrong_flags(algorithm: str, key: str) -> list[str]:
    """Without those that are right by chance, that name another verb's flag, or that no longer look like a flag."""
    right = {known.replace("_", "-") for known in KEYS[algorithm]}
    tables = {known.rsplit(".", depth)[0] for known in right for depth in range(1, known.count(".") + 1)}
    flags = dict.fromkeys(typos(key.replace("_", "-")))
    return [flag for flag in flags if flag not in {*right, *tables, "json", "quiet", "help"}]


@pytest.fixture(autouse=True)
def quick_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers, each worked out once."""
    cached = functools.cache(nearest)
    for module in (settings, overrides):
        if hasattr(module, "nearest"):
            monkeypatch.setattr(module, "nearest", lambda wrong, known: cached(wrong, tuple(known)))


PRESETS = {"dqn": "cartpole-dqn", "ppo": "cartpole-ppo", "sac": "pendulum-sac"}


def check(algorithm: str, key: str, flags: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was wrong with the answers."""
    faults = []
    for flag in flags:
        code = main(["train", PRESETS[algorithm], f"--{flag}", "1"])
        said = capsys.readouterr()
        found = re.search(r"did you mean `([^`]+)`", said.err)
        near = (found.group(1) if found else "").lstrip("-").replace("-", "_")
        typed = flag.replace("-", "_")
        is_right = near == key or (near in KEYS[algorithm] and distance(near, typed) <= distance(key, typed))
        if code != 2 or said.out or "Traceback" in said.err or not said.err.startswith("error: ") or not is_right:
            faults.append(f"--{flag}: exit {code}, {said.err.strip()}")
    return faults


@pytest.mark.parametrize(("algorithm", "key"), CASES)
def test_a_typo_on_the_command_line_suggests_the_right_key(
    algorithm: str, key: str, run_folder: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not check(algorithm, key, wrong_flags(algorithm, key)[len(key) % 10 :: 10], capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "key"), CASES)
def test_every_typo_on_the_command_line_suggests_the_right_key(
    algorithm: str, key: str, run_folder: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not check(algorithm, key, wrong_flags(algorithm, key), capsys)
