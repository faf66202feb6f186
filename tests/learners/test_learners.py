"""Learners of users' modules: which lane, whose memory, what breaks it, what is refused and in which words."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import hotloop
from hotloop import PolicyLearner, QLearner, Rollout
from hotloop.core.errors import ArgumentError, CheckpointError, LaneError
from tests.learners.plain_loops import (
    ACTIONS,
    FEATURES,
    Dueling,
    OneTorso,
    PlainDQN,
    SlabRollout,
    TwoTorsos,
    made,
    mlp,
    transitions,
)

LANES = ["eager", "native"]


def network(seed: int = 0) -> nn.Sequential:
    return made(mlp, FEATURES, 16, 12, ACTIONS, seed=seed)


def numbers(module: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(module.parameters()).detach().clone()


def observations(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, FEATURES)).astype(np.float32)


class Image(nn.Module):
    """Bytes [B, 2, 6, 6] to Q-values."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.head = nn.Conv2d(2, 4, 3), nn.Linear(64, 3)

    def forward(self, obs):
        return self.head(torch.relu(self.convolution(obs.float() / 255)).flatten(1))


class Parts(nn.Module):
    """A dict of two vectors to Q-values."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = nn.Linear(2, 8), nn.Linear(3, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, obs):
        return self.head(torch.relu(self.near(obs["near"]) + self.far(obs["far"])))


def test_a_multilayer_network_is_native_and_others_say_why_not():
    learner = QLearner(network())
    assert (learner.lane, learner.lane_reason) == ("native", "a multilayer network on a CPU")
    normed = QLearner(nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)))
    assert normed.lane == "eager"
    assert "native: the network has layer normalization; compiled: an unknown number of updates" in normed.lane_reason
    image = QLearner(Image())
    assert (image.lane, image.updates) == ("", 0)
    assert "not chosen yet" in image.lane_reason
    assert QLearner(Image(), obs=spaces.Box(0, 255, (2, 6, 6), np.uint8)).lane == "eager"
    assert "a convolution" in QLearner(Image(), obs=(2, 6, 6)).lane_reason
    assert "QLearner(Image, updates=0, lane='eager')" in repr(QLearner(Image(), lane="eager", obs=(2, 6, 6)))


def test_a_lane_that_cannot_is_refused():
    with pytest.raises(LaneError, match=r"native lane cannot train this: the network has dropout \(`1`\)"):
        QLearner(nn.Sequential(nn.Linear(5, 8), nn.Dropout(), nn.Linear(8, 3)), lane="native")
    with pytest.raises(LaneError, match="compiled lane cannot train this: it cannot draw the random numbers"):
        QLearner(nn.Sequential(nn.Linear(5, 8), nn.Dropout(), nn.Linear(8, 3)), lane="compiled")


def test_what_auto_cannot_compile_goes_on_eagerly_and_says_so(monkeypatch):
    from hotloop.lanes import compiled, compiling

    def refuse(*_):
        raise LaneError("no compiler today")

    monkeypatch.setattr(compiled, "compile_function", refuse)
    monkeypatch.setattr(compiling, "compiler_problem", lambda: "")
    module = nn.Sequential(nn.Linear(FEATURES, 8), nn.Sigmoid(), nn.Linear(8, ACTIONS))
    learner = QLearner(module, planned_updates=1_000_000)
    assert learner.lane == "compiled"
    learner.update(transitions(0))
    assert (learner.lane, learner.updates) == ("eager", 1)
    assert learner.lane_reason.endswith("compiled: no compiler today")


@pytest.mark.parametrize("lane", LANES)
def test_the_module_is_the_users_and_its_numbers_are_the_learners(lane):
    module = network()
    learner = QLearner(module, lane=lane)
    before = numbers(module)
    learner.update(transitions(0))
    assert learner.network is module
    assert not torch.equal(numbers(module), before)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        module[4].bias[2] = 1.0
    assert learner.act(observations(3)).tolist() == [2, 2, 2]


def saved_again(module):
    module.load_state_dict({name: value.clone() for name, value in module.state_dict().items()})


HARMLESS = {
    "to": lambda module: module.to("cpu"),
    "load_state_dict": saved_again,
    "deepcopy": copy.deepcopy,
    "zero_grad": lambda module: module.zero_grad(set_to_none=True),
    "train and eval": lambda module: module.eval().train(),
    "a backward of one's own": lambda module: module(torch.ones(2, FEATURES)).sum().backward(),
    "requires_grad again": lambda module: module.requires_grad_(True),
}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("deed", HARMLESS)
def test_what_users_do_to_modules_does_no_harm(deed, lane):
    module, other = network(), network()
    learner, untouched = QLearner(module, lane=lane), QLearner(other, lane=lane)
    for number in range(3):
        HARMLESS[deed](module)
        learner.update(transitions(number))
        untouched.update(transitions(number))
    assert torch.equal(numbers(module), numbers(other))


def test_a_copy_of_the_module_or_of_the_learner_goes_its_own_way():
    learner = QLearner(network(), target_every=3, max_grad_norm=1.0)
    learner.update(transitions(0))
    module, twin = copy.deepcopy(learner.network), copy.deepcopy(learner)
    before = numbers(module)
    learner.update(transitions(1))
    assert torch.equal(numbers(module), before)
    assert torch.equal(numbers(twin.network), before)
    twin.update(transitions(1))
    assert torch.equal(numbers(twin.network), numbers(learner.network))
    assert twin.updates == 2
    actor = PolicyLearner(made(TwoTorsos, 2, False), action=(2,), log_std=-1.0, batch_size=16)
    other = copy.deepcopy(actor)
    for each in (actor, other):
        each.update(filled(each, Rollout(16, 2, (FEATURES,), action=(2,))), observations(2))
    assert torch.equal(numbers(actor.network), numbers(other.network))
    assert actor.log_std is not other.log_std
    assert torch.equal(actor.log_std, other.log_std)


@pytest.mark.parametrize("lane", LANES)
def test_an_update_under_no_grad_is_an_update(lane):
    module = network()
    learner, before = QLearner(module, lane=lane), numbers(module)
    with torch.no_grad():
        learner.update(transitions(0))
    assert not torch.equal(numbers(module), before)


def test_the_users_default_dtype_does_not_matter():
    module = network()
    torch.set_default_dtype(torch.float64)
    try:
        learner = QLearner(module)
        learner.update(transitions(0))
    finally:
        torch.set_default_dtype(torch.float32)
    assert learner.lane == "native"


def replace_parameter(module):
    module[2].weight = nn.Parameter(module[2].weight.detach().clone())


def replace_layer(module):
    module[2] = nn.Linear(16, 12)


BREAKING = {
    "half": (lambda module: module.half(), r"`0.weight` was moved \(now float16 on cpu\)"),
    "double": (lambda module: module.double(), r"now float64 on cpu"),
    "another parameter": (replace_parameter, "its parameter `2.weight` was replaced"),
    "another layer": (replace_layer, "its layer `2` was replaced"),
    "loading by assignment": (
        lambda module: module.load_state_dict({n: v.clone() for n, v in module.state_dict().items()}, assign=True),
        "`0.weight` was replaced",
    ),
    "other data": (lambda module: setattr(module[0].bias, "data", torch.zeros(16)), "`0.bias` was moved"),
    "frozen": (lambda module: module[0].requires_grad_(False), "`0.weight` was frozen since"),
    "another learner": (lambda module: QLearner(module), "`0.weight` was moved"),
}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("deed", BREAKING)
def test_what_breaks_the_sharing_is_said_at_the_next_call(deed, lane):
    module = network()
    learner = QLearner(module, lane=lane)
    learner.update(transitions(0))
    spoil, words = BREAKING[deed]
    spoil(module)
    for call in (lambda: learner.update(transitions(1)), lambda: learner.act(observations(1))):
        with pytest.raises(ArgumentError, match=f"no longer shares its memory with the learner: .*{words}"):
            call()


def test_frozen_parameters_stay_and_others_move():
    module = network()
    module[0].requires_grad_(False)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    learner = QLearner(module)
    assert learner.lane == "eager"
    assert "frozen parameters (`0.weight`)" in learner.lane_reason
    for number in range(3):
        learner.update(transitions(number))
    moved = {name for name, value in module.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"2.weight", "2.bias", "4.weight", "4.bias"}
    with pytest.raises(LaneError, match="only the eager lane leaves alone"):
        QLearner(module, lane="native")


def test_tied_parameters_learn_as_in_plain_pytorch():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.head = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, ACTIONS)
            self.second.weight = self.first.weight

        def forward(self, obs):
            return self.head(torch.relu(self.second(torch.relu(self.first(obs)))))

    module = made(Tied)
    program, learner = PlainDQN(module, 1e-3, False, "huber", 5, 1.0, None), QLearner(module, target_every=5)
    assert learner.lane == "eager"
    assert "uses a layer twice" in learner.lane_reason
    for number in range(20):
        program.update(transitions(number))
        learner.update(transitions(number))
    assert module.first.weight is module.second.weight
    torch.testing.assert_close(numbers(module), numbers(program.online), rtol=0, atol=1e-6)


def test_batch_normalization_counts_in_updates_only_and_its_statistics_reach_the_target():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(FEATURES, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, ACTIONS))
    learner = QLearner(module, target_every=2)
    assert learner.lane == "eager"
    learner.act(observations(4))
    assert module[1].num_batches_tracked == 0  # acting is evaluation
    assert module.training
    learner.update(transitions(0))
    state = learner.state_dict()
    assert state["network"]["1.num_batches_tracked"] == 1
    assert state["target"]["1.num_batches_tracked"] == 0
    learner.update(transitions(1))
    state = learner.state_dict()
    assert torch.equal(state["target"]["1.running_mean"], state["network"]["1.running_mean"])
    other = QLearner(copy.deepcopy(module), target_every=2)
    other.load_state_dict(state)
    assert torch.equal(other.state_dict()["target"]["1.running_mean"], state["target"]["1.running_mean"])


def test_dropout_acts_without_and_learns_with_it():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, ACTIONS))
    learner = QLearner(module)
    assert "dropout" in learner.lane_reason
    obs = observations(50)
    assert learner.act(obs).tolist() == module.eval()(torch.from_numpy(obs)).argmax(1).tolist()
    losses = []
    for mode in (True, True, False, False):  # with lr so small that nothing else changes
        learner.learning_rate = 1e-12
        module.train(mode)
        losses.append(learner.update(transitions(0)).loss)
    assert losses[0] != losses[1]
    assert losses[2] == pytest.approx(losses[3], rel=1e-6)


@pytest.mark.parametrize("lane", LANES)
def test_acting_is_greedy_random_or_masked(lane):
    module = network()
    learner = QLearner(module, lane=lane, seed=3)
    obs = observations(200)
    q = module(torch.from_numpy(obs)).detach()
    assert learner.act(obs).tolist() == q.argmax(1).tolist()
    one = learner.act(obs[0].tolist())
    assert isinstance(one, int)
    assert one == int(q[0].argmax())
    drawn = learner.act(np.zeros((4000, FEATURES), np.float32), epsilon=1.0)
    assert np.bincount(drawn, minlength=ACTIONS).min() > 850
    mask = np.ones((200, ACTIONS), np.bool_)
    mask[:, int(q.argmax(1)[0])] = False
    mask[:, 0] = True
    allowed = np.where(mask, q.numpy(), -np.inf).argmax(1)
    assert learner.act(obs, mask=mask).tolist() == allowed.tolist()
    assert mask[np.arange(200), learner.act(obs, epsilon=0.5, mask=mask)].all()
    assert learner.act(obs[0], mask=[False, False, True, False]) == 2
    again = QLearner(network(), lane=lane, seed=3)
    assert again.act(np.zeros((4000, FEATURES), np.float32), epsilon=1.0).tolist() == drawn.tolist()


def test_images_and_dicts_are_learned_from_as_they_come():
    draw = np.random.default_rng(0)
    learner = QLearner(Image())
    obs = draw.integers(0, 255, (4, 2, 6, 6), dtype=np.uint8)
    assert learner.act(obs).shape == (4,)
    assert isinstance(learner.act(obs[0]), int)
    rest = {"action": [0, 1, 2, 0], "reward": np.ones(4, np.float32), "discount": np.ones(4, np.float32)}
    learner.update(SimpleNamespace(obs=obs, next_obs=obs, **rest))
    assert learner.lane == "eager"
    several = {"near": draw.normal(size=(4, 2)).astype(np.float32), "far": draw.normal(size=(4, 3)).astype(np.float32)}
    learner = QLearner(Parts())
    learner.update(SimpleNamespace(obs=several, next_obs=several, **rest))
    assert "several parts" in learner.lane_reason
    assert learner.act({name: part[0] for name, part in several.items()}) in (0, 1, 2)


def test_a_network_that_flattens_takes_tables_too():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    learner = QLearner(module)
    obs = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)
    assert learner.act(obs).tolist() == module(torch.from_numpy(obs)).argmax(1).tolist()
    assert learner.lane == "native"
    with pytest.raises(ArgumentError, match=r"shape \(6,\); expected \(2, 3\)"):
        learner.act(np.zeros(6, np.float32))


def test_a_state_loaded_before_the_first_table_is_kept():
    """The network was taken for one of vectors until then, and the lane is built anew."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    draw = np.random.default_rng(0)
    obs = draw.normal(size=(4, 2, 3)).astype(np.float32)
    rest = {"action": [0, 1, 2, 0], "reward": np.ones(4, np.float32), "discount": np.ones(4, np.float32)}
    learner, other = QLearner(module), QLearner(copy.deepcopy(module))
    learner.update(SimpleNamespace(obs=obs, next_obs=obs, **rest))
    other.load_state_dict(learner.state_dict())
    for each in (learner, other):
        each.update(SimpleNamespace(obs=obs, next_obs=obs, **rest))
    assert torch.equal(numbers(learner.network), numbers(other.network))
    assert other.updates == 2


