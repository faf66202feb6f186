"""Updates over graphs, against the same update written one graph at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hotloop.core.types import GraphRollout
from hotloop.lanes.policy_objective import KL, MEASURES, Minibatches
from hotloop.nets.graphs.attention import to_tensors
from tests.lanes.graph_rollouts import ENVS, STEPS, make_learner, make_rollout

ORDER = np.random.default_rng(1).permutation(STEPS * ENVS)[None]
RATES = np.full(3, 1e-2)
CLIP = 0.2


def log_density(mean, log_std, u):
    normal = -0.5 * ((u - mean) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    return normal - torch.log(1 - torch.tanh(u) ** 2)


def one_graph(network, rollout: GraphRollout, row: int, advantage: float, weights: tuple[float, ...]):
    """Loss without entropy of one graph, and its ratio, by the formulas."""
    flat = {name: getattr(rollout, name).reshape(STEPS * ENVS, -1)[row] for name in ("mean", "log_std", "numbers")}
    mean, log_std, u = (torch.from_numpy(flat[name]) for name in ("mean", "log_std", "numbers"))
    graph = rollout.obs.take(np.array([row]))
    outcome = network(to_tensors(graph))
    new = log_density(outcome.mean[0], outcome.log_std[0], u).sum()
    old = log_density(mean, log_std, u).sum()
    if rollout.choices is not None and rollout.node_logits is not None:
        nodes = slice(rollout.obs.node_offsets[row], rollout.obs.node_offsets[row + 1])
        chosen = torch.from_numpy(rollout.choices[nodes])[:, None]
        new = new + outcome.node_logits.log_softmax(-1).gather(1, chosen).mean()
        old = old + torch.from_numpy(rollout.node_logits[nodes]).log_softmax(-1).gather(1, chosen).mean()
    ratio = (new - old).exp()
    policy = -torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    value = sum(
        weight * (outcome.value[0, part] - float(rollout.returns[part].reshape(-1)[row])) ** 2
        for part, weight in enumerate(weights)
    )
    return policy + 0.5 * value, ratio


@pytest.mark.parametrize("kind", ["numbers", "per node"])
def test_updates_equal_those_made_one_graph_at_a_time(kind: str) -> None:
    tree = {"ent_coef": 0.0, "n_epochs": 1, "optimizer": {"max_grad_norm": 0.0}}
    ours, plain = make_learner(kind, **tree), make_learner(kind, **tree)
    rollout = make_rollout(ours)
    ours.lane.update(Minibatches(rollout, ORDER, CLIP), RATES, 0)
    optimizer = torch.optim.Adam(plain.network.parameters(), lr=1e-2, eps=1e-5)
    for rows in ORDER[0].reshape(3, 4):
        raw = rollout.advantage.reshape(-1)[rows]
        advantages = (raw - raw.mean()) / (raw.std() + 1e-8)
        pairs = zip(rows, advantages, strict=True)
        losses = [one_graph(plain.network, rollout, row, float(one), (1.0, 0.5))[0] for row, one in pairs]
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
    expected = np.concatenate([parameter.detach().numpy().reshape(-1) for parameter in plain.network.parameters()])
    np.testing.assert_allclose(ours.lane.parameters(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["numbers", "per node"])
def test_before_the_first_update_the_ratio_is_one(kind: str) -> None:
    learner = make_learner(kind, batch_size=STEPS * ENVS, n_epochs=1)
    rollout = make_rollout(learner)
    for row in range(STEPS * ENVS):
        _, ratio = one_graph(learner.network, rollout, row, 1.0, (1.0, 0.5))
        assert ratio.item() == pytest.approx(1.0, abs=1e-5)
    stats = learner.lane.update(Minibatches(rollout, ORDER, CLIP), RATES[:1], 0)
    assert float(stats.scalars[KL, 0]) == pytest.approx(0.0, abs=1e-6)
    assert float(stats.scalars[MEASURES.index("clip_fraction"), 0]) == 0.0


def test_numbers_that_do_not_count_are_not_learned_from() -> None:
    first_only = np.zeros((ENVS, 2), bool)
    first_only[:, 0] = True
    learner = make_learner(ent_coef=0.0, vf_coef=0.0, n_epochs=1)
    rollout = make_rollout(learner, counts=first_only)
    before = learner.network.actor[-1].bias.detach().clone()
    learner.lane.update(Minibatches(rollout, ORDER, CLIP), RATES, 0)
    moved = (learner.network.actor[-1].bias - before).abs().detach()
    assert (moved[[0, 2]] > 1e-4).all()  # mean and log std of the number that counts
    assert (moved[[1, 3]] == 0).all()


def test_epochs_stop_where_the_policy_has_moved_too_far() -> None:
    learner = make_learner(kl_stop=1e-7)
    order = np.stack([ORDER[0], ORDER[0]])
    assert learner.lane.update(Minibatches(make_rollout(learner), order, CLIP), np.full(6, 1e-2), 0).num_updates == 3


def test_bfloat16_is_near() -> None:
    exact, half = make_learner(), make_learner(learner={"precision": "bfloat16"})
    rollout = make_rollout(exact)
    one, other = (learner.values(rollout.obs) for learner in (exact, half))
    np.testing.assert_allclose(other, one, atol=0.05)
    assert not np.array_equal(other, one)


@pytest.mark.parametrize(("kl_stop", "expected"), [(0.0, {}), (100.0, {"item": 1})])
@pytest.mark.parametrize("kind", ["numbers", "per node"])
def test_updating_reads_nothing_back_to_the_host_but_one_number_an_epoch_where_kl_may_stop_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, kl_stop: float, expected: dict[str, int]
) -> None:
    learner = make_learner(kind, kl_stop=kl_stop, n_epochs=1)
    learner.network.fused = False  # as on any device but a CPU, whose memory needs no reading
    rollout = make_rollout(learner)
    reads: dict[str, int] = {}
    for name in ("item", "tolist", "numpy", "cpu", "__float__", "__bool__", "__int__"):
        original = getattr(torch.Tensor, name)

        def counted(tensor, *inputs, name=name, original=original):
            reads[name] = reads.get(name, 0) + 1
            return original(tensor, *inputs)

        monkeypatch.setattr(torch.Tensor, name, counted)
    learner.lane.groups["online"].on_host = False  # on a CPU loss and gradient are looked at before each step
    learner.lane.update(Minibatches(rollout, ORDER, CLIP), RATES, 0)
    monkeypatch.undo()
    assert reads == expected
