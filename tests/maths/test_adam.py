"""Adam on a flat vector equals torch's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import tensor

from hotloop.maths.adam import adam_step, clip_scale


def test_the_first_step_moves_every_parameter_by_the_learning_rate():
    parameters, moments = tensor([1.0, 1.0]), (torch.zeros(2), torch.zeros(2))
    adam_step(parameters, tensor([0.5, -4.0]), moments, (0.9, 0.999, 1e-8), lr=0.1, count=1)
    assert parameters.tolist() == pytest.approx([0.9, 1.1], rel=1e-6)
    assert moments[0].tolist() == pytest.approx([0.05, -0.4])
    assert moments[1].tolist() == pytest.approx([0.00025, 0.016])


@pytest.mark.parametrize(
    "constants", [(0.9, 0.999, 1e-8), (0.0, 0.99, 1e-5), (0.5, 0.5, 1e-3), (0.95, 0.999, 1.5e-4)], ids=str
)
def test_fifty_steps_equal_torch_adam(constants):
    draw = torch.Generator().manual_seed(0)
    start = torch.randn(500, generator=draw)
    ours, theirs = start.clone(), torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Adam([theirs], lr=1e-3, betas=constants[:2], eps=constants[2])
    moments = (torch.zeros(500), torch.zeros(500))
    for count in range(1, 51):
        gradient = torch.randn(500, generator=draw) * 10.0 ** (count % 7 - 3)
        lr = 1e-3 / count
        optimizer.param_groups[0]["lr"] = lr
        theirs.grad = gradient.clone()
        optimizer.step()
        adam_step(ours, gradient, moments, constants, lr, count)
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("norm", "limit", "scale"), [(5.0, 10.0, 1.0), (20.0, 10.0, 0.5), (0.0, 1.0, 1.0), (10.0, 1.0, 0.1)]
)
def test_the_clip_scale_by_hand(norm, limit, scale):
    assert clip_scale(tensor(norm), limit).item() == pytest.approx(scale, rel=1e-5)


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=20), st.floats(0.015625, 50, width=32))
def test_clipping_equals_torchs(gradient, limit):
    parameter = torch.nn.Parameter(torch.zeros(len(gradient)))
    parameter.grad = tensor(gradient)
    norm = torch.nn.utils.clip_grad_norm_([parameter], limit)
    ours = tensor(gradient) * clip_scale(tensor(gradient).norm(), limit)
    torch.testing.assert_close(ours, parameter.grad)
    assert ours.norm() <= limit * (1 + 1e-5)
    assert norm.item() == pytest.approx(tensor(gradient).norm().item(), rel=1e-6)
