"""The soak script: what it calls growth, and that a short one is flat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.soak import Sample, Watch

SOAK = Path(__file__).with_name("soak.py")


def watch_of(samples: list[Sample]) -> Watch:
    watch = Watch("planted", len(samples))
    watch.samples = samples
    return watch


def test_what_stays_is_flat_whatever_it_took_to_get_there() -> None:
    warm_up = [Sample(at, 50.0 * at, at, at, 0) for at in range(4)]
    steady = [Sample(at, 200.0 + at % 3, 9, 4, 2) for at in range(4, 20)]
    assert watch_of(warm_up + steady).grown(8.0) == []


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        ([Sample(at, 100.0 + at, 9, 4, 0) for at in range(20)], "memory from 105.5 to 117.5 MB"),
        ([Sample(at, 100.0, 9 + at // 10, 4, 0) for at in range(20)], "handles from 9 to 10"),
        ([Sample(at, 100.0, 9, 4 + (at == 19), 0) for at in range(20)], "threads from 4 to 5"),
        ([Sample(at, 100.0, 9, 4, at // 15) for at in range(20)], "children from 0 to 1"),
    ],
)
def test_what_grows_is_named(planted: list[Sample], named: str) -> None:
    assert watch_of(planted).grown(8.0) == [named]


def soak(*words: str) -> None:
    done = subprocess.run([sys.executable, str(SOAK), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\nflat\n")
    print(done.stdout)


def test_a_short_soak_is_flat() -> None:
    soak("--env-steps", "100k", "--checkpoints", "10", "--worker-kills", "3")


@pytest.mark.slow
def test_a_tenth_of_the_soak_is_flat() -> None:
    soak("--env-steps", "10M", "--checkpoints", "100", "--worker-kills", "50")