def test_networks_without_hidden_layers_learn_alike_on_both_lanes():
    linear = [made(nn.Linear, FEATURES, ACTIONS) for _ in LANES]
    for lane, module in zip(LANES, linear, strict=True):
        learner = QLearner(module, lane=lane, double=True)
        for number in range(5):
            learner.update(transitions(number))
    torch.testing.assert_close(numbers(linear[0]), numbers(linear[1]), rtol=0, atol=1e-6)

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value, self.policy = nn.Linear(FEATURES, 1), nn.Linear(FEATURES, 4)

        def forward(self, obs):
            return self.policy(obs), self.value(obs)

    heads = [made(Heads) for _ in LANES]
    for lane, module in zip(LANES, heads, strict=True):
        learner = PolicyLearner(module, lane=lane, batch_size=16)
        learner.update(filled(learner, Rollout(16, 2, (FEATURES,), num_actions=4)), observations(2))
        assert learner.lane == lane
    torch.testing.assert_close(numbers(heads[0]), numbers(heads[1]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", [nn.SELU, nn.LeakyReLU])
def test_other_activations_learn_alike_on_both_lanes(activation):
    modules = [made(lambda: mlp(FEATURES, 16, ACTIONS, activation=activation)) for _ in LANES]
    for lane, module in zip(LANES, modules, strict=True):
        learner = QLearner(module, lane=lane)
        for number in range(5):
            learner.update(transitions(number))
    torch.testing.assert_close(numbers(modules[0]), numbers(modules[1]), rtol=0, atol=2e-6)

    def actor_critic() -> nn.Module:
        module = TwoTorsos(4, False)
        module.actor, module.critic = (mlp(FEATURES, 16, out, activation=activation) for out in (4, 1))
        return module

    actors = [made(actor_critic) for _ in LANES]
    for lane, module in zip(LANES, actors, strict=True):
        learner = PolicyLearner(module, lane=lane, batch_size=16)
        learner.update(filled(learner, Rollout(16, 2, (FEATURES,), num_actions=4)), observations(2))
    torch.testing.assert_close(numbers(actors[0]), numbers(actors[1]), rtol=0, atol=2e-6)


@pytest.mark.parametrize("lane", LANES)
def test_tensors_lists_and_rounded_numbers_are_the_same_batch(lane):
    batch = transitions(0)
    fields = {name: field for name, field in vars(batch).items() if name != "next_action_mask"}
    kinds = {
        "tensors": {name: torch.from_numpy(field) for name, field in fields.items()},
        "float64 and int32": {
            name: field.astype(np.float64 if field.dtype.kind == "f" else np.int32) for name, field in fields.items()
        },
        "lists": {name: field.tolist() for name, field in fields.items()},
        "not contiguous": {name: np.repeat(field, 2, axis=0)[::2] for name, field in fields.items()},
        "without weights": {name: field for name, field in fields.items() if name not in ("weight", "index")},
    }
    module = network()
    QLearner(module, lane=lane).update(batch)
    for kind, same in kinds.items():
        other = network()
        QLearner(other, lane=lane).update(SimpleNamespace(**same))
        assert torch.equal(numbers(other), numbers(module)), kind


MISTAKES = {
    "reward": ({"reward": np.zeros((2, 2, 2), np.float32)}, r"`batch.reward` has shape \(2, 2, 2\)"),
    "no rows": ({"reward": np.zeros(0, np.float32)}, r"`batch.reward` has shape \(0,\)"),
    "action": ({"action": np.zeros(15, np.int64)}, r"`batch.action` has shape \(15,\); expected \(16,\)"),
    "floats for actions": ({"action": np.full(16, 0.5)}, "`batch.action` is float64"),
    "large action": ({"action": np.full(16, ACTIONS)}, rf"`batch.action` holds {ACTIONS}; expected 0 to {ACTIONS - 1}"),
    "negative action": ({"action": np.full(16, -1)}, "`batch.action` holds -1"),
    "discount": ({"discount": None}, "`batch.discount` is missing"),
    "words": ({"discount": ["a"] * 16}, "`batch.discount` is .*expected numbers"),
    "obs": ({"obs": np.zeros((16, 4), np.float32)}, r"shape \(4,\); expected \(5,\)"),
    "rows of obs": ({"obs": np.zeros((15, 5), np.float32)}, r"`batch.obs` has shape \(15, 5\); expected to begin with"),
    "next_obs": ({"next_obs": np.zeros((16, 5, 1), np.float32)}, r"`batch.next_obs` has .*\(5, 1\); expected \(5,\)"),
    "weight": ({"weight": np.ones((16, 1), np.float32)}, r"`batch.weight` has shape \(16, 1\)"),
    "mask": ({"next_action_mask": np.ones((16, 3), np.bool_)}, r"`batch.next_action_mask` has shape \(16, 3\)"),
    "kind of mask": ({"next_action_mask": np.ones((16, ACTIONS))}, "`batch.next_action_mask` is float64"),
}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_batch_is_told_in_one_sentence_and_changes_nothing(mistake, lane):
    module = network()
    learner = QLearner(module, lane=lane)
    learner.update(transitions(0))
    before = numbers(module)
    wrong, words = MISTAKES[mistake]
    with pytest.raises(ArgumentError, match=words) as caught:
        learner.update(SimpleNamespace(**{**vars(transitions(1)), **wrong}))
    assert "\n" not in caught.value.message
    assert torch.equal(numbers(module), before)
    assert learner.updates == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learning_rate": 0}, "`learning_rate` is 0; expected a number above 0"),
        ({"learning_rate": "fast"}, "`learning_rate` is 'fast'"),
        ({"loss": "l1"}, "`loss` is 'l1'; expected one of huber, mse"),
        ({"lane": "quick"}, "`lane` is 'quick'"),
        ({"target_every": 0}, "`target_every` is 0"),
        ({"target_tau": 1.5}, "`target_tau` is 1.5"),
        ({"max_grad_norm": -1}, "`max_grad_norm` is -1"),
        ({"betas": (0.9, 1.0)}, r"`betas\[1\]` is 1.0"),
        ({"eps": 0.0}, "`eps` is 0.0"),
        ({"obs": (4,)}, r"`network` does not take observations of shape \(4,\)"),
    ],
)
def test_a_wrong_setting_is_named(settings, words):
    with pytest.raises(ArgumentError, match=words):
        QLearner(network(), **settings)


