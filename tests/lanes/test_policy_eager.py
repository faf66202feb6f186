"""The plain actor-critic lane against an update written the usual way, and its promises one by one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from hotloop.lanes.objective import Network
from hotloop.lanes.policy_objective import KL, LOG_STD, MEASURES, Minibatches, PolicyShared, rollout_rows
from tests.lanes.policy_rollouts import ACTIONS, ENVS, STEPS, make_learner, make_rollout
from tests.oracles.torch_ppo_update import PlainUpdate

ORDER = np.stack([np.random.default_rng(seed).permutation(STEPS * ENVS) for seed in range(2)])


def stats_of(learner, rollout, clip=0.2, lr=1e-3, order=ORDER):
    return learner.lane.update(Minibatches(rollout, order, clip), np.full(order.size // 8, lr), 0).scalars


@pytest.mark.parametrize("kind", ["discrete", "numbers"])
@pytest.mark.parametrize("value_clip", [0.0, 0.05])
def test_two_epochs_equal_an_update_written_the_usual_way(kind, value_clip):
    learner = make_learner(kind, value_clip=value_clip, ent_coef=0.01)
    rollout = make_rollout(learner)
    plain = PlainUpdate(copy.deepcopy(learner.network), 1e-2, 0.5)
    rows, old_log_std = rollout_rows(rollout, torch.device("cpu")), learner.network.log_std.detach().clone()
    expected = []
    for epoch in ORDER:
        for start in range(0, STEPS * ENVS, 8):
            part = type(rows)(*(None if f is None else f[torch.from_numpy(epoch[start : start + 8])] for f in rows))
            expected.append(plain.update(part, old_log_std, kind == "numbers", 0.1, value_clip, 0.5, 0.01))
    got = stats_of(learner, rollout, clip=0.1, lr=1e-2)
    names = [MEASURES.index(n) for n in ("loss", "policy_loss", "value_loss", "entropy", "gradient_norm")]
    np.testing.assert_allclose(got[names].T, expected, rtol=2e-4, atol=2e-5)
    for ours, theirs in zip(learner.network.parameters(), plain.network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "masked"), [*((kind, False) for kind in ACTIONS), ("discrete", True), ("several", True)]
)
def test_before_the_first_update_the_ratio_is_one_and_nothing_has_moved(kind, masked):
    learner = make_learner(kind, batch_size=STEPS * ENVS)
    rollout = make_rollout(learner, masked=masked)
    whole = np.arange(STEPS * ENVS)[None]
    scalars = learner.lane.update(Minibatches(rollout, whole, 1e-6), np.array([1e-3]), 0).scalars
    assert abs(scalars[KL, 0]) < 1e-6
    assert scalars[MEASURES.index("clip_fraction"), 0] == 0.0  # not even by a millionth


@pytest.mark.parametrize("kind", ACTIONS)
def test_with_the_same_outputs_again_the_ratio_is_exactly_one(kind):
    learner = make_learner(kind, normalize_advantage="none", vf_coef=0.0)
    rollout = make_rollout(learner)
    rows = rollout_rows(rollout, torch.device("cpu"))
    log_std = learner.network.log_std
    same = Network(lambda obs: (rows.outputs, rows.value), {LOG_STD: log_std} if len(log_std) else {})
    terms = learner.objective.loss({"online": same}, rows, PolicyShared(1e-12, log_std))
    _, policy_loss, _, _, kl, clip_fraction = terms.measures.tolist()
    assert (kl, clip_fraction) == (0.0, 0.0)
    assert policy_loss == pytest.approx(-rollout.advantage.mean(), abs=1e-6)  # -ratio x A


def test_rows_that_an_env_ignored_do_not_count():
    one, other = make_learner(), make_learner()
    rollout = make_rollout(one, ignored=True)
    same = copy.deepcopy(rollout)
    same.advantage[same.weight == 0], same.returns[same.weight == 0] = -3.0, 99.0
    np.testing.assert_array_equal(stats_of(one, rollout), stats_of(other, same))
    np.testing.assert_array_equal(one.lane.parameters(), other.lane.parameters())


def test_no_further_epoch_once_the_policy_moved_too_far():
    learner = make_learner(kl_stop=1e-4, n_epochs=2)
    assert stats_of(learner, make_rollout(learner), lr=0.05).shape == (7, 4)
    lenient = make_learner(kl_stop=1e4, n_epochs=2)
    assert stats_of(lenient, make_rollout(lenient), lr=0.05).shape == (7, 8)


def test_the_plain_gradient_equals_the_surrogates_while_the_ratio_is_one():
    whole = np.arange(STEPS * ENVS)[None]
    learners = [make_learner(policy_loss=loss, n_epochs=1, batch_size=STEPS * ENVS) for loss in ("clipped", "plain")]
    for learner in learners:
        learner.lane.update(Minibatches(make_rollout(learner), whole, 0.2), np.array([1e-2]), 0)
    one, other = (learner.lane.parameters() for learner in learners)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_restored_lane_continues_exactly():
    one, other = make_learner(), make_learner(seed=5)
    rollout = make_rollout(one)
    stats_of(one, rollout)
    other.load_state(one.state())
    for learner in (one, other):
        learner.lane.update(Minibatches(rollout, ORDER, 0.2), np.full(8, 1e-3), 8)
    for name, value in one.lane.state().items():
        np.testing.assert_array_equal(value, other.lane.state()[name])


def test_half_precision_computes_something_else_close_by():
    one, half = make_learner(), make_learner(learner={"precision": "bfloat16"})
    exact, rough = stats_of(one, make_rollout(one)), stats_of(half, make_rollout(half))
    assert not torch.equal(exact, rough)
    torch.testing.assert_close(exact[:4], rough[:4], rtol=0.2, atol=0.2)


@pytest.mark.parametrize(("kl_stop", "expected"), [(0.0, {}), (100.0, {"item": 2})])
def test_updating_reads_nothing_back_to_the_host_but_one_number_an_epoch_where_kl_may_stop_it(
    monkeypatch, kl_stop, expected
):
    learner = make_learner("both", kl_stop=kl_stop, ent_coef=0.01)
    rollout, reads = make_rollout(learner), {}
    for name in ("item", "tolist", "numpy", "cpu", "__float__", "__bool__"):
        original = getattr(torch.Tensor, name)

        def counted(tensor, *inputs, name=name, original=original):
            reads[name] = reads.get(name, 0) + 1
            return original(tensor, *inputs)

        monkeypatch.setattr(torch.Tensor, name, counted)
    learner.lane.groups["online"].on_host = False  # on a CPU loss and gradient are looked at before each step
    learner.lane.update(Minibatches(rollout, ORDER, 0.2), np.full(8, 1e-3), 0)
    monkeypatch.undo()
    assert reads == expected
