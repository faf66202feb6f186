"""Replay for anybody's loop: transitions in, batches out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from hotloop.core.errors import ArgumentError, CheckpointError
from hotloop.core.types import Array, ArraySpec, Batch, EnvStep, Obs, ObsSpec, map_obs
from hotloop.inputs.specs import read_action_spec, read_obs_spec
from hotloop.inputs.values import Values, as_array, read_obs, require_count, require_share
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.buffer import ReplayMemory
from hotloop.replay.n_step import Returns
from hotloop.replay.storage import BatchArrays, BatchPlan

FLOAT = np.dtype(np.float32)
FLOATS: frozenset[Any] = frozenset({float, np.float64})
INTS: frozenset[Any] = frozenset({int, np.int64})
BOOLS: frozenset[Any] = frozenset({bool, np.bool_})
NUMBER, FLAG = ArraySpec(()), ArraySpec((), np.dtype(np.bool_))
KEPT_PLANS = 32


class Replay:
    """The last `buffer_size` transitions of one env or of `num_envs`, to draw batches from.

    >>> import hotloop
    >>> replay = hotloop.Replay(10_000, obs=(4,), n_step=3, prioritized=True)
    >>> for step in range(500):
    ...     obs, next_obs = [0.01 * step] * 4, [0.01 * step + 0.01] * 4
    ...     _ = replay.add(obs, step % 2, 1.0, next_obs, terminated=step % 50 == 49, truncated=False)
    >>> batch = replay.sample(64)
    >>> batch.obs.shape, round(float(batch.reward.max()), 4)       # three rewards of 1: 1 + 0.99 + 0.99^2
    ((64, 4), 2.9701)
    >>> replay.update_priorities(batch.index, batch.reward)        # your TD errors
    >>> len(replay), replay.buffer_size
    (500, 10000)

    `obs` is a shape (of float32), a Gymnasium space, or a dict of either; bytes of a uint8 Box stay bytes. `action` is
    None for one discrete choice, a shape of floats, or a space. `n_step` rewards are summed up with `gamma` before a
    row is stored; windows end where episodes do, and of episodes that are `truncated` the value of `next_obs` counts.
    `prioritized` draws by TD error (Schaul et al. 2015), as far as `alpha` says, and corrects for it by weights, as far
    as `beta` says. `num_actions` keeps a mask of the actions allowed next. `memory="disk"` keeps the rows in a file
    without a name on the disk of `folder`, which is given back when the process ends.

    Numbers are copied by `add`: floats kept as float32, whole numbers exactly or refused, NaN and infinity refused.
    """

    def __init__(
        self,
        buffer_size: int,
        obs: Any,
        action: Any = None,
        *,
        num_envs: int = 1,
        n_step: int = 1,
        gamma: float = 0.99,
        prioritized: bool = False,
        alpha: float = 0.6,
        beta: float = 0.4,
        num_actions: int | None = None,
        seed: int = 0,
        memory: Literal["ram", "disk"] = "ram",
        folder: str = "",
    ) -> None:
        self.buffer_size = require_count("buffer_size", buffer_size)
        self.num_envs = require_count("num_envs", num_envs)
        obs_spec, self._action_spec = read_obs_spec(obs), read_action_spec(action, num_actions)
        self._num_actions, self._beta = num_actions, require_share("beta", beta)
        settings = ReplaySettings(
            buffer_size=self.buffer_size,
            prioritized=prioritized,
            alpha=require_share("alpha", alpha),
            memory=memory,
            folder=folder or ("." if memory == "disk" else ""),
        )
        returns = Returns(require_count("n_step", n_step), require_share("gamma", gamma))
        shaped = None if self._action_spec.is_choice else self._action_spec.array
        seed = require_count("seed", seed, lowest=0)
        self.buffer = ReplayMemory(settings, obs_spec, self.num_envs, returns, seed, num_actions, shaped)
        self._is_prioritized = prioritized
        is_vector = isinstance(obs_spec, ArraySpec) and len(obs_spec.shape) == 1 and obs_spec.dtype == FLOAT
        is_simple = self.num_envs == n_step == 1 and shaped is None and num_actions is None and is_vector
        self._vector: tuple[int, ...] | None = obs_spec.shape if is_simple else None  # type: ignore[union-attr]
        self._last_action: Any = -1 if self._action_spec.bounds is None else self._action_spec.bounds[1]
        self._plans: dict[tuple[int | None, int], BatchPlan] = {}
        self._make_readers(obs_spec)

    def _make_readers(self, obs_spec: ObsSpec) -> None:
        count, action = self.num_envs, self._action_spec
        self._obs = read_obs("obs", obs_spec, count)
        self._next_obs = read_obs("next_obs", obs_spec, count)
        self._action = Values("action", action.array, count, action.bounds)
        self._reward = Values("reward", NUMBER, count)
        self._terminated, self._truncated = Values("terminated", FLAG, count), Values("truncated", FLAG, count)
        self._valid = Values("valid", FLAG, count)
        self._mask = Values("next_action_mask", ArraySpec((self._num_actions or 0,), FLAG.dtype), count)
        nothing = np.zeros(0)
        self._step: EnvStep[Obs] = EnvStep(nothing, nothing, nothing, nothing, nothing)  # filled anew by every `add`

    def __len__(self) -> int:
        """Transitions that can be drawn; steps that wait for their n-step window are not among them."""
        return self.buffer.size

    def __repr__(self) -> str:
        kind = "prioritized " if self._is_prioritized else ""
        return f"<{kind}Replay of {len(self):,} transitions, {self.buffer_size:,} at most, {self.num_envs} envs>"

    def add(
        self,
        obs: Any,
        action: Any,
        reward: Any,
        next_obs: Any,
        terminated: Any,
        truncated: Any,
        *,
        valid: Any = None,
        next_action_mask: Any = None,
    ) -> int:
        """Take in one transition, or one of each env ([N, ...]); how many rows were stored.

        `next_obs` is what the action led to, also where the episode ended: `info["final_obs"]` of a vector env that
        resets in the same step. `valid` [N] is False where an env ignored its action, as those do that reset in the
        next step. `next_action_mask` [N, A] says what is allowed in `next_obs`, where `num_actions` was given.
        """
        if self._vector is not None and valid is None and next_action_mask is None:
            is_right = self._is_right(obs, action, reward, next_obs, terminated, truncated)
            if is_right and self.buffer.add_one(obs, action, reward, next_obs, terminated):
                return 1
        step = self._step
        seen, done = self._obs(obs), self._action(action)
        step.final_obs = self._next_obs(next_obs)
        step.reward = self._reward(reward)
        step.terminated, step.truncated = self._terminated(terminated), self._truncated(truncated)
        step.valid = None if valid is None else self._valid(valid)
        if next_action_mask is not None or self._num_actions is not None:
            step.final_action_mask = self._read_mask(next_action_mask, step.terminated)
        return self.buffer.add(seen, done, step)

    def _is_right(self, obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any, truncated: Any) -> bool:
        """Whether a single transition can be stored as it is: vectors of float32 and plain numbers."""
        return (
            obs.__class__ is np.ndarray
            and next_obs.__class__ is np.ndarray
            and obs.dtype is FLOAT
            and next_obs.dtype is FLOAT
            and obs.shape == self._vector
            and next_obs.shape == self._vector
            and obs.flags.carray
            and next_obs.flags.carray
            and action.__class__ in INTS
            and 0 <= action <= self._last_action
            and reward.__class__ in FLOATS
            and terminated.__class__ in BOOLS
            and truncated.__class__ in BOOLS
        )

    def _read_mask(self, given: Any, terminated: Array) -> Array:
        if self._num_actions is None:
            raise ArgumentError(
                "`next_action_mask` is given, but the replay keeps none", "build it with `num_actions=`"
            )
        if given is None:
            raise ArgumentError(
                "`next_action_mask` is missing, and the replay was built with `num_actions=`", "give it with every add"
            )
        mask = self._mask(given)
        allows: Any = mask.any(axis=1)
        if not (allows | terminated).all():
            raise ArgumentError("`next_action_mask` allows no action", "at least one entry must be True")
        return mask if allows.all() else mask | ~allows[:, None]  # nothing follows a terminated episode

    def sample(
        self, batch_size: int, k: int | None = None, *, beta: float | None = None, out: Batch | None = None
    ) -> Batch:
        """A batch of `batch_size` transitions drawn with replacement, or `k` of them at once: arrays [k, B, ...].

        Its arrays are its own. `out` is a batch of the same size whose arrays are filled instead of new ones; `beta`
        counts for this draw alone. Of prioritized replay all `k` batches are drawn by the priorities of now.
        """
        if batch_size.__class__ is not int:
            batch_size = require_count("batch_size", batch_size)
        if k is not None and k.__class__ is not int:
            k = require_count("k", k)
        if self.buffer.size < batch_size:
            raise ArgumentError(
                f"`batch_size` is {batch_size}, but the replay holds {len(self)} transitions", "add more of them first"
            )
        plan = self._plans.get((k, batch_size)) or self._new_plan(k, batch_size)
        arrays = BatchArrays(plan) if out is None else _arrays_of(out, plan)
        if beta is None:
            beta = self._beta
        elif not self._is_prioritized:
            raise ArgumentError("`beta` is given, but the replay is uniform", "build it with `prioritized=True`")
        else:
            beta = require_share("beta", beta)
        self.buffer.sample_into(arrays, beta)
        return _show(arrays, k is None, out)

    def _new_plan(self, k: int | None, batch_size: int) -> BatchPlan:
        if len(self._plans) >= KEPT_PLANS:
            self._plans.clear()
        rows, batches = require_count("batch_size", batch_size), 1 if k is None else require_count("k", k)
        plan = self._plans[k, batch_size] = self.buffer.plan(batches, rows)
        return plan

    def update_priorities(self, index: Any, td_error: Any) -> None:
        """Tell the TD errors of the rows `index`, of any sign; of equal rows the last counts. Uniform replay ignores
        them, so that a loop need not ask."""
        if not self._is_prioritized:
            return
        rows, errors = as_array("index", index), as_array("td_error", td_error)
        if rows.dtype.kind not in "iu" or rows.shape != errors.shape:
            raise ArgumentError(
                f"`index` is {rows.dtype}{rows.shape}, `td_error` {errors.dtype}{errors.shape}; expected one error for "
                "each row",
                "give `batch.index` as it is",
            )
        try:
            self.buffer.update_priorities(rows, errors)
        except IndexError:
            raise ArgumentError("`index` names a row that the replay does not hold", "give `batch.index`") from None

    def drop_pending(self) -> None:
        """Forget n-step windows under way: call it where envs are reset in the middle of their episodes."""
        self.buffer.drop_pending()

    def state_dict(self) -> dict[str, Array]:
        """Everything needed to continue exactly, as arrays by name: copies, for `numpy.savez` or `torch.save`."""
        state = self._flat_state()
        rows = np.concatenate(state.pop("rows"))
        return {"rows": rows, **{name: np.array(value) for name, value in state.items()}}

    def _flat_state(self) -> dict[str, Any]:
        state = self.buffer.state()
        flat = {f"{part}.{name}": value for part in ("sampler", "n_step") for name, value in state[part].items()}
        return flat | {"rows": state["ring"]["rows"].pieces, "num_added": state["ring"]["num_added"]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what a replay with the same arguments saved; draws go on where they were."""
        known = self._flat_state().keys()
        if state.keys() != known:
            differing = ", ".join(sorted(state.keys() ^ known))
            raise CheckpointError(
                f"the saved replay is of another kind: {differing}", "build the replay with the arguments of the saved"
            )
        parts: dict[str, dict[str, Any]] = {"sampler": {}, "n_step": {}}
        for name, value in state.items():
            part, _, entry = name.rpartition(".")
            if part:
                parts[part][entry] = value
        ring = {"rows": state["rows"], "num_added": int(state["num_added"])}
        choices = self._action_spec.mask_width if self._action_spec.is_choice else None
        self.buffer.load_state({"ring": ring, **parts}, choices)


