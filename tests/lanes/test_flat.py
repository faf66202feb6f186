"""Parameters as views of one vector: what breaks the views, that it is noticed, and what mends it."""

import copy

import pytest
import torch
from torch import nn

from hotloop.lanes.optimizer import FlatParameters


def made() -> tuple[nn.Module, FlatParameters]:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    return module, FlatParameters(module)


def backward(module: nn.Module) -> None:
    module(torch.ones(5, 3)).square().sum().backward()


def test_a_module_answers_as_before_and_keeps_its_order():
    module = nn.Linear(2, 1)
    expected = torch.cat([module.weight.detach().reshape(-1), module.bias.detach()])
    answer = module(torch.ones(1, 2))
    flat = FlatParameters(module)
    assert torch.equal(flat.values, expected)
    assert torch.equal(module(torch.ones(1, 2)), answer)
    assert flat.is_attached()


def test_a_change_of_the_vector_is_a_change_of_the_module_and_back():
    module, flat = made()
    flat.values.fill_(0.5)
    assert all((parameter == 0.5).all() for parameter in module.parameters())
    with torch.no_grad():
        module[2].bias.fill_(7.0)
    assert flat.values[-2:].tolist() == [7.0, 7.0]
    flat.load(torch.arange(26.0))
    assert module[0].weight[0].tolist() == [0.0, 1.0, 2.0]
    assert flat.is_attached()


def test_gradients_arrive_in_the_flat_vector_over_several_updates():
    module, flat = made()
    for _ in range(3):
        flat.gradient.zero_()
        backward(module)
        assert torch.equal(flat.gradient, torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters()]))
        assert flat.gradient.abs().sum() > 0
        flat.values.add_(flat.gradient, alpha=-0.01)
        assert flat.is_attached()


def test_moving_to_the_same_device_changes_nothing():
    module, flat = made()
    module.to("cpu")
    assert flat.is_attached()
    assert flat.to("cpu") is flat
    assert flat.is_attached()


def test_parameters_with_storage_of_their_own_are_noticed_and_mended():
    module, flat = made()
    before = flat.values.clone()
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()
    assert not flat.is_attached()
    flat.attach()
    assert flat.is_attached()
    assert torch.equal(flat.values, before)
    flat.values.zero_()
    assert module[0].weight.abs().sum() == 0


def test_one_replaced_parameter_is_enough():
    module, flat = made()
    module[2].bias.data = module[2].bias.data.clone()
    assert not flat.is_attached()


@pytest.mark.parametrize("assign", [False, True])
def test_loading_a_state_dict_by_copy_keeps_the_views_and_by_assignment_does_not(assign):
    module, flat = made()
    saved = {name: value.clone() for name, value in module.state_dict().items()}
    module.load_state_dict(saved, assign=assign)
    assert flat.is_attached() is not assign
    flat.attach()
    assert flat.is_attached()


def test_a_deep_copy_of_the_module_is_a_module_of_its_own():
    module, flat = made()
    other = copy.deepcopy(module)
    flat.values.zero_()
    assert flat.is_attached()
    assert all(parameter.abs().sum() > 0 for parameter in other.parameters())
    assert FlatParameters(other).is_attached()


def test_a_deep_copy_of_the_owner_is_not_attached_until_it_is_mended():
    _, flat = made()
    other = copy.deepcopy(flat)
    assert not other.is_attached()
    other.attach()
    assert other.is_attached()
    assert torch.equal(other.values, flat.values)
    other.values.zero_()
    assert flat.values.abs().sum() > 0


def test_dropped_gradients_are_noticed_and_mended():
    module, flat = made()
    module.zero_grad(set_to_none=True)
    assert not flat.is_attached()
    flat.attach()
    assert flat.is_attached()
    backward(module)
    assert flat.gradient.abs().sum() > 0


def test_gradients_that_grew_back_outside_the_vector_are_noticed():
    """After `zero_grad(set_to_none=True)` a backward makes gradients of its own: the flat one would stay zero."""
    module, flat = made()
    module.zero_grad(set_to_none=True)
    backward(module)
    assert flat.gradient.abs().sum() == 0
    assert not flat.is_attached()


def test_zeroing_in_place_keeps_the_views():
    module, flat = made()
    backward(module)
    module.zero_grad(set_to_none=False)
    assert flat.gradient.abs().sum() == 0
    assert flat.is_attached()


def test_another_dtype_is_noticed():
    module, flat = made()
    module.double()
    assert not flat.is_attached()


def test_moving_owner_and_module_together_keeps_them_attached():
    module, flat = made()
    flat.to("meta")
    assert all(parameter.device.type == "meta" for parameter in module.parameters())
    assert flat.values.device.type == flat.gradient.device.type == "meta"