class Lonely(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)


def same_memory() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    module[2].weight.data = module[0].weight.data
    return module


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: 3, "`network` is a int; expected a torch.nn.Module"),
        (nn.ReLU, "no parameters"),
        (lambda: nn.LazyLinear(3), "lazy layer"),
        (lambda: network().double(), "parameters of torch.float64"),
        (lambda: network().requires_grad_(False), "all parameters of `network` are frozen"),
        (same_memory, "two parameters in the same memory, `0.weight` and `2.weight`"),
    ],
)
def test_a_module_that_cannot_be_trained_is_refused(make, words):
    with pytest.raises(ArgumentError, match=words):
        QLearner(make())


def test_a_module_that_answers_otherwise_is_refused_at_the_first_call():
    with pytest.raises(ArgumentError, match="`network` has no `forward`"):
        QLearner(Lonely(), obs=(2,))
    with pytest.raises(ArgumentError, match=r"answers 2 observations with shape \(2,\)"):
        QLearner(nn.Sequential(nn.Linear(2, 1), nn.Flatten(0)), obs=(2,))
    with pytest.raises(
        ArgumentError, match=r"\(7,\), which the network takes neither as one observation \(.*\) nor as several"
    ):
        QLearner(network()).act(np.zeros(7, np.float32))


def test_acting_refuses_what_is_wrong():
    learner = QLearner(network())
    for wrong, words in [
        ({"epsilon": 1.5}, "`epsilon` is 1.5"),
        ({"mask": np.zeros(ACTIONS, np.bool_)}, "allows no action"),
        ({"mask": np.ones(3, np.bool_)}, r"`mask` has shape \(3,\)"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            learner.act(np.zeros(FEATURES, np.float32), **wrong)
    with pytest.raises(ArgumentError, match="empty"):
        learner.act(np.zeros((0, FEATURES), np.float32))


def test_numbers_that_are_not_finite_stop_before_the_step():
    module = network()
    learner = QLearner(module)
    batch = transitions(0)
    batch.reward[3] = np.nan
    before = numbers(module)
    with pytest.raises(hotloop.HotloopError, match="first of all: reward"):
        learner.update(batch)
    assert torch.equal(numbers(module), before)


@pytest.mark.parametrize("source", LANES)
@pytest.mark.parametrize("sink", LANES)
def test_a_state_goes_on_exactly_on_its_lane_and_within_rounding_on_another(source, sink):
    settings = {"target_every": 3, "max_grad_norm": 1.0}
    one = QLearner(made(Dueling), lane=source, **settings)
    other = QLearner(made(Dueling, seed=9), lane=sink, **settings)
    for number in range(4):
        one.update(transitions(number))
    one.act(observations(5), epsilon=0.5)
    other.load_state_dict(one.state_dict())
    for learner in (one, other):
        for number in range(4, 8):
            learner.update(transitions(number))
    assert one.updates == other.updates == 8
    torch.testing.assert_close(numbers(one.network), numbers(other.network), rtol=0, atol=0 if source == sink else 1e-6)
    assert one.act(observations(9), epsilon=0.5).tolist() == other.act(observations(9), epsilon=0.5).tolist()


def test_a_state_of_another_network_is_refused():
    learner = QLearner(network())
    with pytest.raises(CheckpointError, match="`target` of the state"):
        learner.load_state_dict(QLearner(made(Dueling)).state_dict())
    with pytest.raises(CheckpointError, match="the state has no `network`"):
        learner.load_state_dict({})


def test_a_learning_rate_set_anew_counts_at_once():
    module = network()
    learner = QLearner(module, learning_rate=1e-3)
    learner.update(transitions(0))
    before = numbers(module)
    learner.learning_rate = 1e-9
    learner.update(transitions(1))
    assert (numbers(module) - before).abs().max() < 1e-7
    learner.learning_rate = -1
    with pytest.raises(ArgumentError, match="`learning_rate` is -1"):
        learner.update(transitions(2))


def policy(**settings):
    return PolicyLearner(made(TwoTorsos, 4, False), batch_size=16, **settings)


@pytest.mark.parametrize("lane", LANES)
def test_a_policy_acts_by_its_distribution_and_notes_it(lane):
    learner = policy(lane=lane)
    obs = np.repeat(observations(1), 4000, axis=0)
    action, note = learner.act(obs)
    logits, value = (part.detach() for part in learner.network(torch.from_numpy(obs[:1])))
    share = np.bincount(action, minlength=4) / 4000
    np.testing.assert_allclose(share, logits.softmax(-1)[0].numpy(), atol=0.03)
    log_p = logits.log_softmax(-1)[0].numpy()
    np.testing.assert_allclose(note.log_prob, log_p[action], atol=1e-5)
    np.testing.assert_allclose(note.value, float(value), atol=1e-5)
    best, _ = learner.act(obs[0], deterministic=True)
    assert best == int(logits.argmax())
    mask = np.zeros((4000, 4), np.bool_)
    mask[:, 1:3] = True
    action, note = learner.act(obs, mask=mask)
    expected = logits[0, 1:3].log_softmax(-1).numpy()
    np.testing.assert_allclose(note.log_prob, expected[action - 1], atol=1e-5)


@pytest.mark.parametrize("lane", LANES)
def test_numbers_are_drawn_around_the_means(lane):
    learner = PolicyLearner(made(OneTorso, 2, True), action=spaces.Box(-1, 1, (2, 1)), batch_size=16, lane=lane)
    assert learner.lane == lane
    obs = np.repeat(observations(1), 4000, axis=0)
    action, note = learner.act(obs)
    assert (action.shape, action.dtype) == ((4000, 2, 1), np.float32)
    mean = learner.network(torch.from_numpy(obs[:1]))[0].detach().numpy().reshape(2, 1)
    np.testing.assert_allclose(action.mean(0), mean, atol=0.06)
    np.testing.assert_allclose(action.std(0), 1.0, atol=0.05)
    density = -0.5 * (action - mean) ** 2 - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(note.log_prob, density.sum((1, 2)), atol=1e-4)
    one, note = learner.act(obs[0], deterministic=True)
    np.testing.assert_allclose(one, mean, atol=1e-5)
    assert isinstance(note.log_prob, float)


def test_several_choices_at_once_are_learned():
    learner = PolicyLearner(made(TwoTorsos, 5, False), action=spaces.MultiDiscrete([3, 2]), batch_size=16)
    rollout = filled(learner, Rollout(16, 2, (FEATURES,), spaces.MultiDiscrete([3, 2])))
    assert rollout.action.shape == (16, 2, 2)
    assert learner.update(rollout, observations(2)).updates == 8


def filled(learner, rollout, spoil=lambda action: action, masks=None):
    draw = np.random.default_rng(1)
    while not rollout.full:
        obs = draw.normal(size=(rollout.num_envs, FEATURES)).astype(np.float32)
        action, note = learner.act(obs, mask=masks)
        ended = draw.random((2, rollout.num_envs)) < 0.1
        rollout.add(obs, spoil(action), note, obs[:, 0], ended[0], ended[1], obs, action_mask=masks)
    return rollout


@pytest.mark.parametrize("lane", LANES)
def test_a_rollout_is_learned_from_and_empty_again(lane):
    learner = policy(lane=lane, n_epochs=2)
    rollout = filled(learner, Rollout(16, 2, (FEATURES,), num_actions=4))
    before = numbers(learner.network)
    stats = learner.update(rollout, observations(2))
    assert (stats.updates, learner.updates, len(rollout)) == (4, 4, 0)
    assert not torch.equal(numbers(learner.network), before)
    assert stats.entropy > 0
    assert {"kl", "clip_fraction"} <= {part.split("=")[0] for part in repr(stats).replace(" ", "").split(",")}
    with pytest.raises(AttributeError):
        _ = stats.nothing
    masked = filled(learner, rollout, masks=np.array([[True, True, False, False]] * 2))
    assert set(masked.action.reshape(-1)) <= {0, 1}
    learner.update(masked, observations(2))


def test_a_policy_that_moved_too_far_stops_its_epochs():
    learner = policy(learning_rate=0.05, n_epochs=4, kl_stop=1e-4)
    rollout = filled(learner, Rollout(16, 2, (FEATURES,), num_actions=4))
    assert learner.update(rollout, observations(2)).updates == 2


def test_a_rollout_of_another_policy_or_of_changed_actions_is_refused():
    learner = policy()
    rollout = filled(learner, Rollout(16, 2, (FEATURES,), num_actions=4))
    with torch.no_grad():
        learner.network.actor[4].bias[0] += 3.0
    with pytest.raises(ArgumentError, match="notes a log-probability of .* where the policy gives"):
        learner.update(rollout, observations(2))
    continuous = PolicyLearner(made(OneTorso, 2, True), action=(2,), batch_size=16)
    clipped = filled(continuous, Rollout(16, 2, (FEATURES,), action=(2,)), spoil=lambda action: action.clip(-0.1, 0.1))
    with pytest.raises(ArgumentError, match="notes a log-probability"):
        continuous.update(clipped, observations(2))
    assert continuous.updates == 0


def test_standard_deviations_are_the_modules_own_or_asked_for():
    module = made(TwoTorsos, 2, True)
    learner = PolicyLearner(module, action=(2,), batch_size=16)
    assert learner.log_std is module.actor_logstd
    assert learner.lane == "native"
    before = module.actor_logstd.detach().clone()
    learner.update(filled(learner, Rollout(16, 2, (FEATURES,), action=(2,))), observations(2))
    assert not torch.equal(module.actor_logstd, before)
    assert learner.state_dict()["mean"]["actor_logstd"].abs().sum() > 0
    without = made(TwoTorsos, 2, False)
    with pytest.raises(ArgumentError, match="one parameter whose name ends in `log_std`, and has none"):
        PolicyLearner(without, action=(2,))
    learner = PolicyLearner(without, action=(2,), log_std=-0.5, batch_size=16)
    assert learner.lane == "native"
    assert learner.log_std.tolist() == [-0.5, -0.5]
    learner.update(filled(learner, Rollout(16, 2, (FEATURES,), action=(2,))), observations(2))
    assert learner.log_std.tolist() != [-0.5, -0.5]
    again = PolicyLearner(made(TwoTorsos, 2, False), action=(2,), log_std=0.0, batch_size=16)
    again.load_state_dict(learner.state_dict())
    assert torch.equal(again.log_std, learner.log_std)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"clip_range": 0}, "`clip_range` is 0"),
        ({"gamma": 1.5}, "`gamma` is 1.5"),
        ({"n_epochs": 0}, "`n_epochs` is 0"),
        ({"batch_size": 1.5}, "`batch_size` is 1.5"),
        ({"vf_coef": -1}, "`vf_coef` is -1"),
        ({"log_std": 0.0}, "`log_std` is given, but no action is a number"),
        ({"action": spaces.Discrete(4, start=1)}, "does not count from 0"),
        (
            {"action": spaces.Discrete(3), "obs": (FEATURES,)},
            "answers with 4 logits; `action` is a choice of 3, which needs 3",
        ),
    ],
)
def test_a_wrong_setting_of_a_policy_is_named(settings, words):
    with pytest.raises(ArgumentError, match=words):
        PolicyLearner(made(TwoTorsos, 4, False), **settings)


