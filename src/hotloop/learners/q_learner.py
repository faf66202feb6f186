"""DQN on a user's Q-network: `update` with batches of anybody's replay, `act` in anybody's loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import ArgumentError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array, Batch, ObsSpec
from hotloop.inputs.arguments import (
    adam_constants,
    given_mask,
    read_mask,
    require_above_zero,
    require_between,
    require_choices,
    require_one_of,
    rows_of,
)
from hotloop.inputs.specs import CHOICE
from hotloop.inputs.values import require_count
from hotloop.inputs.values_kernels import count_outside
from hotloop.lanes.eager import EagerLane, kept_buffers
from hotloop.lanes.objective import TARGET
from hotloop.lanes.spec import LANES
from hotloop.learners.batch_input import as_fields, read_batch
from hotloop.learners.dqn import DQNLearner
from hotloop.learners.learner import NOT_ARGUMENTS, ModuleLearner
from hotloop.learners.measured import QStats
from hotloop.learners.own_network import GivenModule, answer_to
from hotloop.nets.given_network import SEVERAL_PARTS, SharedNetwork
from hotloop.nets.reading import read_q_network
from hotloop.nets.tracing import in_mode
from hotloop.presets.dqn_settings import DQNSettings, LearnerSettings, OptimizerSettings, TargetSettings
from hotloop.replay.storage import BatchPlan

VECTORS = ("target", "mean", "square")


class QLearner(ModuleLearner):
    """Trains `network`, any module from observations to Q-values [B, A], by DQN.

    >>> import hotloop
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> learner = hotloop.QLearner(network, learning_rate=1e-3, double=True)
    >>> replay = hotloop.Replay(1_000, obs=(4,))
    >>> for step in range(100):
    ...     action = learner.act([0.1 * step, 0.0, 0.0, 0.0], epsilon=0.1)
    ...     _ = replay.add([0.1 * step] * 4, action, 1.0, [0.1] * 4, terminated=step == 99, truncated=False)
    >>> stats = learner.update(replay.sample(64))
    >>> stats.td_error.shape, learner.updates, learner.lane
    ((64,), 1, 'native')

    `network` stays yours: its parameters are the memory that updates change, so that it can be saved, evaluated and
    loaded as ever (`load_state_dict` too). A multilayer network in any writing runs on the native lane, others compiled
    or eager; `lane_reason` says why, `obs` (a shape or space) is needed only where a first batch shall not decide it.

    The target of a row is `reward + discount * Q_target(next_obs, best action)`: gamma and the ends of episodes are in
    `batch.discount`. The best action is the target network's, or the online one's if `double`. Every `target_every`
    updates the target network moves by `target_tau` towards the online one (1: a copy). The optimizer is Adam, after
    clipping to `max_grad_norm` if that is given; `learning_rate` may be set anew at any time. `compiled` is chosen by
    `auto` only where `planned_updates` repay compiling (50,000).
    """

    def __init__(
        self,
        network: nn.Module,
        learning_rate: float = 1e-3,
        *,
        double: bool = False,
        loss: Literal["huber", "mse"] = "huber",
        target_every: int = 500,
        target_tau: float = 1.0,
        max_grad_norm: float | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        lane: Literal["auto", "eager", "compiled", "native"] = "auto",
        obs: Any = None,
        planned_updates: int = 0,
        seed: int = 0,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name not in NOT_ARGUMENTS}
        require_one_of("loss", loss, ("huber", "mse"))
        require_one_of("lane", lane, ("auto", *LANES))
        self._settings = DQNSettings(
            double=bool(double),
            loss=loss,
            optimizer=OptimizerSettings(
                learning_rate=require_above_zero("learning_rate", learning_rate, "1e-3"),
                **adam_constants(betas, eps, max_grad_norm),
            ),
            target=TargetSettings(
                tau=require_above_zero("target_tau", target_tau, "1.0", high=1.0),
                every=require_count("target_every", target_every),
            ),
            learner=LearnerSettings(lane=lane),
        )
        self._rng = np.array([derive_seed(seed, "policy")], np.uint64)
        self._plan_taken: BatchPlan | None = None
        super().__init__(network, self._settings.optimizer.learning_rate, lane, obs, planned_updates)

    def _check_answer(self, spec: ObsSpec) -> int:
        q = answer_to("network", self.network, spec, self._device)
        if not isinstance(q, Tensor) or q.ndim != 2 or len(q) != 2:
            found = f"shape {tuple(q.shape)}" if isinstance(q, Tensor) else f"a {type(q).__name__}"
            hint = "an actor-critic is trained by `PolicyLearner`" if isinstance(q, tuple) else "a value of each action"
            raise ArgumentError(f"`network` answers 2 observations with {found}; expected Q-values [2, actions]", hint)
        return q.shape[1]

    def _learner_of(self, spec: ObsSpec) -> DQNLearner:
        self._num_actions = self._check_answer(spec)
        reading = SEVERAL_PARTS
        if not isinstance(spec, dict) and self._device == "cpu":
            reading = read_q_network(self.network, spec.shape)
        given = GivenModule(SharedNetwork(self.network, reading.order), reading, self._device, self._planned)
        return DQNLearner(self._settings, spec, self._num_actions, self._counters, given)

    def _begin_on(self, lane: Any) -> None:
        super()._begin_on(lane)
        self._policy = self._learner.exploring(0)
        self._policy.rng = self._rng
        if isinstance(lane, EagerLane):
            lane.modules[TARGET].eval()  # a target neither drops units nor counts statistics

    def update(self, batch: Any) -> QStats:
        """One update on each batch: of fields [B, ...], or k in a row of fields [k, B, ...].

        `batch` is what `Replay.sample` gives, or a dict or anything else with `obs`, `action`, `reward`, `discount` and
        `next_obs`, arrays or tensors; `weight` (of each row's loss) and `next_action_mask` [B, A] may be left out.
        """
        data, is_single = self._read(batch)
        self._sharing.require()
        if self._compiles:
            self._compile(data, len(data.reward))
        return QStats(self._learn(data), self._learner.measures, is_single)

    def _read(self, batch: Any) -> tuple[Batch, bool]:
        """The batch as [k, B, ...], and whether it was a single one."""
        if batch.__class__ is Batch and (arrays := batch.as_drawn()) is not None:
            if arrays.plan is self._plan_taken:  # of the same replay and size: looked at before
                self._require_in_range(arrays.batch.action)
                return arrays.batch, batch.reward.ndim == 1
            data, is_single = self._look_at(batch)
            is_plain = data.obs.__class__ is np.ndarray and data.obs.dtype is arrays.batch.obs.dtype
            self._plan_taken = arrays.plan if is_plain else None
            return data, is_single
        return self._look_at(batch)

    def _look_at(self, batch: Any) -> tuple[Batch, bool]:
        """The same of a batch of anybody's, field by field."""
        batch = as_fields(batch)
        data, is_single = read_batch(batch, CHOICE, self._read_obs, None if self._spec is None else self._shape)
        self._require_in_range(data.action)
        mask = getattr(batch, "next_action_mask", None)
        if mask is not None:
            shape = data.action.shape[1:] if is_single else data.action.shape
            mask = read_mask("batch.next_action_mask", mask, (*shape, self._num_actions))
            data.next_action_mask = mask[None] if is_single else mask
        return data, is_single

    def _require_in_range(self, action: Any) -> None:
        """A choice that the network does not have would be read from somebody else's memory."""
        if action.__class__ is np.ndarray and count_outside(action.reshape(-1), 0, self._num_actions - 1):
            wrong = action.min() if action.min() < 0 else action.max()
            raise ArgumentError(
                f"`batch.action` holds {wrong}; expected 0 to {self._num_actions - 1}", "one for each of the outputs"
            )

    def act(self, obs: Any, epsilon: float = 0.0, action_mask: Any = None, *, mask: Any = None) -> Any:
        """The best action of one observation as an int, or of N observations [N, ...] as int64 [N]; with probability
        `epsilon` a random one. `action_mask` ([A] or [N, A]; `mask` is another name for it) says which actions are
        allowed. A network with dropout or batch normalization answers in evaluation mode."""
        rows, is_single = self._read_rows(obs)
        self._sharing.require()
        epsilon = require_between("epsilon", epsilon, 0.0, 1.0, "0.1")
        name, mask = given_mask(action_mask, mask)
        if mask is not None:
            shape = (self._num_actions,) if is_single else (rows_of(rows), self._num_actions)
            mask = read_mask(name, mask, shape).reshape(rows_of(rows), -1)
            require_choices(name, mask)
        if self._as_floats:  # the native lane, which asks no module
            action = self._choose(rows, mask, epsilon)
        else:
            with in_mode(self.network, training=False):
                action = self._choose(rows, mask, epsilon)
        return int(action[0]) if is_single else action

    def _choose(self, rows: Any, mask: Array | None, epsilon: float) -> Array:
        if epsilon > 0.0:
            return self._policy.act(rows, mask, None, epsilon)[0]
        return self._lane.infer(rows, mask)[0]

    def state_dict(self) -> dict[str, Any]:
        """All that `update` and `act` change, tensors by the names of the network's parameters: for any lane."""
        named = self._named_vectors(VECTORS)
        if named and (target := self._target()) is not None:
            named["target"] |= {name: buffer.clone() for name, buffer in kept_buffers(target)}
        network = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        return {"network": network, **named, "updates": self.updates, "rng": int(self._rng[0])}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, on this or another lane. Settings are the constructor's."""
        self._load(state, ("rng",), VECTORS)
        if "target" in state and (target := self._target()) is not None:
            for name, buffer in kept_buffers(target):
                buffer.copy_(torch.as_tensor(state["target"][name]))
        self._rng[0] = np.uint64(state["rng"])

    def _target(self) -> nn.Module | None:
        """The target network's module, where the lane has one; the native lane has its parameters only."""
        lane = getattr(self._lane, "eager", self._lane)
        target = lane.modules[TARGET] if isinstance(lane, EagerLane) else None
        return target.network if isinstance(target, SharedNetwork) else None
