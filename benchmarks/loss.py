"""The Q-loss: as the lanes compute it, and two often proposed ideas measured singly, whatever comes out.

`q-loss`: a lane has no entry for the loss alone, so its fast form is a whole update with learning rate 0: gradient
and Adam's pass are extra work that counts against it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import hotloop
from benchmarks.learners import (
    GAMMA,
    NUM_ACTIONS,
    OBS_SIZE,
    SMALL,
    Size,
    flat,
    lane_problem,
    make_batches,
    make_settings,
)
from benchmarks.witnesses.dqn_parts import double_q_loss, gradient, q_loss
from benchmarks.witnesses.dqn_update import QNetwork
from hotloop.core.types import ArraySpec, UpdateStats
from hotloop.lanes.spec import LANES
from hotloop.learners.dqn import DQNLearner
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare

SIZES = (Size((64, 64), 32), Size((256, 256), 256))
TOLERANCE = 1e-5
PlainLoss = Callable[..., Tensor]


class _Networks:
    """Online and target networks of the same sizes but different weights, and one batch."""

    def __init__(self, size: Size, seed: int = 0) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.online = QNetwork(OBS_SIZE, NUM_ACTIONS, size.hidden)
            self.target = QNetwork(OBS_SIZE, NUM_ACTIONS, size.hidden)
        self.ours, (plain,) = make_batches("mse", size.batch, 1, seed)
        self.plain = tuple(plain[name] for name in ("obs", "action", "reward", "next_obs", "done"))


def _with_gradient(loss: PlainLoss, networks: _Networks) -> tuple[Any, Any]:
    """The loss and its gradient, as one vector."""
    value = loss(networks.online, networks.target, networks.plain, GAMMA)
    return value.detach().numpy(), flat(gradient(value, networks.online))


def _plain_call(loss: PlainLoss, networks: _Networks, backward: bool) -> Callable[[], Any]:
    def forward_only() -> Any:
        return loss(networks.online, networks.target, networks.plain, GAMMA)

    return (lambda: gradient(forward_only(), networks.online)) if backward else forward_only


@hotloop.cases("the loss alone, and with its gradient")
def q_loss_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="q-loss",
            variant=variant,
            lane=lane,
            unavailable=lane_problem(lane),
            size=size.name,
            build=partial(_build_q_loss, variant, lane, size),
            tolerance=TOLERANCE,
            quick=size == SIZES[0],
        )
        for variant in ("forward", "gradient")
        for lane in LANES
        if lane != "eager"  # there it is the same few calls of PyTorch
        for size in ((SMALL,) if small else SIZES)
    ]


def _make_lane(lane: str, networks: _Networks, size: Size) -> DQNLearner:
    settings = make_settings(lane, "mse", size)
    learner = DQNLearner(settings, ArraySpec((OBS_SIZE,)), NUM_ACTIONS)
    learner.lane.load_parameters(flat(networks.target.parameters()))
    learner.lane.move_target(1.0)
    learner.lane.load_parameters(flat(networks.online.parameters()))
    return learner


def _lane_call(learner: DQNLearner, networks: _Networks) -> Callable[[], UpdateStats]:
    nothing = np.zeros(1)
    return lambda: learner.lane.update(networks.ours, nothing, 0)


def _build_q_loss(variant: str, lane: str, size: Size) -> Programs:
    networks = _Networks(size)
    learner = _make_lane(lane, networks, size)
    fast = _lane_call(learner, networks)

    def compare_first(stats: UpdateStats, plain: Any) -> Equality:
        if variant == "gradient":
            return compare([("gradient", _gradient_of(learner, stats), flat(plain))])
        return compare([("loss", stats.scalars[0][0], plain.detach())])

    def growth() -> TwoSizes:
        larger = size.with_batch(8 * size.batch)
        others = _Networks(larger)
        large = _lane_call(_make_lane(lane, others, larger), others)
        return TwoSizes(fast, large, 8.0, f"B {size.batch}", f"{larger.batch}")

    return Programs(
        plain=_plain_call(q_loss, networks, variant == "gradient"),
        fast=fast,
        compare=compare_first,
        further=partial(_check_q_loss, lane, size),
        growth=None if lane == "compiled" else growth,
    )


def _gradient_of(learner: DQNLearner, stats: UpdateStats) -> Any:
    """Read from Adam's running mean after a first update."""
    optimizer, norm = learner.settings.optimizer, float(stats.scalars[2][0])
    clip = min(1.0, optimizer.max_grad_norm / (norm + 1e-6))
    return learner.state()["mean"] / (1.0 - optimizer.beta1) / clip