def test_a_policys_mistakes_are_told():
    learner = policy()
    rollout = Rollout(16, 2, (FEATURES,), num_actions=4)
    with pytest.raises(ArgumentError, match="not full yet"):
        learner.update(rollout, observations(2))
    odd = PolicyLearner(made(TwoTorsos, 4, False), batch_size=24)
    with pytest.raises(ArgumentError, match=r"32 rows, which is no multiple of `batch_size` \(24\)"):
        odd.update(filled(odd, Rollout(16, 2, (FEATURES,), num_actions=4)), observations(2))
    filled(learner, rollout)
    rollout.action[3, 1] = 7
    with pytest.raises(ArgumentError, match="a choice outside 0 to 3"):
        learner.update(rollout, observations(2))
    learner.network.half()
    with pytest.raises(ArgumentError, match="`actor_critic` no longer shares its memory"):
        learner.act(observations(2))


@pytest.mark.parametrize("lane", LANES)
def test_a_policys_state_goes_on_exactly(lane):
    one = PolicyLearner(made(OneTorso, 2, True), action=(2,), batch_size=16, lane=lane)
    one.update(filled(one, Rollout(16, 2, (FEATURES,), action=(2,))), observations(2))
    other = PolicyLearner(made(OneTorso, 2, True, seed=5), action=(2,), batch_size=16, lane=lane, seed=7)
    other.load_state_dict(one.state_dict())
    for learner in (one, other):
        learner.update(filled(learner, Rollout(16, 2, (FEATURES,), action=(2,))), observations(2))
    assert torch.equal(numbers(one.network), numbers(other.network))


