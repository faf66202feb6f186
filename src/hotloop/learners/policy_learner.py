"""PPO on a user's actor-critic: `act` in anybody's loop, `update` with the rollout that came of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from hotloop.core.errors import ArgumentError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array, Obs, ObsSpec, RolloutRow, RolloutSlab, map_obs
from hotloop.inputs.arguments import (
    adam_constants,
    given_mask,
    read_mask,
    read_obs,
    require_above_zero,
    require_between,
    require_choices,
    require_one_of,
    rows_of,
)
from hotloop.inputs.values import require_count, require_share
from hotloop.lanes.policy_objective import Minibatches
from hotloop.lanes.spec import LANES
from hotloop.learners.learner import NOT_ARGUMENTS, ModuleLearner
from hotloop.learners.measured import PolicyStats
from hotloop.learners.own_network import GivenModule, answer_to
from hotloop.learners.policy_inputs import (
    ActionSpace,
    RolloutFields,
    find_log_std,
    num_outputs_of,
    read_actions,
    read_rollout,
)
from hotloop.learners.ppo import PPOLearner
from hotloop.maths.action_kernels import action_log_probs, best_actions
from hotloop.maths.distributions import NO_MASK, ActionLayout
from hotloop.nets.given_network import SEVERAL_PARTS, SharedActorCritic
from hotloop.nets.reading import read_actor_critic
from hotloop.nets.tracing import in_mode
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.ppo_settings import PolicyLearnerSettings, PolicyOptimizerSettings, PPOSettings
from hotloop.replay.rollout import Note

VECTORS = ("mean", "square")
FARTHEST = 1e-2
"""Log-probabilities of a rollout may differ so much from the policy's own, by rounding; more is another policy."""
UPDATES_COMPILED = 4


