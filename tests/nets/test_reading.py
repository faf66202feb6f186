"""Modules written in many ways, and what is read of them: the same layout, or the reason why there is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from hotloop.lanes.native.activation_kernels import CODES
from hotloop.nets.modules import ACTIVATIONS
from hotloop.nets.reading import FORWARDS, read_actor_critic, read_q_network


class Written(nn.Module):
    """A module whose forward is given; `layers` become attributes."""

    def __init__(self, forward, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)
        self._forward = forward

    def forward(self, obs):
        return self._forward(self, obs)


def linear(*sizes: int) -> nn.Linear:
    return nn.Linear(*sizes)


def two(forward):
    """Of a hidden layer `a` and an output layer `b`."""
    return Written(forward, b=linear(8, 3), a=linear(4, 8))


def if_flat(net, x):
    if x.dim() == 1:
        x = x[None]
    return net.b(net.a(torch.as_tensor(x, dtype=torch.float32)).relu())


def in_place(net, x):
    x = net.a(x)
    x.relu_()
    return net.b(x)


def by_hand(net, x):
    hidden = torch.relu(x.matmul(net.a.weight.t()) + net.a.bias)
    return torch.addmm(net.b.bias, hidden, net.b.weight.T)


def with_unused_sums(net, x):
    _ = net.a.weight.square().sum()  # what does not reach the output does not matter
    return net.b(torch.relu(net.a(x)))


WRITINGS = {
    "sequential": lambda: nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 3)),
    "nested": lambda: nn.Sequential(nn.Flatten(), nn.Sequential(linear(4, 8), nn.ReLU(inplace=True)), linear(8, 3)),
    "attributes": lambda: two(lambda net, x: net.b(functional.relu(net.a(x)))),
    "torch.relu, flattened": lambda: two(lambda net, x: net.b(torch.relu(net.a(x.flatten(1))))),
    "view and float": lambda: two(lambda net, x: net.b(torch.relu(net.a(x.view(x.size(0), -1).float())))),
    "in place": lambda: two(in_place),
    "if on the shape": lambda: two(if_flat),
    "products by hand": lambda: two(by_hand),
    "sums that nobody uses": lambda: two(with_unused_sums),
    "a list of layers": lambda: Written(
        lambda net, x: net.layers[1](torch.relu(net.layers[0](x))), layers=nn.ModuleList([linear(4, 8), linear(8, 3)])
    ),
}


@pytest.mark.parametrize("writing", WRITINGS)
def test_one_network_in_many_writings_is_one_layout(writing):
    module = WRITINGS[writing]()
    reading = read_q_network(module, (4,))
    assert reading.reason == ""
    layout = reading.layout
    assert (layout.obs_size, layout.hidden, layout.activation, layout.num_actions) == (4, (8,), "relu", 3)
    assert not layout.dueling
    sizes = [tuple(module.get_parameter(name).shape) for name in reading.order]
    assert sizes == [(8, 4), (8,), (3, 8), (3,)]


@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh, nn.SELU, nn.LeakyReLU])
def test_every_activation_of_the_native_lane_is_read(activation):
    module = nn.Sequential(linear(4, 8), activation(), linear(8, 8), activation(), linear(8, 3))
    layout = read_q_network(module, (4,)).layout
    assert layout.hidden == (8, 8)
    assert layout.activation in ACTIVATIONS
    assert ACTIVATIONS.keys() == FORWARDS.keys() <= CODES.keys()


def test_a_single_layer_and_an_observation_of_several_axes():
    assert read_q_network(linear(4, 2), (4,)).layout.hidden == ()
    assert read_q_network(nn.Sequential(nn.Flatten(), linear(12, 2)), (3, 4)).layout.obs_size == 12


def dueling(join):
    def forward(net, x):
        x = torch.relu(net.a(x))
        return join(net.value(x), net.advantage(x))

    return Written(forward, advantage=linear(8, 3), value=linear(8, 1), a=linear(4, 8))


DUELING = {
    "v + (a - mean)": lambda v, a: v + (a - a.mean(dim=1, keepdim=True)),
    "v + a - mean": lambda v, a: v + a - a.mean(-1, keepdim=True),
    "a + (v - mean)": lambda v, a: a + (v - a.mean(1).unsqueeze(1)),
    "a - mean + v": lambda v, a: a.sub(a.mean(dim=-1, keepdim=True)).add(v),
    "v expanded": lambda v, a: v.expand_as(a) + a - a.mean(1, keepdim=True).expand_as(a),
}


@pytest.mark.parametrize("join", DUELING)
def test_a_dueling_head_is_read_in_any_order_of_its_sum(join):
    reading = read_q_network(dueling(DUELING[join]), (4,))
    assert reading.layout.dueling
    assert reading.order[-4:] == ("value.weight", "value.bias", "advantage.weight", "advantage.bias")


OTHERS = {
    "a convolution": (lambda: nn.Sequential(nn.Conv1d(2, 4, 1), nn.Flatten(), linear(8, 3)), (2, 2)),
    "layer normalization": (lambda: nn.Sequential(linear(4, 8), nn.LayerNorm(8), nn.ReLU(), linear(8, 3)), (4,)),
    "batch normalization": (lambda: nn.Sequential(linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), linear(8, 3)), (4,)),
    "dropout": (lambda: nn.Sequential(linear(4, 8), nn.ReLU(), nn.Dropout(), linear(8, 3)).eval(), (4,)),
    "`gelu`": (lambda: nn.Sequential(linear(4, 8), nn.GELU(), linear(8, 3)), (4,)),
    "`sigmoid`": (lambda: nn.Sequential(linear(4, 8), nn.Sigmoid(), linear(8, 3)), (4,)),
    "`leaky_relu`": (lambda: nn.Sequential(linear(4, 8), nn.LeakyReLU(0.2), linear(8, 3)), (4,)),
    "several activations": (
        lambda: nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 8), nn.Tanh(), linear(8, 3)),
        (4,),
    ),
    "without a bias": (lambda: nn.Sequential(nn.Linear(4, 8, bias=False), nn.ReLU(), linear(8, 3)), (4,)),
    "without an activation": (lambda: nn.Sequential(linear(4, 8), linear(8, 3)), (4,)),
    "ends with an activation": (lambda: nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 3), nn.Tanh()), (4,)),
    "uses a layer twice": (
        lambda: Written(lambda n, x: n.b(torch.relu(n.a(torch.relu(n.a(x))))), a=linear(4, 4), b=linear(4, 3)),
        (4,),
    ),
    "does not use": (lambda: Written(lambda n, x: n.a(x), a=linear(4, 3), b=linear(4, 3)), (4,)),
    "no dueling head": (lambda: dueling(lambda v, a: v + a), (4,)),
    "`max`": (lambda: dueling(lambda v, a: v + a - a.max(1, keepdim=True).values), (4,)),
    "looks at its numbers": (
        lambda: two(lambda net, x: net.b(torch.relu(net.a(x))) if x.sum() < 1e9 else net.b(net.a(x))),
        (4,),
    ),
    "stops or changes gradients": (lambda: two(lambda net, x: net.b(torch.relu(net.a(x)).detach())), (4,)),
    "does not take observations": (lambda: linear(4, 3), (5,)),
    "gives 2 tensors": (lambda: two(lambda net, x: (net.b(torch.relu(net.a(x))), x)), (4,)),
    "`cat`": (lambda: Written(lambda net, x: net.a(torch.cat([x, x], 1)), a=linear(8, 3)), (4,)),
    "`div`": (lambda: two(lambda net, x: net.b(torch.relu(net.a(x / 255)))), (4,)),
}


@pytest.mark.parametrize("reason", OTHERS)
def test_what_is_no_multilayer_network_is_named(reason):
    make, shape = OTHERS[reason]
    reading = read_q_network(make(), shape)
    assert reading.layout is None
    assert reading.reason.startswith("the network ")
    assert reason in reading.reason


def test_no_gradient_inside_is_noticed_though_all_numbers_are_right():
    def forward(net, x):
        with torch.no_grad():
            x = torch.relu(net.a(x))
        return net.b(x)

    assert "stops or changes gradients" in read_q_network(two(forward), (4,)).reason


def test_a_hook_keeps_pytorch_in_charge():
    module = nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 3))
    module[0].register_forward_hook(lambda *_: None)
    assert "has hooks (on `0`)" in read_q_network(module, (4,)).reason


def test_reading_changes_nothing():
    module = nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 3))
    module[0].eval()
    before, modes = {n: v.clone() for n, v in module.state_dict().items()}, [m.training for m in module.modules()]
    random = torch.random.get_rng_state()
    read_q_network(module, (4,))
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert [part.training for part in module.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), random)
    assert all(parameter.grad is None for parameter in module.parameters())


class ActorCritic(Written):
    pass


def separate(actor: nn.Module, critic: nn.Module, **more: nn.Module) -> nn.Module:
    return ActorCritic(lambda net, x: (net.actor(x), net.critic(x).squeeze(-1)), critic=critic, actor=actor, **more)


def stack(*widths: int) -> nn.Sequential:
    return nn.Sequential(linear(4, widths[0]), nn.Tanh(), linear(*widths))


def test_actor_and_critic_apart_or_on_one_torso():
    apart = read_actor_critic(separate(stack(8, 3), stack(8, 1)), (4,))
    assert (apart.layout.hidden, apart.layout.shared, apart.layout.activation) == ((8,), False, "tanh")
    assert apart.order[0] == "actor.0.weight"
    assert apart.order[-1] == "critic.2.bias"
    joined = ActorCritic(
        lambda net, x: (net.policy(torch.tanh(net.torso(x))), net.value(torch.tanh(net.torso(x)))),
        policy=linear(8, 3),
        value=linear(8, 1),
        torso=linear(4, 8),
    )
    reading = read_actor_critic(joined, (4,))
    assert reading.layout.shared
    assert [name.partition(".")[0] for name in reading.order[::2]] == ["torso", "value", "policy"]


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (separate(stack(8, 3), stack(16, 1)), "other hidden layers"),
        (separate(stack(8, 3), nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 1))), "other hidden layers"),
        (two(lambda net, x: net.b(torch.relu(net.a(x)))), "gives 1 tensors"),
        (
            ActorCritic(
                lambda n, x: (n.p(torch.tanh(n.q(torch.tanh(n.a(x))))), n.v(torch.tanh(n.w(torch.tanh(n.a(x)))))),
                a=linear(4, 8), q=linear(8, 8), p=linear(8, 3), w=linear(8, 8), v=linear(8, 1),
            ),  # fmt: skip
            "only a part",
        ),
        (
            ActorCritic(
                lambda n, x: (n.p(torch.tanh(n.a(x))), n.v(torch.tanh(n.a(x)).detach())),
                a=linear(4, 8), p=linear(8, 3), v=linear(8, 1),
            ),  # fmt: skip
            "stops or changes gradients",
        ),
    ],
)  # fmt: skip
def test_other_actor_critics_are_named(module, reason):
    reading = read_actor_critic(module, (4,))
    assert reading.layout is None
    assert reason in reading.reason
