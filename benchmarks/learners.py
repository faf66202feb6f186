"""The learners under proof: one DQN learner per lane, the plain agent beside it from the same start, and their data."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from benchmarks.witnesses.dqn_update import DQNAgent
from hotloop.core.errors import HotloopError
from hotloop.core.types import Array, ArraySpec, Batch
from hotloop.learners.dqn import DQNLearner
from hotloop.presets.dqn_settings import DQNSettings, LearnerSettings, OptimizerSettings, TargetSettings
from hotloop.presets.network_settings import NetworkSettings

Variant = Literal["dqn", "double", "dueling", "c51", "prioritized", "n-step", "mse", "masked", "rainbow"]
OBS_SIZE = 4
NUM_ACTIONS = 2
NUM_ACTIONS_MASKED = 5
GAMMA = 0.99
N_STEP = 3
LR = 1e-3
MAX_GRADIENT_NORM = 1.0  # between the norms that the data gives, so that some updates are clipped and some are not
TARGET_EVERY = 24  # updates: the 50 that are compared hold two moves, and calls of 8 updates end at them
ATOMS, V_MIN, V_MAX = 51, -5.0, 5.0


@dataclass(frozen=True)
class Size:
    hidden: tuple[int, ...]
    batch: int

    @property
    def name(self) -> str:
        return f"{'x'.join(map(str, self.hidden))}-b{self.batch}"

    def with_batch(self, batch: int) -> Size:
        return Size(self.hidden, batch)


SMALL = Size((8, 8), 4)


@functools.cache
def lane_problem(lane: str) -> str:
    """Why `lane` cannot run here; empty where it can."""
    try:
        found = make_learner(lane, "dqn", SMALL).lane.name
    except (HotloopError, ImportError) as error:
        return str(error)
    return "" if found == lane else f"the learner was asked for it and built {found} instead"


def make_settings(lane: str, variant: str, size: Size, **changes: Any) -> DQNSettings:
    whole = variant == "rainbow"  # all of them at once, but for noisy layers
    distributional = variant == "c51" or whole
    return DQNSettings(
        batch_size=size.batch,
        gamma=GAMMA,
        n_step=N_STEP if variant == "n-step" or whole else 1,
        double=variant == "double" or whole,
        loss="mse" if variant == "mse" else "huber",
        network=NetworkSettings(
            hidden=size.hidden,
            dueling=variant == "dueling" or whole,
            atoms=ATOMS if distributional else 1,
            v_min=V_MIN,
            v_max=V_MAX,
        ),
        learner=LearnerSettings(lane=lane),  # type: ignore[arg-type]
        optimizer=OptimizerSettings(learning_rate=LR, max_grad_norm=MAX_GRADIENT_NORM),
        target=TargetSettings(every=TARGET_EVERY),
        **changes,
    )


def num_actions(variant: str) -> int:
    return NUM_ACTIONS_MASKED if variant == "masked" else NUM_ACTIONS


def make_learner(lane: str, variant: str, size: Size) -> DQNLearner:
    return DQNLearner(make_settings(lane, variant, size), ArraySpec((OBS_SIZE,)), num_actions(variant))


def make_agent(learner: DQNLearner, variant: str) -> DQNAgent:
    """The plain agent with the learner's settings and parameters."""
    settings = learner.settings
    network = settings.network
    agent = DQNAgent(
        OBS_SIZE,
        num_actions(variant),
        hidden=network.hidden,
        lr=LR,
        gamma=settings.gamma,
        n_step=settings.n_step,
        double=settings.double,
        dueling=network.dueling,
        huber=settings.loss == "huber",
        atoms=network.atoms,
        v_min=network.v_min,
        v_max=network.v_max,
        max_grad_norm=settings.optimizer.max_grad_norm,
        target_every=settings.target.every,
    )
    copy_parameters(learner.lane.parameters(), agent.online)
    agent.target.load_state_dict(agent.online.state_dict())
    return agent


def copy_parameters(values: Array, network: torch.nn.Module) -> None:
    """Into a plain module whose parameters stand in the same order."""
    torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), network.parameters())


def copy_learner(state: Mapping[str, Any], updates: int, agent: Any) -> None:
    """Weights, target and Adam's moments into a plain agent with `online`, `target` and `optimizer`."""
    copy_parameters(state["online"], agent.online)
    copy_parameters(state["target"], agent.target)
    start = 0
    for parameter in agent.online.parameters() if updates else ():
        part = slice(start, start := start + parameter.numel())
        moments = {"exp_avg": state["mean"][part], "exp_avg_sq": state["square"][part]}
        agent.optimizer.state[parameter] = {"step": torch.tensor(float(updates))} | {
            name: torch.from_numpy(values.copy()).view_as(parameter) for name, values in moments.items()
        }


def flat(parameters: Any) -> Array:
    """Parameters (or their gradients) of a plain module as one vector."""
    return torch.cat([part.detach().reshape(-1) for part in parameters]).numpy()


PlainBatch = Mapping[str, Any]


def make_batches(variant: str, batch: int, k: int = 1, seed: int = 0) -> tuple[Batch, list[PlainBatch]]:
    """The same k batches twice: as the lanes take them, and as k dicts of tensors for `DQNAgent.update`."""
    rng = np.random.default_rng(seed)
    shape, actions = (k, batch), num_actions(variant)
    weighted = variant in ("prioritized", "rainbow")
    done = rng.random(shape) < 0.1
    steps = N_STEP if variant in ("n-step", "rainbow") else 1
    ours = Batch(
        obs=rng.normal(size=(*shape, OBS_SIZE)).astype(np.float32),
        action=rng.integers(actions, size=shape),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=(GAMMA**steps * ~done).astype(np.float32),
        next_obs=rng.normal(size=(*shape, OBS_SIZE)).astype(np.float32),
        weight=(rng.random(shape) if weighted else np.ones(shape)).astype(np.float32),
        index=np.zeros(shape, np.int64),
        next_action_mask=_mask(rng, shape, actions) if variant == "masked" else None,
    )
    return ours, [_plain(ours, done, j, weighted) for j in range(k)]


def _mask(rng: np.random.Generator, shape: tuple[int, int], actions: int) -> Array:
    mask = rng.random((*shape, actions)) < 0.5
    mask[..., 0] = True
    return mask


def _plain(batches: Batch, done: Array, j: int, weighted: bool) -> PlainBatch:
    fields = {name: torch.from_numpy(getattr(batches, name)[j]) for name in ("obs", "action", "reward", "next_obs")}
    fields["done"] = torch.from_numpy(done[j].astype(np.float32))
    if weighted:
        fields["weight"] = torch.from_numpy(batches.weight[j])
    if batches.next_action_mask is not None:
        fields["next_mask"] = torch.from_numpy(batches.next_action_mask[j])
    return fields
