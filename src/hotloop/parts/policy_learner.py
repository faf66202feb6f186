"""PPO on a user's actor-critic: `act` in anybody's loop, `update` with the rollout that came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import ArgumentError, CheckpointError, LaneError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array, Obs, ObsSpec, Rollout, RolloutRow, UpdateStats, map_obs
from hotloop.lanes.choice import LaneChoice, LaneJob
from hotloop.lanes.compiled import untraceable
from hotloop.lanes.policy_objective import MEASURES, Minibatches, PolicyObjective, PolicySpec, forward_and_draw
from hotloop.lanes.spec import LANES
from hotloop.maths.action_kernels import action_log_probs, best_actions, shuffle
from hotloop.maths.distributions import NO_MASK, ActionLayout
from hotloop.maths.gae_kernels import gae_numpy
from hotloop.nets.reading import Reading, in_mode, read_actor_critic
from hotloop.parts.arrays import (
    BOOL,
    FLOAT,
    INT,
    read_array,
    read_obs,
    read_spec,
    require_count,
    require_number,
    require_one_of,
    shape_of,
    spec_of,
)
from hotloop.parts.own_network import (
    SharedActorCritic,
    Sharing,
    answer_to,
    by_name,
    eager_of,
    flattened,
    frozen_problem,
    guess_obs,
    lane_for,
    require_trainable,
)

UNDECIDED = LaneChoice("", "not chosen yet: it depends on the observations; say `obs=` or make the first call")
LOG_STD_NAMES = ("log_std", "logstd")
FARTHEST = 1e-2
"""Log-probabilities of a rollout may differ so much from the policy's own: rounding, and no other policy."""


class Note(NamedTuple):
    """What the policy thought when it acted; belongs into the rollout."""

    log_prob: Any  # [N]
    value: Any  # [N]


class PolicyStats:
    """What the epochs over a rollout measured: means over all updates. Reading a number waits for the device."""

    __slots__ = ("_stats",)

    def __init__(self, stats: UpdateStats) -> None:
        self._stats = stats

    @property
    def updates(self) -> int:
        """Optimiser steps made; fewer than planned where `kl_stop` ended the epochs."""
        return self._stats.num_updates

    def __getattr__(self, name: str) -> float:
        """`loss`, `policy_loss`, `value_loss`, `entropy`, `kl`, `clip_fraction`, `gradient_norm` (before clipping)."""
        if name not in MEASURES:
            raise AttributeError(name)
        return float(self._stats.scalars[MEASURES.index(name)].mean())

    def __repr__(self) -> str:
        return f"PolicyStats(updates={self.updates}, {', '.join(f'{n}={getattr(self, n):.4g}' for n in MEASURES)})"