def _arrays_of(out: Batch, plan: BatchPlan) -> BatchArrays:
    arrays = getattr(out, "_drawn", None)
    if arrays is None or arrays.plan is not plan:
        raise ArgumentError("`out` is no batch of this size and replay", "give what an equal call of `sample` returned")
    arrays.batch.weight.fill(1.0)
    return arrays


def _first(array: Array) -> Array:
    return array[0]


def _show(arrays: BatchArrays, is_single: bool, out: Batch | None) -> Batch:
    """The batch of `arrays`, which `out` is made to show where there is one."""
    drawn = arrays.batch
    obs, next_obs, mask = drawn.obs, drawn.next_obs, drawn.next_action_mask
    action, reward, discount, weight, index = drawn.action, drawn.reward, drawn.discount, drawn.weight, drawn.index
    if is_single:  # spelt out: in a loop it would be a tenth of drawing a batch
        obs = map_obs(_first, obs) if isinstance(obs, dict) else obs[0]
        next_obs = map_obs(_first, next_obs) if isinstance(next_obs, dict) else next_obs[0]
        action, reward, discount, weight, index = action[0], reward[0], discount[0], weight[0], index[0]
        mask = None if mask is None else mask[0]
    views = (obs, action, reward, discount, next_obs, weight, mask)
    fields = (obs, action, reward, discount, next_obs, weight, index, mask, arrays, views)
    if out is None:
        return Batch(*fields)
    out.__init__(*fields)  # type: ignore[misc]
    return out
