"""DQN on a user's Q-network: `update` with batches of anybody's replay, `act` in anybody's loop."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.algos.policy_kernels import draw_exploration, draw_masked_exploration
from hotloop.core.errors import ArgumentError, CheckpointError, LaneError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array, Batch, Obs, ObsSpec, UpdateStats, map_obs
from hotloop.lanes.choice import LaneChoice, LaneJob
from hotloop.lanes.compiled import untraceable
from hotloop.lanes.eager import EagerLane, kept_buffers
from hotloop.lanes.objective import TARGET
from hotloop.lanes.q_objective import QObjective, QSpec
from hotloop.lanes.spec import LANES, Lane
from hotloop.nets.reading import Reading, in_mode, read_q_network
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
    SharedNetwork,
    Sharing,
    answer_to,
    by_name,
    eager_of,
    flattened,
    frozen_problem,
    guess_obs,
    lane_for,
    load_buffers,
    require_trainable,
)
from hotloop.parts.values_kernels import count_outside

USUAL_BATCH = 64
UNDECIDED = LaneChoice("", "not chosen yet: it depends on the observations; say `obs=` or make the first call")
VECTORS = ("online", "target", "mean", "square")


class QStats:
    """What an update measured. Reading a number waits for the device; nothing is read before."""

    __slots__ = ("_is_single", "_stats")

    def __init__(self, stats: UpdateStats, is_single: bool) -> None:
        self._stats, self._is_single = stats, is_single

    @property
    def td_error(self) -> Array:
        """|target - prediction| of each row, [B] or [k, B]: the new priorities."""
        error = self._stats.td_error_on_host()
        return error[0] if self._is_single else error

    @property
    def loss(self) -> float:
        """Weighted mean of the rows' losses; of k updates the mean."""
        return float(self._stats.scalars[0].mean())

    @property
    def q_mean(self) -> float:
        """Mean Q of the actions taken."""
        return float(self._stats.scalars[1].mean())

    @property
    def gradient_norm(self) -> float:
        """Before clipping."""
        return float(self._stats.scalars[-1].mean())

    def __repr__(self) -> str:
        return f"QStats(loss={self.loss:.6g}, q_mean={self.q_mean:.6g}, gradient_norm={self.gradient_norm:.6g})"


