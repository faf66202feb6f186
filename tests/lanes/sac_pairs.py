"""Lanes of SAC, TD3 and DDPG with batches of their own, and plain agents that begin with the same parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.witnesses.sac_update import SACAgent, TD3Agent
from hotloop.core.types import Array
from hotloop.lanes.sac_objective import SACBatch, SACObjective, SACSpec
from hotloop.nets.sac_network import SACNetwork
from hotloop.presets.sac_network_settings import SACLayout

FEATURES, ACTIONS, HIDDEN, ROWS, GAMMA = 5, 2, (16, 11), 8, 0.97
LR, K = 1e-3, 6
"""Learning rate; updates of a call."""
DETERMINISTIC: dict[str, Any] = {
    "stochastic": False,
    "learn_temperature": False,
    "critic_weight": 1.0,
    "policy_delay": 2,
    "target_every": 2,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "sac": {},
    "fixed-temperature": {"learn_temperature": False, "temperature": 0.2},
    "delayed": {"policy_delay": 2},
    "accumulate": {"accumulate": 2},
    "clipped": {"max_grad_norm": 0.05},
    "epsilon": {"slope_epsilon": 1e-6},
    "one-critic": {"critics": 1},
    "three-critics": {"critics": 3},
    "td3": DETERMINISTIC,
    "ddpg": DETERMINISTIC | {"critics": 1, "policy_delay": 1, "smoothing": 0.0, "target_every": 1},
}


def make_spec(**changes: Any) -> SACSpec:
    values: dict[str, Any] = {
        "actions": ACTIONS,
        "critics": 2,
        "stochastic": True,
        "learn_temperature": True,
        "temperature": 1.0,
        "target_entropy": -float(ACTIONS),
        "slope_epsilon": 0.0,
        "smoothing": 0.2,
        "smoothing_clip": 0.5,
        "policy_delay": 1,
        "critic_weight": 0.5,
        "max_grad_norm": 0.0,
        "accumulate": 1,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "target_tau": 0.05,
        "target_every": 1,
    }
    return SACSpec(**(values | changes))


def make_network(spec: SACSpec, activation: str = "relu", hidden: tuple[int, ...] = HIDDEN) -> SACNetwork:
    layout = SACLayout(FEATURES, hidden, activation, ACTIONS, spec.critics, spec.stochastic)
    torch.manual_seed(3)
    return SACNetwork(layout, spec.temperature if spec.learn_temperature else None)


def make_batches(spec: SACSpec, k: int, seed: int = 0, rows: int = ROWS) -> SACBatch:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        return rng.normal(size=(k, rows, *shape)).astype(np.float32)

    done = rng.random((k, rows)) < 0.2
    smoothed = spec.stochastic or spec.smoothing > 0.0
    return SACBatch(
        obs=normal(FEATURES),
        action=np.tanh(normal(ACTIONS)),
        reward=normal(),
        discount=np.where(done, 0.0, GAMMA).astype(np.float32),
        next_obs=normal(FEATURES),
        weight=rng.uniform(0.2, 1.0, (k, rows)).astype(np.float32),
        next_noise=normal(ACTIONS) if smoothed else None,
        noise=normal(ACTIONS) if spec.stochastic else None,
    )


def plain_agent(network: SACNetwork, spec: SACSpec, lr: float) -> Any:
    """Twin critics, without clipping or accumulation: what a plain program has."""
    settings = {"hidden": HIDDEN, "lr": lr, "gamma": GAMMA, "tau": spec.target_tau}
    if spec.stochastic:
        alpha = {"alpha": spec.temperature, "learn_alpha": spec.learn_temperature}
        agent: Any = SACAgent(FEATURES, ACTIONS, **settings, **alpha)
    else:
        agent = TD3Agent(FEATURES, ACTIONS, **settings, smoothing=spec.smoothing, policy_delay=spec.policy_delay)
        agent.target_actor.load_state_dict(_as_sequential(network.actor, agent.actor))
    agent.actor.load_state_dict(_as_sequential(network.actor, agent.actor))
    for place, names in enumerate((("critic1", "target1"), ("critic2", "target2"))):
        for name in names:
            copy_critic(network.critics, place, getattr(agent, name))
    return agent


def _as_sequential(actor: nn.Module, like: nn.Module) -> dict[str, Tensor]:
    return dict(zip(like.state_dict(), (value.detach() for value in actor.parameters()), strict=True))


def copy_critic(critics: nn.Module, place: int, into: nn.Module) -> None:
    """One of our critics into a module of its own."""
    with torch.no_grad():
        for theirs, ours in zip(into.parameters(), critics.parameters(), strict=True):
            theirs.copy_(ours[place])


def plain_vectors(agent: Any) -> dict[str, Array]:
    """As the lane's state has them."""
    both = zip(agent.critic1.parameters(), agent.critic2.parameters(), strict=True)
    slow = zip(agent.target1.parameters(), agent.target2.parameters(), strict=True)
    vectors = {
        "online": _flat(agent.actor.parameters()),
        "critics": _flat(torch.stack(pair) for pair in both),
        "critics_target": _flat(torch.stack(pair) for pair in slow),
    }
    if isinstance(agent, TD3Agent):
        return vectors | {"target": _flat(agent.target_actor.parameters())}
    return vectors | ({"temperature": agent.log_alpha.detach().numpy()} if agent.learn_alpha else {})


