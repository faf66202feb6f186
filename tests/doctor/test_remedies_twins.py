"""The healthy twin of a slow script computes what the script computes, wherever the remedy keeps the computation.

Both run here as programs from the same seeds, for fifty updates or more: the last observations and rewards, the
network's parameters, and what else a script names (`OUTCOME` in `training.py`) are compared.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hotloop.doctor.rules import load_rules

SLOW_SCRIPTS = Path(__file__).parents[1] / "slow_scripts"
TABLE = re.findall(r"^\| `(\w+)` \| .*? \| (\w+) \|", (SLOW_SCRIPTS / "README.md").read_text(), re.MULTILINE)
CHANGES_LEARNING = {rule.code for rule in load_rules() if rule.kind == "changes learning"}
KEEPING = [name for name, rule in TABLE if rule not in CHANGES_LEARNING]
SELDOM = {"act_gradients": 64, "env_wrappers": 64, "log_print": 64, "machine_workers": 64, "update_keys": 32}
SELDOM |= {"sync_tensors": 32, "grow_history": 32, "store_insert": 256}
"""Env calls per update, where there are more than eight."""
UPDATES = 50
MOST_IMPORTANT = ("update_calls", "grow_history", "store_rows", "env_wrappers", "update_tensors")


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    yield
    torch.set_num_threads(1)
    torch.set_flush_denormal(False)


def outcome(name: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> dict[str, Any]:
    env_calls = UPDATES * SELDOM.get(name, 8)
    monkeypatch.setattr(sys, "argv", [name, "--env-calls", str(env_calls), *more])
    monkeypatch.syspath_prepend(SLOW_SCRIPTS)
    monkeypatch.delitem(sys.modules, "training", raising=False)  # it seeds, and keeps the outcome
    runpy.run_path(str(SLOW_SCRIPTS / f"{name}.py"), run_name="__main__")
    return dict(sys.modules["training"].OUTCOME)


def compares(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    slow, healthy = outcome(name, monkeypatch), outcome(name, monkeypatch, "--healthy")
    assert slow.keys() == healthy.keys()
    assert "parameters" in slow
    for what, value in slow.items():
        if name in OTHER_DRAWS and what in LEARNED:
            continue
        both = value, healthy[what]
        mine, theirs = map(np.sort, both) if name in REORDERED and what == "parameters" else both
        if name in ROUNDED_OTHERWISE:
            assert np.linalg.norm(theirs - mine) < 1e-3 * np.linalg.norm(mine), f"{name}: {what}"
        else:
            np.testing.assert_allclose(theirs, mine, rtol=1e-4, atol=1e-4, err_msg=f"{name}: {what}")


REORDERED = ("update_names", "update_tensors")
"""The same numbers lie in another order."""
OTHER_DRAWS, LEARNED = ("store_replacement",), ("obs", "reward", "parameters")
"""Other rows are drawn, each as likely: what is learned from them differs."""
ROUNDED_OTHERWISE = ("act_singly", "update_rows")
"""Forwards of one row and of many round differently: of 25,600 actions one had values so close that it is another."""


@pytest.mark.parametrize("name", MOST_IMPORTANT)
def test_a_twin_whose_remedy_was_wrong_once_computes_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compares(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KEEPING if name not in MOST_IMPORTANT])
def test_the_twin_of_an_exact_remedy_computes_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compares(name, monkeypatch)