class QLearner:
    """Trains `network`, any module from observations to Q-values [B, A], by DQN.

    >>> import hotloop, torch
    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> learner = hotloop.QLearner(network, lr=1e-3, double=True)
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
    updates the target network moves by `target_tau` towards the online one (1: a copy). The optimiser is Adam, after
    clipping to `max_gradient_norm` if that is given; `lr` may be set anew at any time. `compiled` is chosen by `auto`
    only where `planned_updates` repay compiling (50,000).
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float = 1e-3,
        *,
        double: bool = False,
        loss: Literal["huber", "mse"] = "huber",
        target_every: int = 500,
        target_tau: float = 1.0,
        max_gradient_norm: float | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        lane: str = "auto",
        obs: Any = None,
        planned_updates: int = 0,
        seed: int = 0,
    ) -> None:
        require_one_of("loss", loss, ("huber", "mse"))
        require_one_of("lane", lane, ("auto", *LANES))
        self._device = require_trainable("network", network)
        self.network, self.lr, self.updates = network, lr, 0
        norm = 0.0 if max_gradient_norm is None else max_gradient_norm
        spec = QSpec(
            loss=loss,
            double=bool(double),
            atoms=1,
            v_min=0.0,
            v_max=0.0,
            noisy=False,
            max_gradient_norm=require_number("max_gradient_norm", norm, 0.0, np.inf, "None or a number above 0, e.g. 10"),
            accumulate=1,
            beta1=require_number("betas[0]", betas[0], 0.0, 1.0 - 1e-9, "at least 0 and below 1, e.g. 0.9"),
            beta2=require_number("betas[1]", betas[1], 0.0, 1.0 - 1e-9, "at least 0 and below 1, e.g. 0.999"),
            epsilon=require_number("eps", eps, 0.0, np.inf, "a number above 0, e.g. 1e-8", open_below=True),
            target_tau=require_number("target_tau", target_tau, 0.0, 1.0, "above 0 and at most 1.0", open_below=True),
            target_every=require_count("target_every", target_every, 1),
        )
        self._asked, self._planned = lane, require_count("planned_updates", planned_updates, 0)
        self._objective = QObjective(spec)
        self._seed, self._rng = seed, np.array([derive_seed(seed, "policy")], np.uint64)
        self._rates: dict[int, tuple[float, Array]] = {}
        self._ones: dict[tuple[int, ...], Array] = {}
        self._choice, self._spec, self._guessed = UNDECIDED, None, False
        self._shape: tuple[int, ...] = (-1,)
        spec_given = read_spec(obs)
        if spec_given is not None:
            self._start(spec_given)
        elif (guessed := guess_obs(network, self._takes)) is not None:
            self._start(guessed)
            self._guessed = True

    @property
    def lane(self) -> str:
        """`native`, `compiled` or `eager`; empty before it is chosen."""
        return self._choice.name

    @property
    def lane_reason(self) -> str:
        return self._choice.reason

    def __repr__(self) -> str:
        return f"QLearner({type(self.network).__name__}, updates={self.updates}, lane={self.lane!r})"

    def _takes(self, spec: ObsSpec) -> bool:
        try:
            self._count_actions(spec)
        except ArgumentError:
            return False
        return True

    def _count_actions(self, spec: ObsSpec) -> int:
        q = answer_to("network", self.network, spec, self._device)
        if not isinstance(q, Tensor) or q.ndim != 2 or len(q) != 2:
            found = f"shape {tuple(q.shape)}" if isinstance(q, Tensor) else f"a {type(q).__name__}"
            raise ArgumentError(f"`network` answers 2 observations with {found}; expected Q-values [2, actions]")
        return q.shape[1]

    def _start(self, spec: ObsSpec) -> None:
        """Choose and build the lane for observations of `spec`."""
        self._num_actions = self._count_actions(spec)
        frozen = frozen_problem("network", self.network)
        reading = Reading(None, reason="the observation has several parts")
        if not isinstance(spec, dict) and self._device == "cpu":
            reading = read_q_network(self.network, spec.shape)
        job = LaneJob(
            objective=self._objective,
            layout=reading.layout,
            batch_size=USUAL_BATCH,
            device=self._device,
            precision="float32",
            seed=derive_seed(self._seed, "noise"),
            planned_updates=self._planned,
            untraceable=frozen or untraceable(self.network),
            unreadable=frozen or reading.reason,
        )
        self._shared = SharedNetwork(self.network, reading.order)
        self._choice, self._lane = lane_for(self._asked, job, self._shared)
        self._spec, self._guessed = spec, False
        self._shape = (-1,) if isinstance(spec, dict) else spec.shape  # of the usual kind, to be told at once
        self._begin_on(self._lane)

    def _begin_on(self, lane: Lane) -> None:
        self._lane, self._as_floats, self._compiles = lane, lane.name == "native", lane.name == "compiled"
        self._sharing = Sharing("network", self.network, lane)
        if isinstance(lane, EagerLane):
            lane.modules[TARGET].eval()  # a target neither drops units nor counts statistics

    def update(self, batch: Any) -> QStats:
        """One update on each batch: of fields [B, ...], or k in a row of fields [k, B, ...].

        `batch` is what `Replay.sample` gives, or anything with `obs`, `action`, `reward`, `discount` and `next_obs`,
        arrays or tensors; `weight` (of each row's loss) and `next_action_mask` [B, A] may be left out.
        """
        data, is_single = self._read(batch)
        self._sharing.require()
        k = len(data.reward)
        if self._compiles:
            self._compile(data, k)
        stats = self._lane.update(data, self._learning_rates(k), self.updates)
        self.updates += k
        return QStats(stats, is_single)

    def _compile(self, data: Batch, k: int) -> None:
        """Before the first update. What `auto` chose and cannot be compiled goes on eagerly, and says so."""
        self._compiles = False
        try:
            self._lane.prepare(data, k)
        except LaneError as error:
            if self._asked != "auto":
                raise
            self._choice = LaneChoice("eager", f"{self._choice.reason}; {error.message}")
            self._begin_on(eager_of(self._lane))

    def _learning_rates(self, k: int) -> Array:
        lr, rates = self._rates.get(k, (None, None))
        if rates is None or lr != self.lr:
            lr = require_number("lr", self.lr, 0.0, np.inf, "a number above 0, e.g. 1e-3", open_below=True)
            lr, rates = self._rates[k] = lr, np.full(k, lr)
        return rates

    def _read(self, batch: Any) -> tuple[Batch, bool]:
        """The batch as [k, B, ...], and whether it was a single one."""
        reward = read_array("batch.reward", _field(batch, "reward"), FLOAT)
        leading = tuple(reward.shape)
        if len(leading) not in (1, 2) or 0 in leading:
            raise ArgumentError(f"`batch.reward` has shape {leading}; expected [B], or [k, B] for k updates")
        action = read_array("batch.action", _field(batch, "action"), INT)
        discount = read_array("batch.discount", _field(batch, "discount"), FLOAT)
        weight = getattr(batch, "weight", None)
        weight = self._all_ones(leading) if weight is None else read_array("batch.weight", weight, FLOAT)
        named = (("action", action), ("discount", discount), ("weight", weight))
        for name, array in named:
            if array.shape != leading:
                raise ArgumentError(f"`batch.{name}` has shape {tuple(array.shape)}; expected {leading}, as the rewards")
        obs = self._read_obs("batch.obs", _field(batch, "obs"), leading)
        next_obs = self._read_obs("batch.next_obs", _field(batch, "next_obs"), leading)
        if action.__class__ is np.ndarray and count_outside(action.reshape(-1), 0, self._num_actions - 1):
            low, high = action.min(), action.max()
            raise ArgumentError(
                f"`batch.action` holds {low if low < 0 else high}; expected 0 to {self._num_actions - 1}",
                "one for each output of the network",
            )
        mask = getattr(batch, "next_action_mask", None)
        if mask is not None:
            mask = self._read_mask("batch.next_action_mask", mask, leading)
        if len(leading) == 2:
            return Batch(obs, action, reward, discount, next_obs, weight, None, mask), False  # type: ignore[arg-type]
        if obs.__class__ is dict:
            obs, next_obs = map_obs(_stacked, obs), map_obs(_stacked, next_obs)
        else:
            obs, next_obs = obs[None], next_obs[None]  # type: ignore[index]
        mask = None if mask is None else mask[None]
        row = (action[None], reward[None], discount[None])
        return Batch(obs, *row, next_obs, weight[None], None, mask), True  # type: ignore[arg-type]

    def _all_ones(self, shape: tuple[int, ...]) -> Array:
        ones = self._ones.get(shape)
        if ones is None:
            ones = self._ones[shape] = np.ones(shape, np.float32)
        return ones

    def _read_obs(self, name: str, value: Any, leading: tuple[int, ...]) -> Obs:
        if value.__class__ is np.ndarray and value.shape == leading + self._shape and value.dtype is FLOAT:
            return np.ascontiguousarray(value)
        if self._spec is None:  # nothing is known of them yet
            obs = read_obs(name, value, as_floats=False)
            self._start(spec_of(obs, len(leading)))
        obs = read_obs(name, value, self._as_floats)
        found = spec_of(obs, len(leading))
        shape, expected = shape_of(found), shape_of(self._spec)  # type: ignore[arg-type]
        if shape != expected and self._guessed:
            self._start(found)
            return self._read_obs(name, value, leading)
        for part in obs.values() if isinstance(obs, dict) else (obs,):
            if shape != expected or tuple(part.shape[: len(leading)]) != leading:
                raise ArgumentError(f"`{name}` has shape {shape_of(spec_of(obs, 0))}; expected {leading} + {expected}")
        self._guessed = False
        return obs

    def _read_mask(self, name: str, value: Any, leading: tuple[int, ...]) -> Any:
        mask = read_array(name, value, BOOL)
        if tuple(mask.shape) != (*leading, self._num_actions):
            raise ArgumentError(f"`{name}` has shape {tuple(mask.shape)}; expected {(*leading, self._num_actions)}")
        return mask

    def act(self, obs: Any, epsilon: float = 0.0, mask: Any = None) -> Any:
        """The best action of one observation as an int, or of N observations [N, ...] as int64 [N]; with probability
        `epsilon` a random one. `mask` ([A] or [N, A]) says which actions are allowed. A network with dropout or batch
        normalisation answers in evaluation mode."""
        rows, is_single = self._read_rows(obs)
        self._sharing.require()
        count = len(next(iter(rows.values())) if isinstance(rows, dict) else rows)
        allowed = None if mask is None else self._allowed(mask, count, is_single)
        epsilon = require_number("epsilon", epsilon, 0.0, 1.0, "0 to 1, e.g. 0.1")
        action = np.empty(count, np.int64)
        if epsilon == 0.0:
            num_greedy = count
        elif allowed is None:
            num_greedy = draw_exploration(self._rng, epsilon, self._num_actions, action)
        else:
            num_greedy = draw_masked_exploration(self._rng, epsilon, allowed, action)
        if num_greedy:
            greedy = self._best(rows, allowed)
            action = greedy if num_greedy == count else np.where(action < 0, greedy, action)
        return int(action[0]) if is_single else action

    def _best(self, rows: Obs, mask: Array | None) -> Array:
        if self._as_floats:  # the native lane, which asks no module
            return self._lane.infer(rows, mask)[0]
        with in_mode(self.network, training=False):
            return self._lane.infer(rows, mask)[0]

    def _read_rows(self, obs: Any) -> tuple[Obs, bool]:
        """Observations [N, ...], and whether it was a single one."""
        rows = read_obs("obs", obs, self._spec is not None and self._as_floats)
        if self._spec is None or (self._guessed and shape_of(self._spec) not in [shape_of(spec_of(rows, n)) for n in (0, 1)]):
            one, several = spec_of(rows, 0), spec_of(rows, 1)
            fits = [spec for spec in (one, several) if self._takes(spec)]
            if len(fits) != 1:
                raise ArgumentError(
                    f"`obs` has shape {shape_of(one)}, which the network takes "
                    + ("neither as one observation nor as several" if not fits else "as one observation and as several"),
                    "say the shape of one: `obs=` of the learner",
                )
            self._start(fits[0])
            return self._read_rows(obs)
        shape, expected = shape_of(spec_of(rows, 0)), shape_of(self._spec)
        self._guessed = False
        if shape == expected:
            return (map_obs(_stacked, rows) if isinstance(rows, dict) else rows[None]), True
        if shape_of(spec_of(rows, 1)) != expected:
            raise ArgumentError(f"`obs` has shape {shape}; expected {expected}, or several of them")
        return rows, False

    def _allowed(self, mask: Any, count: int, is_single: bool) -> Array:
        allowed = self._read_mask("mask", mask, () if is_single else (count,)).reshape(count, self._num_actions)
        if not allowed.any(-1).all():
            raise ArgumentError("`mask` allows no action at all", "True marks an action that is allowed")
        return allowed

    def state_dict(self) -> dict[str, Any]:
        """Everything that updates and `act` change, by the names of the network's parameters: the same on any lane."""
        state = {} if self._spec is None else self._lane.state()
        named = {name: by_name(self._shared, state[name]) for name in VECTORS[1:] if state}
        if state and isinstance(eager := getattr(self._lane, "eager", self._lane), EagerLane):
            named["target"] |= {name: buffer.clone() for name, buffer in self._target_buffers(eager)}
        network = {name: tensor.detach().clone() for name, tensor in self.network.state_dict().items()}
        return {"network": network, **named, "updates": self.updates, "rng": int(self._rng[0])}

    def _target_buffers(self, lane: EagerLane) -> list[tuple[str, Tensor]]:
        copied: Any = lane.modules[TARGET]
        return kept_buffers(copied.network)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave, on this or another lane. Settings are the constructor's."""
        if missing := {"network", "updates", "rng"} - set(state):
            raise CheckpointError(f"the state has no `{sorted(missing)[0]}`", "give what `state_dict()` returned")
        try:
            self.network.load_state_dict(state["network"])
        except RuntimeError as error:
            raise CheckpointError("the state is of another network", str(error).partition("\n")[2].strip()) from error
        if "target" in state:
            if self._spec is None:
                raise ArgumentError("the learner does not know its observations yet", "say `obs=` when you make it")
            self._load_vectors(state)
        self.updates, self._rng[0] = int(state["updates"]), np.uint64(state["rng"])

    def _load_vectors(self, state: Mapping[str, Any]) -> None:
        vectors = self._lane.state()
        names = {name for name, _ in self.network.named_parameters()}
        for what in VECTORS[1:]:
            vectors[what] = flattened(self._shared, {k: v for k, v in state[what].items() if k in names}, what)
        self._lane.load_state(vectors | {"online": self._lane.state()["online"]})
        if isinstance(eager := getattr(self._lane, "eager", self._lane), EagerLane):
            copied: Any = eager.modules[TARGET]
            load_buffers(copied.network, state["target"])

    def __deepcopy__(self, memo: dict[int, Any]) -> QLearner:
        """A learner of its own, with a copy of the network."""
        spec = self._objective.spec
        other = QLearner(
            copy.deepcopy(self.network, memo), self.lr, double=spec.double, loss=spec.loss,
            target_every=spec.target_every, target_tau=spec.target_tau, max_gradient_norm=spec.max_gradient_norm,
            betas=(spec.beta1, spec.beta2), eps=spec.epsilon, lane=self._asked, planned_updates=self._planned,
            seed=self._seed,
        )  # fmt: skip
        if self._spec is not None:
            other._start(self._spec)
        other.load_state_dict(self.state_dict())
        return other


def _field(batch: Any, name: str) -> Any:
    value = getattr(batch, name, None)
    if value is None:
        raise ArgumentError(f"`batch.{name}` is missing", "give what `Replay.sample` returns, or the same fields")
    return value


def _stacked(part: Array) -> Array:
    return part[None]
