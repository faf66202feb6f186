"""Shared by all tests: one thread, Ctrl-C that interrupts, runs in a folder of their own."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A background job, `nohup` and many CI runners ignore SIGINT, and children inherit that: tests that press Ctrl-C
    # would wait for ever. Every process of the suite reads this file, and its children then begin with the default.
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "hotloop", deadline=None, max_examples=30, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hotloop")

LONG = ("test_tutorial", "test_rules_slow_scripts", "test_killed_parents", "test_mutants", "test_presets")
LONG += ("test_signals", "test_workers_lost", "test_tune_search", "test_hostile_envs", "test_planted")
LONG += ("test_story", "test_program_pairs")
"""Files that take longest, begun first: whole files are dealt out, and the last one is waited for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


def pytest_collection_finish() -> None:
    """A million objects (PyTorch, numba, seven thousand tests) that no garbage collector needs to look through again,
    which takes half a second each time that a test or a measurement asks for it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def tiny_numbers_kept() -> Iterator[None]:
    """Verbs that measure flush denormals for their whole process; other tests need them."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that `runs/` lands there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
