"""One seed, many streams: stable, apart from each other, and exact after a restore."""

import json

import numpy as np
import pytest

from hotloop.core.rng import derive_seed, derive_seeds, generator_state, restore_generator, stream

PINNED = (
    3999586761668934864,
    17515070889434928955,
    16266361294316068043,
    [2881462319491023646, 15375375788728542094, 7810295970496293316],
)


def test_derived_seeds_are_pinned_since_every_run_depends_on_them():
    assert derive_seed(0) == PINNED[0]
    assert derive_seed(7, "env", 3) == PINNED[1]
    assert derive_seed(1, "policy") == PINNED[2]
    assert derive_seeds(5, 3, "env").tolist() == PINNED[3]


def test_seeds_differ_by_run_name_index_and_kind():
    seeds = [
        derive_seed(seed, *path) for seed in range(20) for path in [(), ("env",), ("env", 0), ("env", "0"), ("env", 1)]
    ]
    assert len(set(seeds)) == len(seeds)
    assert derive_seed(0, "a", "b") != derive_seed(0, "ab")


def test_the_seed_of_an_env_does_not_depend_on_how_many_there_are():
    np.testing.assert_array_equal(derive_seeds(3, 2, "env"), derive_seeds(3, 8, "env")[:2])
    assert derive_seeds(3, 2, "env").dtype == np.uint64


def test_streams_of_one_seed_are_independent():
    draws = np.stack([stream(11, name).standard_normal(20_000) for name in ("env", "policy", "replay", "init")])
    correlation = np.corrcoef(draws) - np.eye(4)
    assert np.abs(correlation).max() < 0.03  # four standard deviations of chance


@pytest.mark.parametrize("draws", [0, 1, 2, 7])
def test_a_restored_generator_continues_exactly(draws):
    generator = stream(1, "x")
    generator.integers(0, 10, size=draws, dtype=np.uint32)  # leaves half a 64-bit draw behind where odd
    saved = json.loads(json.dumps(generator_state(generator)))
    expected = [generator.integers(0, 2**31, size=5, dtype=np.uint32).tolist(), generator.random(3).tolist()]
    other = stream(2, "y")
    restore_generator(other, saved)
    assert [other.integers(0, 2**31, size=5, dtype=np.uint32).tolist(), other.random(3).tolist()] == expected