class PolicyLearner:
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
    >>> policy = hotloop.PolicyLearner(ActorCritic(), lr=3e-4, batch_size=8)
    >>> action, note = policy.act(np.zeros((2, 4), np.float32))
    >>> action.shape, note.log_prob.shape, policy.lane
    ((2,), (2,), 'native')

    `action` is None where the outputs are the logits of one choice, a shape where they are the means of so many
    numbers, or a Gymnasium space (Discrete, MultiDiscrete, Box). Numbers are drawn from a normal distribution around
    the means, in the env's own units and without bounds: give the drawn action to the rollout and a clipped one to the
    env. Its standard deviations are a parameter: the module's own (one whose name ends in `log_std` or `logstd`), or,
    with `log_std=0.0`, one of the learner that starts there.

    `update` computes advantages (`gamma`, `lam`), then goes `epochs` times through the rollout in shuffled minibatches
    of `batch_size`. Advantages are normalised within each minibatch (with the population's deviation). The loss is
    policy + `value_coef` x squared error of the value - `entropy_coef` x entropy; `kl_stop` ends the epochs after one
    whose mean KL divergence is above it. The optimiser is Adam after clipping to `max_gradient_norm`; `lr` and `clip`
    may be set anew at any time. Network, lanes and `obs` are as of `QLearner`.
    """

    def __init__(
        self,
        actor_critic: nn.Module,
        lr: float = 3e-4,
        *,
        action: Any = None,
        log_std: float | None = None,
        clip: float = 0.2,
        epochs: int = 4,
        batch_size: int = 64,
        gamma: float = 0.99,
        lam: float = 0.95,
        value_coef: float = 0.5,
        entropy_coef: float = 0.0,
        max_gradient_norm: float | None = 0.5,
        kl_stop: float | None = None,
        normalise_advantages: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-5,
        lane: str = "auto",
        obs: Any = None,
        planned_updates: int = 0,
        seed: int = 0,
    ) -> None:
        require_one_of("lane", lane, ("auto", *LANES))
        self._device = require_trainable("actor_critic", actor_critic)
        self.network, self.lr, self.clip, self.updates = actor_critic, lr, clip, 0
        self._batch_size, self._epochs = require_count("batch_size", batch_size, 1), require_count("epochs", epochs, 1)
        self._gamma = require_number("gamma", gamma, 0.0, 1.0, "0 to 1, e.g. 0.99")
        self._lam = require_number("lam", lam, 0.0, 1.0, "0 to 1, e.g. 0.95")
        self._actions = read_actions(action)
        self._terms: dict[str, Any] = {
            "rows": self._batch_size,
            "policy_loss": "clipped",
            "normalise_advantage": bool(normalise_advantages),
            "value_clip": 0.0,
            "value_weight": require_number("value_coef", value_coef, 0.0, np.inf, "at least 0, e.g. 0.5"),
            "entropy_weight": require_number("entropy_coef", entropy_coef, 0.0, np.inf, "at least 0, e.g. 0.01"),
            "kl_stop": require_number("kl_stop", kl_stop or 0.0, 0.0, np.inf, "None or a number above 0, e.g. 0.02"),
            "max_gradient_norm": require_number(
                "max_gradient_norm", max_gradient_norm or 0.0, 0.0, np.inf, "None or a number above 0, e.g. 0.5"
            ),
            "beta1": require_number("betas[0]", betas[0], 0.0, 1.0 - 1e-9, "at least 0 and below 1, e.g. 0.9"),
            "beta2": require_number("betas[1]", betas[1], 0.0, 1.0 - 1e-9, "at least 0 and below 1, e.g. 0.999"),
            "epsilon": require_number("eps", eps, 0.0, np.inf, "a number above 0, e.g. 1e-5", open_below=True),
        }
        self._asked, self._planned = lane, require_count("planned_updates", planned_updates, 0)
        self._rng = np.array([derive_seed(seed, "policy")], np.uint64)
        self._shuffler = np.array([derive_seed(seed, "shuffle")], np.uint64)
        self._log_std_name, self.log_std = "", None
        if self._actions.continuous:
            self._log_std_name, self.log_std = find_log_std(actor_critic, log_std, self._actions.continuous)
        elif log_std is not None:
            raise ArgumentError("`log_std` is given, but no action is a number", "leave it out")
        self._choice, self._spec = UNDECIDED, None
        spec = read_spec(obs) or guess_obs(actor_critic, self._takes)
        self._guessed = obs is None
        if spec is not None:
            self._start(spec)

    @property
    def lane(self) -> str:
        """`native`, `compiled` or `eager`; empty before it is chosen."""
        return self._choice.name

    @property
    def lane_reason(self) -> str:
        return self._choice.reason

    def __repr__(self) -> str:
        return f"PolicyLearner({type(self.network).__name__}, updates={self.updates}, lane={self.lane!r})"

    def _takes(self, spec: ObsSpec) -> bool:
        try:
            self._count_outputs(spec)
        except ArgumentError:
            return False
        return True

    def _count_outputs(self, spec: ObsSpec) -> int:
        """Refuses a module that answers with anything but a policy's outputs and a value."""
        answer = answer_to("actor_critic", self.network, spec, self._device)
        parts = answer if isinstance(answer, tuple | list) else (answer,)
        shapes = [tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__ for part in parts]
        wanted = self._actions.num_outputs
        right = len(shapes) == 2 and len(shapes[0]) == 2 and shapes[0][0] == 2 and shapes[1] in ((2,), (2, 1))
        if not right or (wanted and shapes[0][1] != wanted):
            raise ArgumentError(
                f"`actor_critic` answers 2 observations with {shapes}; expected outputs [2, {wanted or 'actions'}] and "
                "values [2] or [2, 1]",
                "return (logits or means, value)",
            )
        return int(shapes[0][1])

    def _start(self, spec: ObsSpec) -> None:
        """Choose and build the lane for observations of `spec`."""
        outputs = self._count_outputs(spec)
        if not self._actions.num_outputs:
            self._actions = ActionSpace(ActionLayout((outputs,)), ())
        self._counts = np.array(self._actions.layout.counts, np.int64)
        objective = PolicyObjective(PolicySpec(actions=self._actions.layout, **self._terms))
        frozen = frozen_problem("actor_critic", self.network)
        reading = Reading(None, reason="the observation has several parts")
        if not isinstance(spec, dict) and self._device == "cpu":
            reading = read_actor_critic(self.network, spec.shape, self._log_std_name)
        job = LaneJob(
            objective=objective,
            layout=reading.layout,
            batch_size=self._batch_size,
            device=self._device,
            precision="float32",
            planned_updates=self._planned,
            untraceable=frozen or untraceable(self.network),
            unreadable=frozen or reading.reason,
        )
        self._shared = SharedActorCritic(self.network, reading.order, self.log_std)
        self._choice, self._lane = lane_for(self._asked, job, self._shared)
        self._lane: Any
        self._sharing = Sharing("actor_critic", self.network, self._lane)
        self._spec, self._compiles = spec, self.lane == "compiled"

    def act(self, obs: Any, mask: Any = None, deterministic: bool = False) -> tuple[Any, Note]:
        """An action drawn for one observation, or for N observations [N, ...], and the note that belongs into the
        rollout. `mask` ([A] or [N, A]) says which choices are allowed. `deterministic`: the likeliest choice, the mean."""
        rows, is_single = self._read_rows(obs)
        self._sharing.require()
        count, layout = _length(rows), self._actions.layout
        allowed = NO_MASK if mask is None else self._allowed(mask, count, is_single)
        outputs, value = np.empty((count, layout.num_outputs), np.float32), np.empty(count, np.float32)
        action, log_prob = np.empty((count, layout.width), np.float32), np.empty(count, np.float32)
        log_std = self._shared.log_std.detach().cpu().numpy()
        if deterministic:
            outputs, value = self._outputs(rows)
            best_actions(outputs, log_std, allowed, self._counts, action)
        elif self.lane == "native":
            self._lane.act(RolloutRow(rows, outputs, value, action, None), self._rng, allowed)
        else:
            with in_mode(self.network, training=False):
                row = RolloutRow(rows, outputs, value, action, None)
                forward_and_draw(self._lane, self._shared, row, self._rng, allowed)
        action_log_probs(outputs, log_std, allowed, self._counts, action, log_prob)
        given = self._actions.to_env(action)
        if not is_single:
            return given, Note(log_prob, value)
        return (int(given[0]) if given.ndim == 1 else given[0]), Note(float(log_prob[0]), float(value[0]))

    def _outputs(self, rows: Obs) -> tuple[Array, Array]:
        """Of observations [N, ...]: the policy's outputs and the values, in evaluation mode."""
        with in_mode(self.network, training=False):
            return self._lane.infer(rows)

    def value(self, obs: Any) -> Array:
        """The values [N] of observations [N, ...]."""
        rows, _ = self._read_rows(obs)
        self._sharing.require()
        return self._outputs(rows)[1]

    def _read_rows(self, obs: Any) -> tuple[Obs, bool]:
        """Observations [N, ...], and whether it was a single one."""
        rows = read_obs("obs", obs, self.lane == "native")
        one, several = spec_of(rows, 0), spec_of(rows, 1)
        if self._spec is None or (self._guessed and shape_of(self._spec) not in (shape_of(one), shape_of(several))):
            fits = [spec for spec in (one, several) if self._takes(spec)]
            if len(fits) != 1:
                how = "neither as one observation nor" if not fits else "as one observation and"
                raise ArgumentError(f"`obs` has shape {shape_of(one)}, which the network takes {how} as several", "`obs=`")
            self._start(fits[0])
        self._guessed = False
        assert self._spec is not None
        if shape_of(one) == shape_of(self._spec):
            return map_obs(lambda part: part[None], rows), True
        if shape_of(several) != shape_of(self._spec):
            raise ArgumentError(f"`obs` has shape {shape_of(one)}; expected {shape_of(self._spec)}, or several of them")
        return rows, False

    def _allowed(self, mask: Any, count: int, is_single: bool) -> Array:
        width = self._actions.layout.num_logits
        allowed = read_array("mask", mask, BOOL)
        if allowed.shape != ((width,) if is_single else (count, width)) or not width:
            raise ArgumentError(f"`mask` has shape {allowed.shape}; expected {count} x {width} choices")
        allowed, start = allowed.reshape(count, width), 0
        for choices in self._actions.layout.counts:
            if not allowed[:, start : start + choices].any(-1).all():
                raise ArgumentError("`mask` allows no choice at all", "True marks a choice that is allowed")
            start += choices
        return allowed

    def update(self, rollout: Any, obs: Any) -> PolicyStats:
        """Learn from a full rollout; `obs` is the observation after the last `add`. The rollout is empty afterwards."""
        last, _ = self._read_rows(obs)
        self._sharing.require()
        data = self._prepare(read_rollout(rollout, self), last)
        rows = data.reward.size
        if rows % self._batch_size:
            raise ArgumentError(f"the rollout has {rows} rows, which minibatches of {self._batch_size} do not divide")
        order = np.empty((self._epochs, rows), np.int64)
        shuffle(self._shuffler, order)
        clip = require_number("clip", self.clip, 0.0, np.inf, "a number above 0, e.g. 0.2", open_below=True)
        batches = Minibatches(data, order, clip)
        lr = require_number("lr", self.lr, 0.0, np.inf, "a number above 0, e.g. 3e-4", open_below=True)
        if self._compiles:
            self._compile(batches)
        stats = self._lane.update(batches, np.full(order.size // self._batch_size, lr), self.updates)
        self.updates += stats.num_updates
        rollout.clear()
        return PolicyStats(stats)

    def _compile(self, batches: Minibatches) -> None:
        """Before the first update. What `auto` chose and cannot be compiled goes on eagerly, and says so."""
        self._compiles = False
        try:
            self._lane.prepare(batches, 4)
        except LaneError as error:
            if self._asked != "auto":
                raise
            self._choice = LaneChoice("eager", f"{self._choice.reason}; {error.message}")
            self._lane = eager_of(self._lane)
            self._sharing = Sharing("actor_critic", self.network, self._lane)

    def _prepare(self, taken: RolloutFields, last: Obs) -> Rollout:
        """The rollout as lanes take it, with advantages and returns."""
        steps, num_envs = taken.reward.shape
        value = np.concatenate([taken.value, self._outputs(last)[1][None]])
        final_value, advantage, returns = np.zeros((3, steps, num_envs), np.float32)
        if taken.timeouts is not None:
            at, envs, final_obs = taken.timeouts
            final_value[at, envs] = self._outputs(read_obs("final_obs", final_obs, self.lane == "native"))[1]
        ended = (taken.terminated, taken.truncated)
        gae_numpy(taken.reward, *ended, value, final_value, self._gamma, self._lam, advantage, returns)
        action = self._actions.from_env(taken.action, (steps, num_envs))
        outputs = self._acted(taken, action)
        return Rollout(
            taken.obs, outputs, action, value, taken.reward, *ended, taken.weight, final_value, advantage, returns,
            taken.action_mask,
        )  # fmt: skip

    def _acted(self, taken: RolloutFields, action: Array) -> Array:
        """The outputs [T, N, O] of the policy that acted: this one, unless the notes say that it was another."""
        layout, rows = self._actions.layout, taken.reward.size
        flat = map_obs(lambda part: part.reshape(rows, *part.shape[2:]), taken.obs)
        pieces = range(0, rows, self._batch_size)
        parts = [self._outputs(map_obs(lambda p, i=i: p[i : i + self._batch_size], flat))[0] for i in pieces]
        outputs, log_prob = np.concatenate(parts), np.empty(rows, np.float32)
        mask = NO_MASK if taken.action_mask is None else taken.action_mask.reshape(rows, -1)
        log_std = self._shared.log_std.detach().cpu().numpy()
        action_log_probs(outputs, log_std, mask, self._counts, action.reshape(rows, -1), log_prob)
        noted = taken.log_prob.reshape(-1)
        off = np.abs(log_prob - noted) / (1.0 + np.abs(noted))
        counted = taken.weight.reshape(-1) > 0
        if not (off[counted] < FARTHEST).all():
            at = int(np.argmax(np.where(counted, np.nan_to_num(off, nan=np.inf), 0.0)))
            raise ArgumentError(
                f"the rollout notes a log-probability of {noted[at]:.4g} where the policy gives {log_prob[at]:.4g}",
                "give `add` the action, mask and note that `act` returned (an action before clipping), and `update` the "
                "rollout before anything else changes the network",
            )
        return outputs.reshape(*taken.reward.shape, layout.num_outputs)

    def state_dict(self) -> dict[str, Any]:
        """Everything that updates and `act` change, by the names of the module's parameters: the same on any lane."""
        state = {} if self._spec is None else self._lane.state()
        named = {name: by_name(self._shared, state[name]) for name in ("mean", "square") if state}
        network = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        if self.log_std is not None:
            named["log_std"] = self.log_std.detach().clone()  # type: ignore[assignment]
        counters = {"updates": self.updates, "rng": int(self._rng[0]), "shuffler": int(self._shuffler[0])}
        return {"network": network, **named, **counters}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, on this or another lane. Settings are the constructor's."""
        if missing := {"network", "updates", "rng", "shuffler"} - set(state):
            raise CheckpointError(f"the state has no `{sorted(missing)[0]}`", "give what `state_dict()` returned")
        try:
            self.network.load_state_dict(state["network"])
        except RuntimeError as error:
            raise CheckpointError("the state is of another network", str(error).partition("\n")[2].strip()) from error
        if "mean" in state and self._spec is None:
            raise ArgumentError("the learner does not know its observations yet", "say `obs=` when you make it")
        if self.log_std is not None:
            with torch.no_grad():
                self.log_std.copy_(torch.as_tensor(state["log_std"]))
        if "mean" in state:
            vectors = {what: flattened(self._shared, state[what], what) for what in ("mean", "square")}
            self._lane.load_state(self._lane.state() | vectors)
        self.updates = int(state["updates"])
        self._rng[0], self._shuffler[0] = np.uint64(state["rng"]), np.uint64(state["shuffler"])


class ActionSpace(NamedTuple):
    """How a policy's rows [N, W] and an env's actions belong together."""

    layout: ActionLayout
    shape: tuple[int, ...]  # of one env's action

    @property
    def continuous(self) -> int:
        return self.layout.continuous

    @property
    def num_outputs(self) -> int:
        """0 where the network is still to say it."""
        return self.layout.num_outputs

    def to_env(self, action: Array) -> Array:
        """int64 [N] or [N, W], or float32 [N, ...]."""
        if self.layout.continuous:
            return action.reshape(len(action), *self.shape)
        return action.astype(np.int64).reshape(len(action), *self.shape)

    def from_env(self, action: Any, leading: tuple[int, int]) -> Array:
        """[T, N, W] float32 of a rollout's actions."""
        given = read_array("rollout.action", action, FLOAT if self.layout.continuous else INT)
        if given.shape != (*leading, *self.shape):
            raise ArgumentError(f"`rollout.action` has shape {given.shape}; expected {(*leading, *self.shape)}")
        rows = given.reshape(*leading, self.layout.width)
        for column, count in enumerate(self.layout.counts):
            if (rows[..., column] < 0).any() or (rows[..., column] >= count).any():
                raise ArgumentError(f"`rollout.action` holds a choice outside 0 to {count - 1}", "choices count from 0")
        return rows.astype(np.float32)


def read_actions(given: Any) -> ActionSpace:
    """`action=`: None for one choice, a shape of numbers, or a Gymnasium space."""
    if given is None:
        return ActionSpace(ActionLayout(), ())
    shape = getattr(given, "shape", given)
    if np.any(getattr(given, "start", 0)):
        raise ArgumentError(f"`action` is {given}, which does not count from 0", "add the start where you step the env")
    if hasattr(given, "n") and shape == ():
        return ActionSpace(ActionLayout((int(given.n),)), ())
    if hasattr(given, "nvec"):
        return ActionSpace(ActionLayout(tuple(int(count) for count in given.nvec.reshape(-1))), given.nvec.shape)
    floats = hasattr(given, "low") and np.dtype(given.dtype).kind == "f"
    sizes = (shape,) if isinstance(shape, int) else shape
    if (floats or not hasattr(given, "dtype")) and isinstance(sizes, tuple) and sizes:
        return ActionSpace(ActionLayout(continuous=int(np.prod(sizes))), tuple(sizes))
    raise ArgumentError(f"`action` is {given!r}; expected None, a shape, Discrete, MultiDiscrete or Box", "e.g. (2,)")


def find_log_std(module: nn.Module, start: float | None, count: int) -> tuple[str, nn.Parameter]:
    """The standard deviations' name among the module's parameters, and themselves; a parameter of the learner's own
    (without a name) where `start` asks for one."""
    found = [(name, one) for name, one in module.named_parameters() if name.endswith(LOG_STD_NAMES)]
    if start is not None and not found:
        device = next(module.parameters()).device
        return "", nn.Parameter(torch.full((count,), float(start), device=device))
    if start is not None or len(found) != 1:
        names = ", ".join(f"`{name}`" for name, _ in found) or "none"
        raise ArgumentError(
            f"`actor_critic` should have one parameter whose name ends in `log_std`, and has {names}",
            "leave `log_std=` out to use it" if len(found) == 1 else "`log_std=0.0` gives the learner one of its own",
        )
    name, parameter = found[0]
    if parameter.shape[-1:] != (count,) or parameter.numel() != count:
        raise ArgumentError(f"`actor_critic.{name}` has shape {tuple(parameter.shape)}; expected ({count},)", "")
    return name, parameter


class RolloutFields(NamedTuple):
    """A full rollout as arrays [T, N, ...]."""

    obs: Obs
    action: Array
    log_prob: Array
    value: Array
    reward: Array
    terminated: Array
    truncated: Array
    weight: Array  # 0 where an env ignored the action
    timeouts: tuple[Array, Array, Obs] | None  # steps, envs and final observations of truncated episodes
    action_mask: Array | None


def read_rollout(rollout: Any, learner: PolicyLearner) -> RolloutFields:
    """The one place that knows how a rollout keeps its rows."""
    if not rollout.full:
        raise ArgumentError("the rollout is not full yet", "`add` until `rollout.full`")
    reward = read_array("rollout.reward", rollout.reward, FLOAT)
    names = (("log_prob", FLOAT), ("value", FLOAT), ("terminated", BOOL), ("truncated", BOOL))
    log_prob, value, terminated, truncated = (
        read_array(f"rollout.{name}", getattr(rollout, name), dtype) for name, dtype in names
    )
    weight = getattr(rollout, "weight", None)
    mask = getattr(rollout, "action_mask", None)
    return RolloutFields(
        obs=read_obs("rollout.obs", rollout.obs, learner.lane == "native"),
        action=rollout.action,
        log_prob=log_prob,
        value=value,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        weight=np.ones_like(reward) if weight is None else read_array("rollout.weight", weight, FLOAT),
        timeouts=rollout.timeouts(),
        action_mask=None if mask is None else read_array("rollout.action_mask", mask, BOOL),
    )


def _length(rows: Obs) -> int:
    return len(next(iter(rows.values())) if isinstance(rows, dict) else rows)