class PolicyLearner(ModuleLearner):
    """Trains `actor_critic`, any module from observations to (logits or means [B, O], values [B] or [B, 1]), by PPO.

    >>> import hotloop, numpy as np
    >>> from torch import nn
    >>> class ActorCritic(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
    ...         self.critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
    ...     def forward(self, obs):
    ...         return self.actor(obs), self.critic(obs)
    >>> policy = hotloop.PolicyLearner(ActorCritic(), learning_rate=3e-4, batch_size=8)
    >>> rollout = hotloop.Rollout(num_steps=16, num_envs=2, obs=(4,), num_actions=2)
    >>> obs, never = np.zeros((2, 4), np.float32), [False, False]
    >>> while not rollout.full:
    ...     action, note = policy.act(obs)
    ...     rollout.add(obs, action, note, [1.0, 1.0], never, never, final_obs=obs)
    >>> stats = policy.update(rollout, obs)
    >>> stats.updates, len(rollout), policy.lane               # 4 epochs of 32 rows in minibatches of 8
    (16, 0, 'native')

    `action` is None where the outputs are the logits of one choice, a shape where they are the means of so many
    numbers, or a Gymnasium space: Discrete(n) needs n logits, MultiDiscrete as many as all its choices together,
    MultiBinary(n) two for each, 2n; a Box one mean for each number. Numbers are drawn from a normal distribution around
    the means, in the env's own units and without bounds: give the drawn action to the rollout and a clipped one to the
    env. Its standard deviations are a parameter: the module's own (one whose name ends in `log_std` or `logstd`), or,
    with `log_std=0.0`, one of the learner that starts there.

    `update` computes advantages (`gamma`, `gae_lambda`), then goes `n_epochs` times through the rollout in shuffled
    minibatches of `batch_size`. Advantages are normalized within each minibatch (with the population's deviation). The
    loss is policy + `vf_coef` x squared error of the value - `ent_coef` x entropy; `kl_stop` ends the epochs after one
    whose mean KL divergence is above it. The optimizer is Adam after clipping to `max_grad_norm`; `learning_rate` and
    `clip_range` may be set anew at any time. Network, lanes and `obs` are as of `QLearner`.
    """

    _title = "actor_critic"

    def __init__(
        self,
        actor_critic: nn.Module,
        learning_rate: float = 3e-4,
        *,
        action: Any = None,
        log_std: float | None = None,
        clip_range: float = 0.2,
        n_epochs: int = 4,
        batch_size: int = 64,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        vf_coef: float = 0.5,
        ent_coef: float = 0.0,
        max_grad_norm: float | None = 0.5,
        kl_stop: float | None = None,
        normalize_advantage: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-5,
        lane: Literal["auto", "eager", "compiled", "native"] = "auto",
        obs: Any = None,
        planned_updates: int = 0,
        seed: int = 0,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name not in NOT_ARGUMENTS}
        require_one_of("lane", lane, ("auto", *LANES))
        self.clip_range = require_above_zero("clip_range", clip_range, "0.2")
        self._batch_size = require_count("batch_size", batch_size)
        self._settings = PPOSettings(
            n_epochs=require_count("n_epochs", n_epochs),
            batch_size=self._batch_size,
            rollout_steps=self._batch_size,
            gamma=require_share("gamma", gamma),
            gae_lambda=require_share("gae_lambda", gae_lambda),
            clip_range=self.clip_range,
            vf_coef=require_between("vf_coef", vf_coef, 0.0, np.inf, "0.5"),
            ent_coef=require_between("ent_coef", ent_coef, 0.0, np.inf, "0.01"),
            normalize_advantage="minibatch" if normalize_advantage else "none",
            kl_stop=0.0 if kl_stop is None else require_above_zero("kl_stop", kl_stop, "0.02"),
            env=EnvSettings(num_envs=1),
            optimizer=PolicyOptimizerSettings(
                learning_rate=require_above_zero("learning_rate", learning_rate, "3e-4"),
                **adam_constants(betas, eps, max_grad_norm),
            ),
            learner=PolicyLearnerSettings(lane=lane),
        )
        self._rng = np.array([derive_seed(seed, "policy")], np.uint64)
        self._shuffler = np.array([derive_seed(seed, "shuffle")], np.uint64)
        self._actions = read_actions(action)
        self._log_std_name, self.log_std = "", None
        if not isinstance(actor_critic, nn.Module):
            pass  # the base says so
        elif self._actions.layout.continuous:
            self._log_std_name, self.log_std = find_log_std(actor_critic, log_std, self._actions.layout.continuous)
        elif log_std is not None:
            raise ArgumentError("`log_std` is given, but no action is a number", "leave it out, or say `action=`")
        super().__init__(actor_critic, self._settings.optimizer.learning_rate, lane, obs, planned_updates)

    def _check_answer(self, spec: ObsSpec) -> int:
        return num_outputs_of(answer_to("actor_critic", self.network, spec, self._device), self._actions.layout)

    def _learner_of(self, spec: ObsSpec) -> PPOLearner:
        outputs = self._check_answer(spec)
        if not self._actions.layout.num_outputs:
            self._actions = ActionSpace(ActionLayout((outputs,)), ())
        self._counts = np.array(self._actions.layout.counts, np.int64)
        reading = SEVERAL_PARTS
        if not isinstance(spec, dict) and self._device == "cpu":
            reading = read_actor_critic(self.network, spec.shape, self._log_std_name)
        shared = SharedActorCritic(self.network, reading.order, self.log_std, self._log_std_name)
        given = GivenModule(shared, reading, self._device, self._planned, self._title)
        learner = PPOLearner(self._settings, spec, self._actions, self._counters, given)
        learner.shuffler = self._shuffler
        return learner

    def act(
        self, obs: Any, action_mask: Any = None, deterministic: bool = False, *, mask: Any = None
    ) -> tuple[Any, Note]:
        """An action drawn for one observation, or for N observations [N, ...], and the note that belongs into the
        rollout. `action_mask` ([A] or [N, A]; `mask` is another name for it) says which choices are allowed; give it
        to the rollout too. `deterministic`: the likeliest choices and the means."""
        rows, is_single = self._read_rows(obs)
        self._sharing.require()
        name, given = given_mask(action_mask, mask)
        allowed = NO_MASK if given is None else self._allowed(name, given, rows_of(rows), is_single)
        count, layout = rows_of(rows), self._actions.layout
        outputs, value = np.empty((count, layout.num_outputs), np.float32), np.empty(count, np.float32)
        action, log_prob = np.empty((count, layout.width), np.float32), np.empty(count, np.float32)
        log_std = self._log_stds()
        if deterministic:
            outputs, value = self._infer(rows)
            best_actions(outputs, log_std, allowed, self._counts, action)
        elif self._as_floats:
            self._learner.draw(RolloutRow(rows, outputs, value, action, None), self._rng, allowed)
        else:
            with in_mode(self.network, training=False):
                self._learner.draw(RolloutRow(rows, outputs, value, action, None), self._rng, allowed)
        action_log_probs(outputs, log_std, allowed, self._counts, action, log_prob)
        chosen = self._actions.to_env(action)
        if not is_single:
            return chosen, Note(log_prob, value)
        return (int(chosen[0]) if chosen.ndim == 1 else chosen[0]), Note(float(log_prob[0]), float(value[0]))

    def _begin_on(self, lane: Any) -> None:
        super()._begin_on(lane)
        self._kept_log_stds = self._learner.network.log_std.detach().cpu().numpy()  # of a CPU the same memory

    def _log_stds(self) -> Array:
        """[C], as they are now."""
        return self._kept_log_stds if self._device == "cpu" else self._learner.network.log_std.detach().cpu().numpy()

    def value(self, obs: Any) -> Array:
        """The values [N] of observations [N, ...]."""
        rows, _ = self._read_rows(obs)
        self._sharing.require()
        return self._infer(rows)[1]

    def _allowed(self, name: str, mask: Any, count: int, is_single: bool) -> Array:
        """[N, logits], with a choice left in each part."""
        width = self._actions.layout.num_logits
        allowed = read_mask(name, mask, (width,) if is_single else (count, width)).reshape(count, width)
        start = 0
        for choices in self._actions.layout.counts:
            require_choices(name, allowed[:, start : start + choices])
            start += choices
        return allowed

    def update(self, rollout: Any, obs: Any) -> PolicyStats:
        """Learn from a full rollout; `obs` is the observation after the last `add`. The rollout is empty afterwards."""
        last, _ = self._read_rows(obs)
        self._sharing.require()
        taken = read_rollout(rollout, self._as_floats)
        rows, num_envs = taken.reward.size, taken.reward.shape[1]
        if rows_of(last) != num_envs:
            whole = map_obs(lambda part: (num_envs, *part.shape[1:]), last)
            raise ArgumentError(
                f"`obs` holds {rows_of(last)} of {num_envs} observations; expected is shape {whole}",
                "give the observations of all envs after the last `add`",
            )
        if rows % self._batch_size:
            raise ArgumentError(
                f"the rollout has {rows} rows, which is no multiple of `batch_size` ({self._batch_size})",
                "choose num_steps x num_envs as a multiple of it",
            )
        self._learner.clip = require_above_zero("clip_range", self.clip_range, "0.2")
        data = self._prepare(taken, last)
        if self._compiles:
            order = np.arange(rows)[None].repeat(self._settings.n_epochs, axis=0)
            self._compile(Minibatches(data, order, self.clip_range), UPDATES_COMPILED)
        stats = self._learn(data)
        rollout.clear()
        return PolicyStats(stats, self._learner.measures)

    def _prepare(self, taken: RolloutFields, last: Obs) -> RolloutSlab:
        """The rollout as lanes take it, with advantages and returns."""
        steps, num_envs = taken.reward.shape
        value = np.concatenate([taken.value, np.empty((1, num_envs), np.float32)])
        final_value, advantage, returns = np.zeros((3, steps, num_envs), np.float32)
        action = self._actions.from_env(taken.action, (steps, num_envs))
        data = RolloutSlab(
            taken.obs, self._acted(taken, action), action, value, taken.reward, taken.terminated, taken.truncated,
            taken.weight, final_value, advantage, returns, taken.action_mask,
        )  # fmt: skip
        with nullcontext() if self._as_floats else in_mode(self.network, training=False):
            self._learner.compute_advantages(data, last, self._read_timeouts(taken))
        return data

    def _read_timeouts(self, taken: RolloutFields) -> tuple[Array, Array, Obs] | None:
        if taken.timeouts is None:
            return None
        at, envs, final_obs = taken.timeouts
        return at, envs, read_obs("final_obs", final_obs, self._as_floats)

    def _acted(self, taken: RolloutFields, action: Array) -> Array:
        """The outputs [T, N, O] of the policy that acted: this one, unless the notes say that it was another."""
        layout, rows = self._actions.layout, taken.reward.size
        flat = map_obs(lambda part: part.reshape(rows, *part.shape[2:]), taken.obs)
        pieces = range(0, rows, self._batch_size)
        parts = [self._infer(map_obs(lambda p, i=i: p[i : i + self._batch_size], flat))[0] for i in pieces]
        outputs, log_prob = np.concatenate(parts), np.empty(rows, np.float32)
        mask = NO_MASK if taken.action_mask is None else taken.action_mask.reshape(rows, -1)
        log_std = self._log_stds()
        action_log_probs(outputs, log_std, mask, self._counts, action.reshape(rows, -1), log_prob)
        noted = taken.log_prob.reshape(-1)
        off = np.abs(log_prob - noted) / (1.0 + np.abs(noted))
        counted = taken.weight.reshape(-1) > 0
        if not (off[counted] < FARTHEST).all():
            at = int(np.argmax(np.where(counted, np.nan_to_num(off, nan=np.inf), 0.0)))
            raise ArgumentError(
                f"the rollout notes a log-probability of {noted[at]:.4g} where the policy gives {log_prob[at]:.4g}",
                "give `add` the mask, the action (before clipping) and the note of `act`, and learn from the rollout "
                "before anything else changes the network",
            )
        return outputs.reshape(*taken.reward.shape, layout.num_outputs)

    def state_dict(self) -> dict[str, Any]:
        """All that `update` and `act` change, tensors by the names of the module's parameters: for any lane."""
        network = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        state = {"network": network, **self._named_vectors(VECTORS)}
        if self.log_std is not None:
            state["log_std"] = self.log_std.detach().clone()
        counters = {"updates": self.updates, "rng": int(self._rng[0]), "shuffler": int(self._shuffler[0])}
        return state | counters

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, on this or another lane. Settings are the constructor's."""
        self._load(state, ("rng", "shuffler", *(() if self.log_std is None else ("log_std",))), VECTORS)
        if self.log_std is not None:
            with torch.no_grad():
                self.log_std.copy_(torch.as_tensor(state["log_std"]))
        self._rng[0], self._shuffler[0] = np.uint64(state["rng"]), np.uint64(state["shuffler"])

    def __deepcopy__(self, memo: dict[int, Any]) -> PolicyLearner:
        other = super().__deepcopy__(memo)
        other.clip_range = self.clip_range
        return other