def test_values_of_time_outs_are_those_of_their_final_observations():
    """One env, three steps, the second truncated: its advantage is r + gamma V(final) - V(s)."""
    learner = PolicyLearner(made(TwoTorsos, 4, False), batch_size=3)
    slab = SlabRollout(3, 1, seed=4).fill(learner)
    slab.terminated[:], slab.truncated[:, 0] = False, [False, True, False]
    from hotloop.learners.policy_learner import read_rollout

    data = learner._prepare(read_rollout(slab, True), slab.obs[0])
    final = float(learner.value(slab.final_obs()[1])[0])
    expected = slab.reward[1, 0] + 0.99 * final - slab.value[1, 0]
    assert data.advantage[1, 0] == pytest.approx(expected, abs=1e-5)


def test_an_update_on_a_device_reads_nothing_back(monkeypatch):
    """`meta` has shapes and no numbers: any read of a result raises there."""
    from hotloop.lanes import eager

    monkeypatch.setattr(eager, "noise_generator", lambda device, seed: torch.Generator())
    learner = QLearner(network().to("meta"), target_every=1, max_grad_norm=1.0)
    assert learner.lane == "eager"
    assert "it runs on `cpu`, not `meta`" in learner.lane_reason
    stats = learner.update(transitions(0, k=3))
    fields = {
        name: torch.from_numpy(field).to("meta") for name, field in vars(transitions(1)).items() if field is not None
    }
    learner.update(SimpleNamespace(**fields))
    assert learner.updates == 4
    with pytest.raises(RuntimeError, match="meta"):
        _ = stats.loss
    with pytest.raises(ArgumentError, match="`batch.reward` is torch.float64; expected torch.float32"):
        learner.update(SimpleNamespace(**fields | {"reward": fields["reward"].double()}))