def _check_q_loss(lane: str, size: Size) -> Equality:
    """Over several batches: loss and gradient."""
    found = []
    for seed in range(8):
        networks = _Networks(size, seed)
        learner = _make_lane(lane, networks, size)
        stats = learner.lane.update(networks.ours, np.zeros(1), 0)
        loss, plain_gradient = _with_gradient(q_loss, networks)
        found += [("loss", stats.scalars[0][0], loss), ("gradient", _gradient_of(learner, stats), plain_gradient)]
    return compare(found)


@hotloop.cases("states and next states in one forward")
def combined_forward_cases(small: bool = False) -> list[Case]:
    """One forward on states and next states together: the same only where both use the same weights.

    `double`: the online network's two forwards. `shared`: no target network at all, in both programs. `as-proposed`:
    the target network is dropped to make the idea fit, which changes what is learned.
    """
    plans: dict[str, tuple[PlainLoss, PlainLoss, bool]] = {
        "double": (double_q_loss, combined_double_loss, False),
        "shared": (_shared_loss, combined_loss, False),
        "as-proposed": (q_loss, combined_loss, True),
    }
    return [
        _idea("combined-forward", variant, size, *plan, quick=size == SIZES[0])
        for variant, plan in plans.items()
        for size in ((SMALL,) if small else SIZES)
    ]


@hotloop.cases("targets computed into preallocated buffers")
def buffers_cases(small: bool = False) -> list[Case]:
    return [
        _idea("buffers", "", size, q_loss, BufferedLoss(size.batch), False, quick=size == SIZES[0])
        for size in ((SMALL,) if small else SIZES)
    ]


def _idea(family: str, variant: str, size: Size, plain: PlainLoss, fast: PlainLoss, changes: bool, quick: bool) -> Case:
    """Loss and gradient, since a forward that saves time may cost it in the backward."""

    def build() -> Programs:
        networks = _Networks(size)
        other = copy.copy(networks)
        other.online = copy.deepcopy(networks.online)
        return Programs(
            plain=_plain_call(plain, networks, True),
            fast=_plain_call(fast, other, True),
            compare=lambda mine, theirs: compare([("gradient", flat(mine), flat(theirs))]),
            further=partial(_check_idea, plain, fast, size),
        )

    return Case(family, size.name, build, variant, changes_learning=changes, tolerance=TOLERANCE, quick=quick)


def _check_idea(plain: PlainLoss, fast: PlainLoss, size: Size) -> Equality:
    found = []
    for seed in range(8):
        networks = _Networks(size, seed)
        mine, theirs = _with_gradient(fast, networks), _with_gradient(plain, networks)
        found += [("loss", mine[0], theirs[0]), ("gradient", mine[1].copy(), theirs[1])]
    return compare(found)


def _shared_loss(network: nn.Module, target: nn.Module, batch: tuple[Tensor, ...], gamma: float) -> Tensor:
    return q_loss(network, network, batch, gamma)


def combined_loss(network: nn.Module, target: nn.Module, batch: tuple[Tensor, ...], gamma: float) -> Tensor:
    """One forward for both halves; the online network values the next state."""
    obs, action, reward, next_obs, done = batch
    both, next_q = network(torch.cat([obs, next_obs])).split(len(obs))
    y = reward + gamma * next_q.detach().max(dim=1)[0] * (1 - done)
    return nn.functional.mse_loss(both.gather(1, action.unsqueeze(1)).squeeze(1), y)


def combined_double_loss(network: nn.Module, target: nn.Module, batch: tuple[Tensor, ...], gamma: float) -> Tensor:
    """One online forward for the prediction and for the choice of the next action."""
    obs, action, reward, next_obs, done = batch
    q, select = network(torch.cat([obs, next_obs])).split(len(obs))
    with torch.no_grad():
        best = select.argmax(dim=1, keepdim=True)
        y = reward + gamma * target(next_obs).gather(1, best).squeeze(1) * (1 - done)
    return nn.functional.mse_loss(q.gather(1, action.unsqueeze(1)).squeeze(1), y)


class BufferedLoss:
    """Targets computed in place in one tensor made beforehand; the forwards allocate as ever."""

    def __init__(self, batch: int) -> None:
        self._y = torch.empty(batch)
        self._going_on = torch.empty(batch)

    def __call__(self, network: nn.Module, target: nn.Module, batch: tuple[Tensor, ...], gamma: float) -> Tensor:
        obs, action, reward, next_obs, done = batch
        with torch.no_grad():
            torch.amax(target(next_obs), 1, out=self._y)
            torch.sub(1.0, done, out=self._going_on)
            self._y.mul_(gamma).mul_(self._going_on).add_(reward)
        q = network(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        return nn.functional.mse_loss(q, self._y)
