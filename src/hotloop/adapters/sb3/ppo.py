"""PPO of Stable-Baselines3 on the native lane: the same draws, minibatches and log lines, other arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import types
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import explained_variance
from torch import Tensor

from hotloop.adapters.sb3.actor_critic import Heads, QuickActorCritic, action_layout
from hotloop.adapters.sb3.in_place import STATE, InPlace, overridden
from hotloop.adapters.sb3.memory import SharedMemory, as_float_rows, not_finite
from hotloop.adapters.sb3.ppo_kernels import advantages_in_place, run_minibatches
from hotloop.core.terminal import say
from hotloop.core.types import Array
from hotloop.lanes.native import policy_plan_kernels as measure
from hotloop.lanes.native.policy_kernels import run_networks
from hotloop.lanes.native.policy_lane import make_scratch, network_layouts, network_plans, whole_numbers
from hotloop.lanes.native.unit_kernels import prepare_kernel, prepare_units, real_matrix, real_vector, vector, whole
from hotloop.lanes.policy_objective import PolicySpec
from hotloop.nets.actor_critic import ActorCriticLayout
from hotloop.nets.given_network import SharedActorCritic
from hotloop.nets.reading import Reading, read_actor_critic

LOG_STD = "policy.log_std"
ALSO_ITS_OWN = ("evaluate_actions", "_predict", "_get_action_dist_from_latent")
"""Methods of a policy that say what is computed, beside those that are replaced."""
NONE = -1.0
"""Of a limit: there is none."""
KEPT_PLANS = 8
"""Sizes that are ready at once; a run has one minibatch size, a remainder and one number of envs."""
_matrix = types.float32[:, ::1]
_memory = (whole, vector, whole, vector)
_NETWORKS = (whole, *_memory, vector, _matrix, _matrix, vector)
_taken = types.Tuple((vector, vector, vector, whole))
_scratch = types.Tuple((*[real_vector] * 5, real_matrix, real_matrix))
_MINIBATCHES = (
    whole, real_vector, *_memory, real_vector, *[vector] * 4, _matrix, vector, types.UniTuple(vector, 4), whole,
    types.float64, types.int64, _taken, _scratch, _matrix,
)  # fmt: skip
_columns = types.float32[:, ::1]
_ADVANTAGES = (*[_columns] * 3, vector, types.boolean[::1], types.float64, types.float64, _columns)


def prepare() -> None:
    """Compile the kernels, or load them from the cache."""
    prepare_units(run_networks, run_minibatches)
    prepare_kernel(run_networks, *_NETWORKS)
    prepare_kernel(run_minibatches, *_MINIBATCHES)
    prepare_kernel(advantages_in_place, *_ADVANTAGES)


class PolicyEngine:
    """The memory that a model's networks and Adam share with machine code, and the kernels that work on it."""

    def __init__(self, model: PPO, reading: Reading) -> None:
        prepare()
        layout, actions = reading.layout, action_layout(model.policy)
        assert isinstance(layout, ActorCriticLayout)
        assert actions is not None
        self._order, self._layout, self._actions = reading.order, layout, actions
        self._layouts = network_layouts(layout, actions.num_outputs)
        self._plans: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._acting: dict[int, tuple[Array, ...]] = {}
        self.memory = self._share(model.policy)
        self._gradient = np.zeros_like(self.memory.online)

    def _share(self, policy: ActorCriticPolicy) -> SharedMemory:
        log_std = policy.log_std if self._actions.continuous else None
        network = SharedActorCritic(Heads(policy), self._order, log_std, LOG_STD)
        return SharedMemory(network, policy.optimizer, None)

    def is_shared(self, model: PPO) -> bool:
        return self.memory.is_shared(model.policy.optimizer)

    def _spec(self, rows: int, normalize: bool, constants: tuple[float, ...]) -> PolicySpec:
        max_norm, beta1, beta2, epsilon = constants
        return PolicySpec(
            actions=self._actions, rows=rows, policy_loss="clipped", normalize_advantage=normalize, value_clip=0.0,
            vf_coef=0.0, ent_coef=0.0, kl_stop=0.0, max_grad_norm=max_norm, beta1=beta1, beta2=beta2,
            epsilon=epsilon,
        )  # fmt: skip

    def _plan(self, rows: int, normalize: bool, constants: tuple[float, ...]) -> tuple[Any, ...]:
        """What is being updated in minibatches of `rows`: sizes, memory of both networks, constants, own rows."""
        key = (rows, normalize, *constants)
        if key not in self._plans:
            if len(self._plans) == KEPT_PLANS:
                self._plans.clear()
            spec = self._spec(rows, normalize, constants)
            memory, numbers = network_plans(spec, self._layouts, rows, training=True)
            sizes = (self._layout.obs_size, self._actions.width, self._actions.num_outputs)
            taken = (*(np.zeros(rows * size, np.float32) for size in sizes), np.arange(rows))
            what = whole_numbers(spec, self._layout, self._layouts)
            self._plans[key] = (what, memory, numbers, taken, make_scratch(spec))
        return self._plans[key]

    def infer(self, obs: Array) -> tuple[Array, Array]:
        """Logits or means [N, O] and values [N] of observations [N, F]."""
        count = len(obs)
        memory = self._acting.get(count)
        if memory is None:
            if len(self._acting) == KEPT_PLANS:
                self._acting.clear()
            spec = self._spec(count, False, (0.0, 0.9, 0.999, 1e-8))
            plans, _ = network_plans(spec, self._layouts, count, training=False)
            memory = self._acting[count] = (whole_numbers(spec, self._layout, self._layouts), *plans)
        out = np.empty((count, self._actions.num_outputs), np.float32), np.empty(count, np.float32)
        run_networks(*memory, self.memory.online, obs, *out)
        return out

    def epoch(self, model: PPO, rows: MinibatchRows, clips: tuple[float, float]) -> tuple[Array, bool]:
        """Statistics [measures, minibatches] of one pass over the rollout, and whether KL ended it."""
        order, size = np.random.permutation(len(rows.obs)), min(model.batch_size or len(rows.obs), len(rows.obs))
        group = model.policy.optimizer.param_groups[0]
        limit = NONE if model.target_kl is None else 1.5 * model.target_kl
        constants = (float(model.max_grad_norm), *group["betas"], group["eps"])
        float_plan = np.array([*clips, model.vf_coef, model.ent_coef, limit], np.float64)
        whole_part, measured = len(order) // size * size, []
        for part in (order[:whole_part], order[whole_part:]):
            if not part.size:
                continue
            plan = self._plan(min(size, part.size), bool(model.normalize_advantage), constants)
            stats, ended = self._minibatches(rows, plan, float_plan, part, float(group["lr"]))
            measured.append(stats)
            if ended:
                return np.concatenate(measured, axis=1), True
        return np.concatenate(measured, axis=1), False

    def _minibatches(
        self, rows: MinibatchRows, plan: tuple[Any, ...], float_plan: Array, order: Array, lr: float
    ) -> tuple[Array, bool]:
        what, networks, constants, taken, scratch = plan
        memory, stats = self.memory, np.empty((measure.GRADIENT_NORM + 1, order.size // what[measure.ROWS]), np.float32)
        measured, made = run_minibatches(
            what, float_plan, *networks, constants, memory.online, self._gradient, *memory.moments, rows.obs,
            rows.action, rows.columns, order, lr, memory.count, taken, scratch, stats,
        )  # fmt: skip
        memory.advance(made)
        stats = stats[:, :measured]
        if measured > made and not stats[measure.KL, -1] > float_plan[measure.KL_STOP] >= 0.0:
            raise not_finite(memory.count + 1)
        return stats, measured > made


class MinibatchRows:
    """A full rollout buffer, flattened as `RolloutBuffer.get` does it, in the types that kernels take."""

    def __init__(self, buffer: RolloutBuffer) -> None:
        if not buffer.generator_ready:
            for name in ("observations", "actions", "values", "log_probs", "advantages", "returns"):
                setattr(buffer, name, buffer.swap_and_flatten(getattr(buffer, name)))
            buffer.generator_ready = True
        self.obs = as_float_rows(buffer.observations, 1)
        self.action = np.ascontiguousarray(buffer.actions, np.float32).reshape(-1)
        names = ("log_probs", "advantages", "values", "returns")
        self.columns = tuple(np.ascontiguousarray(getattr(buffer, name), np.float32).reshape(-1) for name in names)


class QuickPPO(PPO, InPlace):
    """Methods of an accelerated `PPO`."""

    def train(self) -> None:
        if not self._hotloop.is_ready(self):
            return self.train()  # which is PPO's own again
        self._update_learning_rate(self.policy.optimizer)
        clip = self.clip_range(self._current_progress_remaining)
        value_clip = None if self.clip_range_vf is None else self.clip_range_vf(self._current_progress_remaining)
        rows, ended = MinibatchRows(self.rollout_buffer), False
        epochs: list[Array] = []
        while len(epochs) < self.n_epochs and not ended:
            clips = (clip, NONE if value_clip is None else value_clip)
            stats, ended = self._hotloop.engine.epoch(self, rows, clips)
            epochs.append(stats)
            self._n_updates += 1
        if ended and self.verbose >= 1:
            say(f"stopped in epoch {len(epochs) - 1}: KL {epochs[-1][measure.KL, -1]:.2f} is above 1.5 x target_kl")
        self._record_training(epochs, clip, value_clip)

    def _record_training(self, epochs: list[Array], clip: float, value_clip: float | None) -> None:
        """Under the names of `PPO.train`: means over all minibatches, KL of the last epoch, the last loss."""
        means = np.concatenate(epochs, axis=1).mean(axis=1, dtype=np.float64)
        record, buffer = self.logger.record, self.rollout_buffer
        record("train/entropy_loss", -means[measure.ENTROPY])
        record("train/policy_gradient_loss", means[measure.POLICY_LOSS])
        record("train/value_loss", means[measure.VALUE_LOSS])
        record("train/approx_kl", epochs[-1][measure.KL].mean(dtype=np.float64))
        record("train/clip_fraction", means[measure.CLIP_FRACTION])
        record("train/loss", float(epochs[-1][measure.LOSS, -1]))
        record("train/explained_variance", explained_variance(buffer.values.flatten(), buffer.returns.flatten()))
        if hasattr(self.policy, "log_std"):
            record("train/std", torch.exp(self.policy.log_std).mean().item())
        record("train/n_updates", self._n_updates, exclude="tensorboard")
        record("train/clip_range", clip)
        if value_clip is not None:
            record("train/clip_range_vf", value_clip)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), STATE]


