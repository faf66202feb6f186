"""`hotloop.SACLearner` against a plain PyTorch program, update by update; and what it says to mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

import hotloop
from benchmarks.witnesses.sac_update import SACAgent, TD3Agent
from hotloop.core.errors import HotloopError
from tests.lanes.sac_pairs import copy_critic

FEATURES, HIDDEN, ROWS, GAMMA, LR = 3, (16, 16), 16, 0.9, 1e-3
SPACE = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
TD3 = {"policy": "deterministic", "policy_delay": 2, "target_every": 2}


def make(**changes: Any) -> hotloop.SACLearner:
    return hotloop.SACLearner(obs=(FEATURES,), action=SPACE, hidden=HIDDEN, learning_rate=LR, **changes)


def batch_of(seed: int, k: tuple[int, ...] = ()) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    shape = (*k, ROWS)
    return {
        "obs": draw.normal(size=(*shape, FEATURES)).astype(np.float32),
        "action": draw.uniform(SPACE.low, SPACE.high, (*shape, 2)).astype(np.float32),
        "reward": draw.normal(size=shape).astype(np.float32),
        "discount": np.where(draw.random(shape) < 0.2, 0.0, GAMMA).astype(np.float32),
        "next_obs": draw.normal(size=(*shape, FEATURES)).astype(np.float32),
    }


def plain_twin(learner: Any, kind: type[Any]) -> Any:
    agent = kind(FEATURES, 2, HIDDEN, LR, GAMMA)
    actors = [agent.actor, *([agent.target_actor] if kind is TD3Agent else [])]
    with torch.no_grad():
        for actor in actors:
            for theirs, ours in zip(actor.parameters(), learner.network.actor.parameters(), strict=True):
                theirs.copy_(ours)
    for place, critics in enumerate(((agent.critic1, agent.target1), (agent.critic2, agent.target2))):
        for critic in critics:
            copy_critic(learner.network.critics, place, critic)
    return agent


def plain_update(agent: Any, batch: dict[str, Any], noise: Any) -> None:
    """Actions in units of half their range, and the numbers that the learner drew."""
    middle, half = (SPACE.low + SPACE.high) / 2, (SPACE.high - SPACE.low) / 2
    done = (batch["discount"] == 0.0).astype(np.float32)
    action = (batch["action"] - middle) / half
    seen = (batch["obs"], action, batch["reward"], batch["next_obs"], done, noise.next_noise[0])
    extra = () if noise.noise is None else (noise.noise[0],)
    agent.update(*(torch.from_numpy(np.ascontiguousarray(part, np.float32)) for part in (*seen, *extra)))


@pytest.mark.parametrize("lane", ["eager", "native"])
@pytest.mark.parametrize(("kind", "changes"), [(SACAgent, {}), (TD3Agent, TD3)], ids=["sac", "td3"])
def test_updates_are_those_of_a_plain_program(lane: Any, kind: type[Any], changes: dict[str, Any]) -> None:
    learner = make(lane=lane, **changes)
    agent, given = plain_twin(learner, kind), []
    inner = learner._learner
    update = inner.lane.update
    inner.lane.update = lambda data, *rest: given.append(data) or update(data, *rest)
    for seed in range(60):
        batch = batch_of(seed)
        learner.update(batch)
        plain_update(agent, batch, given[-1])
    ours = torch.cat([part.detach().reshape(-1) for part in learner.network.actor.parameters()])
    theirs = torch.cat([part.detach().reshape(-1) for part in agent.actor.parameters()])
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    both = zip(agent.critic1.parameters(), agent.critic2.parameters(), strict=True)
    for stacked, pair in zip(learner.network.critics.parameters(), both, strict=True):
        torch.testing.assert_close(stacked.detach(), torch.stack(pair).detach(), rtol=1e-3, atol=1e-4)


def test_several_updates_in_one_call_are_the_same_updates() -> None:
    one, many = make(), make()
    batches = batch_of(0, (5,))
    for j in range(5):
        one.update({name: field[j] for name, field in batches.items()})
    stats = many.update(batches)
    assert (many.updates, stats.td_error.shape) == (5, (5, ROWS))
    for ours, theirs in zip(one.network.parameters(), many.network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_state_goes_on_where_it_was_taken() -> None:
    one, other = make(), make(seed=5)
    for seed in range(3):
        one.update(batch_of(seed))
    other.load_state_dict(one.state_dict())
    found, expected = other.update(batch_of(9)), one.update(batch_of(9))
    assert (found.loss, found.entropy, found.temperature) == (expected.loss, expected.entropy, expected.temperature)
    np.testing.assert_array_equal(other.act(np.zeros(FEATURES)), one.act(np.zeros(FEATURES)))
    assert other.updates == 4


def test_actions_are_the_envs_own() -> None:
    learner = make()
    drawn = learner.act(np.zeros((500, FEATURES), np.float32))
    assert drawn.shape == (500, 2)
    assert ((drawn >= SPACE.low) & (drawn <= SPACE.high)).all()
    assert drawn.std(axis=0).min() > 0.1
    judged = learner.act(np.zeros(FEATURES), deterministic=True)
    np.testing.assert_array_equal(judged, learner.act(np.zeros(FEATURES), deterministic=True))


def test_a_loop_learns_what_a_single_state_rewards() -> None:
    """The reward is highest where the first number is 1 and the second 0.75."""
    learner, draw = make(temperature=0.01, seed=1), np.random.default_rng(0)
    for _ in range(2_000):
        action = draw.uniform(SPACE.low, SPACE.high, (ROWS, 2)).astype(np.float32)
        reward = -np.square(action - [1.0, 0.75]).sum(axis=1)
        zeros = np.zeros((ROWS, FEATURES), np.float32)
        learner.update(
            {"obs": zeros, "action": action, "reward": reward, "discount": np.zeros(ROWS), "next_obs": zeros}
        )
    np.testing.assert_allclose(learner.act(np.zeros(FEATURES), deterministic=True), [1.0, 0.75], atol=0.2)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"action": np.zeros((ROWS, 3), np.float32)}, "batch.action"),
        ({"obs": np.zeros((ROWS, 4), np.float32)}, "batch.obs"),
        ({"discount": np.zeros(3, np.float32)}, "batch.discount"),
        ({"reward": None}, "reward"),
    ],
)
def test_a_wrong_batch_is_named(change: dict[str, Any], word: str) -> None:
    with pytest.raises(HotloopError, match=word):
        make().update(batch_of(0) | change)


def test_actions_without_bounds_are_refused() -> None:
    with pytest.raises(HotloopError, match="bounds"):
        hotloop.SACLearner(obs=(3,), action=spaces.Box(-np.inf, np.inf, (1,)))
    with pytest.raises(HotloopError, match="Box"):
        hotloop.SACLearner(obs=(3,), action=spaces.Discrete(2))
