"""Floating-point work that can be counted by hand, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from hotloop.doctor.finding import Finding, Remedy, Rule, findings
from hotloop.doctor.roofline import Roofline, arithmetic_share, count_products, matrix_speed, roofline
from hotloop.doctor.trace import Counts
from tests.doctor.rule_traces import made


def network(*widths: int) -> nn.Sequential:
    layers = [nn.Linear(before, after) for before, after in zip(widths, widths[1:], strict=False)]
    return nn.Sequential(*[one for layer in layers for one in (layer, nn.ReLU())][:-1])


def test_a_layer_forward_is_two_operations_for_each_weight_and_row() -> None:
    layer, rows = nn.Linear(3, 5), torch.rand(10, 3)
    assert count_products(lambda: layer(rows)) == 2 * 10 * 15
    with torch.no_grad():
        assert count_products(lambda: layer(rows)) == 2 * 10 * 15


def test_backward_costs_twice_forward_where_both_gradients_are_wanted() -> None:
    layer, rows = nn.Linear(3, 5), torch.rand(10, 3, requires_grad=True)
    out = layer(rows).sum()
    assert count_products(out.backward) == 2 * (2 * 10 * 15)
    frozen = nn.Linear(3, 5).requires_grad_(False)
    out = frozen(rows).sum()
    assert count_products(out.backward) == 2 * 10 * 15


def test_a_dqn_update_by_hand() -> None:
    """4-64-64-2 with 32 rows: two forwards, a backward whose first layer wants no gradient of its inputs."""
    online, target, obs = network(4, 64, 64, 2), network(4, 64, 64, 2), torch.rand(32, 4)
    optimiser = torch.optim.Adam(online.parameters())

    def update() -> None:
        with torch.no_grad():
            y = target(obs).max(1).values
        loss = (online(obs)[:, 0] - y).pow(2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    first, middle, head = 4 * 64, 64 * 64, 64 * 2
    forward = 2 * 32 * (first + middle + head)
    backward = 2 * 32 * (first + 2 * middle + 2 * head)
    assert count_products(update) == 2 * forward + backward == 1_130_496


def test_a_convolution_by_hand() -> None:
    """8 filters of 3 x 3 over 3 planes, 5 pictures of 10 x 10: 8 x 8 places each."""
    layer, pictures = nn.Conv2d(3, 8, 3), torch.rand(5, 3, 10, 10)
    forward = 2 * 5 * 8 * 64 * 27
    assert count_products(lambda: layer(pictures)) == forward
    assert count_products(lambda: layer(pictures).sum().backward()) == 2 * forward  # nobody wants its inputs' gradient


def test_products_of_stacks_and_vectors_by_hand() -> None:
    assert count_products(lambda: torch.rand(7, 2, 3) @ torch.rand(7, 3, 4)) == 2 * 7 * 2 * 3 * 4
    assert count_products(lambda: torch.rand(2, 3) @ torch.rand(3)) == 2 * 2 * 3
    assert count_products(lambda: torch.rand(9) * torch.rand(9)) == 0


def test_share_and_sentence() -> None:
    found = Roofline(operations=0.5e9, seconds=0.010, speed=100e9)
    assert found.least_seconds == pytest.approx(0.005)
    assert found.share == pytest.approx(0.5)
    words = found.sentence()
    assert words.startswith(
        "Updates run at 50 % of the speed of PyTorch's own matrix products on this core: 0.5 GFLOP in 10 ms, where its "
        "products of 512 x 512 make 100 GFLOP per second (other code may multiply faster)"
    )
    assert words.endswith("The rest of an update is not arithmetic.")
    near = Roofline(0.5e9, 0.006, 100e9).sentence()
    assert "PyTorch has little to gain on this core but by fewer products (a smaller network, a smaller batch" in near
    assert "8.9 MFLOP in 0.118 ms" in Roofline(8.9e6, 118e-6, 130e9).sentence()
    two = Roofline(0.5e9, 0.010, 100e9, cores=2)
    assert two.share == pytest.approx(0.25)
    assert "of PyTorch's own matrix products on these 2 cores" in two.sentence()


def promised(gain: float, rule: str, kind: str = "to rounding", share: float = 0.8) -> Rule:
    finding = Finding(share=share, evidence="seen.", expected_gain=gain)
    return Rule(rule, "title", "", lambda trace: finding, Remedy("do"), kind)


def test_gains_of_updates_leave_their_products() -> None:
    """Updates take 8 of 10 s, three quarters of it products: 2 s can go at most."""
    trace = made(
        {"update": 8.0},
        counts=Counts(env_steps=1_000, updates=1_000),
        counted=Counts(update_operations=6e8, matrix_speed=100e9),
        machine={"torch_threads": 1, "cores": 1},
    )
    found = roofline(trace)
    assert found is not None
    assert found.share == pytest.approx(0.75)
    assert arithmetic_share(trace) == pytest.approx(0.6)
    (one,) = findings(trace, [promised(4.0, "UPDATE006")])
    assert 1.25 <= one.expected_gain < 1.45  # 10 / 8, and some relief
    assert "take 60% of the loop" in one.evidence
    for rule, kind in (("UPDATE005", "changes learning"), ("ENV001", "identical")):
        (one,) = findings(trace, [promised(4.0, rule, kind)])
        assert one.expected_gain == 4.0
    (less,) = findings(trace, [promised(1.1, "UPDATE006")])
    assert (less.expected_gain, less.evidence) == (1.1, "Seen.")
    assert findings(replace(trace, counted=Counts()), [promised(4.0, "UPDATE006")])[0].expected_gain == 4.0
    (acting_too,) = findings(trace, [promised(4.0, "UPDATE008", share=0.95)])
    assert 1 / 0.65 <= acting_too.expected_gain < 2.0  # 95 % less 60 % can go


def test_the_speed_of_this_core_is_measured() -> None:
    assert matrix_speed(0.01) > 1e8