class QuickRolloutBuffer(RolloutBuffer, InPlace):
    """Methods of its rollout buffer."""

    def compute_returns_and_advantage(self, last_values: Tensor, dones: Array) -> None:
        last = last_values.detach().cpu().numpy().reshape(-1).astype(np.float32)
        ended = np.ascontiguousarray(dones, np.bool_)
        arrays = (self.rewards, self.values, self.episode_starts)
        advantages_in_place(*arrays, last, ended, float(self.gamma), float(self.gae_lambda), self.advantages)
        self.returns = self.advantages + self.values

    def add(
        self, obs: Array, action: Array, reward: Array, episode_start: Array, value: Tensor, log_prob: Tensor
    ) -> None:
        """Every row goes straight into its array; `RolloutBuffer` copies each before."""
        pos = self.pos
        self.observations[pos], self.actions[pos] = obs, action.reshape(self.n_envs, self.action_dim)
        self.rewards[pos], self.episode_starts[pos] = reward, episode_start
        self.values[pos], self.log_probs[pos] = value.cpu().numpy().reshape(-1), log_prob.cpu().numpy().reshape(-1)
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full = True


def read_ppo(model: PPO) -> tuple[Reading | None, str]:
    """The networks as the native lane takes them, or why this model is left alone."""
    policy = model.policy
    if name := overridden(QuickPPO, model, PPO):
        return None, f"its class {type(model).__name__} has a `{name}` of its own"
    if not isinstance(policy, ActorCriticPolicy):
        return None, f"its policy is a {type(policy).__name__}"
    if name := overridden(QuickActorCritic, policy, ActorCriticPolicy, *ALSO_ITS_OWN):
        return None, f"its policy {type(policy).__name__} has a `{name}` of its own"
    if model.use_sde:
        return None, "it explores by gSDE, whose noise depends on the state"
    if action_layout(policy) is None:
        return None, f"its actions are drawn from a {type(policy.action_dist).__name__}"
    log_std = LOG_STD if hasattr(policy, "log_std") else ""
    reading = read_actor_critic(Heads(policy), model.observation_space.shape, log_std)
    return reading, reading.reason