def _flat(parts: Any) -> Array:
    return torch.cat([part.detach().reshape(-1) for part in parts]).numpy().copy()


def plain_update(agent: Any, batch: SACBatch, j: int) -> tuple[float, Array]:
    def tensor(values: Any) -> Any:
        return None if values is None else torch.from_numpy(np.array(values[j]))

    done = tensor((batch.discount == 0.0).astype(np.float32))
    seen = (tensor(batch.obs), tensor(batch.action), tensor(batch.reward), tensor(batch.next_obs))
    next_noise = np.zeros_like(batch.action) if batch.next_noise is None else batch.next_noise
    loss, errors = agent.update(*seen, done, tensor(next_noise), tensor(batch.noise), tensor(batch.weight))
    return loss, errors.numpy()


def rates(k: int = K) -> Array:
    return np.full(k, LR)


def assert_same_updates(one: Any, other: Any, batches: SACBatch, first_update: int, tolerance: float = 1e-4) -> None:
    k = len(batches.reward)
    found, expected = (lane.update(batches, rates(k), first_update) for lane in (one, other))
    np.testing.assert_allclose(found.scalars, expected.scalars, rtol=1e-3, atol=tolerance)
    np.testing.assert_allclose(found.td_error, expected.td_error, rtol=1e-3, atol=tolerance)


def assert_same_state(one: Any, other: Any, tolerance: float = 2e-5) -> None:
    """Of two lanes; the eager one has a generator besides."""
    expected = other.state()
    for name, vector in one.state().items():
        np.testing.assert_allclose(vector, expected[name], rtol=1e-3, atol=tolerance, err_msg=name)


def assert_plain_updates(lane: Any, agent: Any, calls: int, k: int, tolerance: float) -> None:
    """`calls` times k updates of a lane are those of a plain program that began with the same parameters."""
    for call in range(calls):
        batches = make_batches(lane.objective.spec, k, seed=call)
        stats = lane.update(batches, rates(k), call * k)
        for j in range(k):
            loss, errors = plain_update(agent, batches, j)
            np.testing.assert_allclose(stats.scalars[0, j], loss, rtol=tolerance, atol=tolerance / 10)
            np.testing.assert_allclose(stats.td_error[j], errors, rtol=1e-3, atol=tolerance)
    state = lane.state()
    for name, vector in plain_vectors(agent).items():
        np.testing.assert_allclose(state[name], vector, rtol=1e-3, atol=tolerance / 10, err_msg=name)


def objective_of(variant: str) -> SACObjective:
    return SACObjective(make_spec(**VARIANTS[variant]))
