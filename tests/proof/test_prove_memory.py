from __future__ import annotations

import numpy as np
import torch

from hotloop.proof.memory import measure


def test_an_array_counts_with_its_bytes():
    assert 800_000 <= measure(lambda: np.zeros(100_000)).peak_bytes < 810_000


def test_a_tensor_counts_with_its_bytes():
    assert 400_000 <= measure(lambda: torch.zeros(100_000)).peak_bytes < 410_000


def test_the_peak_is_what_is_held_at_once():
    def one_after_another() -> None:
        for _ in range(5):
            np.zeros(100_000)

    assert measure(one_after_another).peak_bytes < 1_000_000


def test_every_object_and_every_tensor_is_an_allocation():
    few = measure(lambda: [torch.empty(4) for _ in range(10)]).allocations
    many = measure(lambda: [torch.empty(4) for _ in range(30)]).allocations
    assert many - few >= 20


def test_a_call_that_reuses_its_buffers_allocates_next_to_nothing():
    buffer = np.zeros(100_000)
    memory = measure(lambda: buffer.fill(1.0))
    assert memory.peak_bytes < 1000
    assert memory.allocations <= 2
