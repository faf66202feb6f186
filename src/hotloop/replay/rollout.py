"""Rollouts for anybody's loop: T steps of N envs, with what the policy thought of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.errors import ArgumentError
from hotloop.core.types import Array, ArraySpec, EnvStep, Obs, map_obs
from hotloop.inputs.specs import read_action_spec, read_obs_spec
from hotloop.inputs.values import Values, as_dtype, read_obs, require_count
from hotloop.inputs.values_kernels import first_forbidden
from hotloop.replay.rollout_buffer import ALL, RolloutBuffer

NUMBER, FLAG = ArraySpec(()), ArraySpec((), np.dtype(np.bool_))


class Note(NamedTuple):
    """What a policy thought when it acted: kept in a `Rollout` beside the action.

    >>> import hotloop
    >>> note = hotloop.Note(log_prob=[-0.7, -0.1], value=[1.5, 2.0])       # of two envs
    >>> note.value
    [1.5, 2.0]
    """

    log_prob: Any  # [N] of the action taken
    value: Any  # [N] of the observation


class Rollout:
    """`num_steps` steps of `num_envs` envs, to learn from once: add to it until it is `full`, learn, `clear`.

    >>> import hotloop, numpy
    >>> rollout = hotloop.Rollout(num_steps=4, num_envs=2, obs=(3,), num_actions=5)
    >>> obs, never = numpy.zeros((2, 3), numpy.float32), [False, False]
    >>> while not rollout.full:
    ...     note = hotloop.Note(log_prob=[-1.6, -1.6], value=[0.5, 0.5])       # as `policy.act` returns it
    ...     rollout.add(obs, [0, 4], note, [1.0, 1.0], never, never, final_obs=obs)
    >>> len(rollout), rollout.obs.shape, rollout.action.shape
    (4, (4, 2, 3), (4, 2))
    >>> following = rollout.next_value(lambda obs: obs.sum(axis=1), obs)
    >>> advantage, returns = hotloop.gae(
    ...     rollout.reward, rollout.value, following, rollout.terminated, rollout.truncated)
    >>> advantage.shape
    (4, 2)
    >>> rollout.clear()

    `obs` is a shape (of float32), a Gymnasium space, or a dict of either. `action` is a space, or a shape of floats;
    without it an action is one choice among `num_actions`. The arrays are time-major, [T, N, ...], and reused after
    `clear`: copy what shall last. Values are copied by `add`, by the rules of `Replay`.
    """

    def __init__(
        self, num_steps: int, num_envs: int, obs: Any, action: Any = None, *, num_actions: int | None = None
    ) -> None:
        self.num_steps, self.num_envs = require_count("num_steps", num_steps), require_count("num_envs", num_envs)
        if action is None and num_actions is None:
            raise ArgumentError("`action` is missing", "give the action space, or `num_actions=` for one choice")
        shape, obs_spec = (self.num_steps, self.num_envs), read_obs_spec(obs)
        self.action_spec = read_action_spec(action, num_actions)
        kept = self.action_spec.array
        self._buffer = RolloutBuffer(shape, obs_spec, kept)
        data = self._buffer.data
        self.obs: Any = data.obs
        self.action, self.log_prob, self.value = data.action, data.outputs, data.value[:-1]
        self.reward, self.weight = data.reward, data.weight
        self.terminated, self.truncated = data.terminated, data.truncated
        self.action_mask: Array | None = None  # [T, N, A], where masks are given
        self._obs, self._final_obs = (read_obs(name, obs_spec, self.num_envs) for name in ("obs", "final_obs"))
        self._action = Values("action", kept, self.num_envs, self.action_spec.bounds)
        self._columns = {name: Values(name, NUMBER, self.num_envs) for name in ("log_prob", "value", "reward")}
        self._columns |= {name: Values(name, FLAG, self.num_envs) for name in ("terminated", "truncated", "valid")}
        self._mask = Values("action_mask", ArraySpec((self.action_spec.mask_width or 0,), FLAG.dtype), self.num_envs)
        nothing = np.zeros(0)
        self._step: EnvStep[Obs] = EnvStep(nothing, nothing, nothing, nothing, nothing)  # filled anew by every `add`

    def clear(self) -> None:
        """Begin anew, in the same memory."""
        self._buffer.clear()

    def __len__(self) -> int:
        """Steps added."""
        return len(self._buffer)

    @property
    def full(self) -> bool:
        return self._buffer.full

    def __repr__(self) -> str:
        return f"<Rollout of {len(self)} out of {self.num_steps} steps of {self.num_envs} envs>"

    def add(
        self,
        obs: Any,
        action: Any,
        note: Any,
        reward: Any,
        terminated: Any,
        truncated: Any,
        final_obs: Any,
        *,
        valid: Any = None,
        action_mask: Any = None,
    ) -> None:
        """Take in one step of every env: what was seen, done and thought of it, and what came of it.

        `note` is what the policy returned beside the action: log-probability and value, [N] each. `final_obs` is what
        the action led to: where an episode ended, `info["final_obs"]` of a vector env that resets in the same step,
        elsewhere the next observation. `valid` [N] is False where an env ignored its action, as those do that reset
        in the next step: `weight` is 0 there, 1 elsewhere. `action_mask` [N, A] is given at every step or at none.
        """
        if self.full:
            raise ArgumentError(f"the rollout is full, with {len(self)} steps", "learn from it, then `clear()` it")
        log_prob, value = self._thoughts(note)
        read, step = self._columns, self._step
        seen, done, step.final_obs = self._obs(obs), self._action(action), self._final_obs(final_obs)
        step.reward, step.terminated = read["reward"](reward), read["terminated"](terminated)
        step.truncated = read["truncated"](truncated)
        step.valid = None if valid is None else read["valid"](valid)
        self._keep_mask(action_mask, done, ALL if step.valid is None else step.valid)
        row = self._buffer.row()
        map_obs(_fill, row.obs, seen)
        row.outputs[:], row.value[:], row.action[:] = log_prob, value, done
        self._buffer.add(row, step)

    def _thoughts(self, note: Any) -> tuple[Array, Array]:
        try:
            log_prob, value = note
        except (TypeError, ValueError):
            raise ArgumentError(
                f"`note` is of type {type(note).__name__}; expected log-probability and value",
                "give what `policy.act` returned beside the action, or a `hotloop.Note`",
            ) from None
        return self._columns["log_prob"](log_prob), self._columns["value"](value)

    def _keep_mask(self, given: Any, action: Array, counts: Array) -> None:
        if not len(self):
            self.action_mask = None if given is None else self._new_masks()
        if (given is None) != (self.action_mask is None):
            raise ArgumentError("`action_mask` is given at some steps only", "give it at every step, or at none")
        if self.action_mask is None:
            return
        mask = self._mask(given)
        env = first_forbidden(mask, action.reshape(self.num_envs, -1), self._starts, counts)
        if env >= 0 and not mask[env].any():
            raise ArgumentError("`action_mask` allows no action", "at least one entry must be True")
        if env >= 0:
            raise ArgumentError(
                f"`action` of env {env} is {action[env].tolist()}, which its `action_mask` forbids",
                "give the mask by which the action was chosen",
            )
        self.action_mask[len(self)] = mask

    def _new_masks(self) -> Array:
        width, bounds = self.action_spec.mask_width, self.action_spec.bounds
        if width is None:
            raise ArgumentError("`action_mask` is given, but actions are numbers", "masks are of choices")
        assert bounds is not None
        counts = np.reshape(bounds[1], -1) + 1
        self._starts = np.cumsum(counts) - counts  # of each choice in a mask
        return np.zeros((self.num_steps, self.num_envs, width), np.bool_)

    def timeouts(self) -> tuple[Array, Array, Obs] | None:
        """Steps, envs and final observations [M, ...] of the episodes that were truncated; None without any."""
        return self._buffer.timeouts()

    def next_value(self, value_of: Callable[[Any], Any], last_obs: Any) -> Array:
        """The value [T, N] of what each action led to, for `hotloop.gae`: of the next step's observation, of
        `last_obs` [N, ...] after the last step, and of the final observation where an episode was truncated.

        `value_of` is your critic: observations [M, ...] (arrays) in, values [M] out.
        """
        if not self.full:
            raise ArgumentError(f"the rollout has {len(self)} of {self.num_steps} steps", "add the others first")
        following = np.empty_like(self.value)
        following[:-1] = self.value[1:]
        following[-1] = _values(value_of(self._obs(last_obs)), self.num_envs)
        timeouts = self.timeouts()
        if timeouts is not None:
            steps, envs, final_obs = timeouts
            following[steps, envs] = _values(value_of(final_obs), len(steps))
        return following


def _fill(slab: Array, rows: Array) -> None:
    slab[:] = rows


def _values(answer: Any, count: int) -> Array:
    values = as_dtype("value_of(obs)", answer, NUMBER.dtype)
    if values.shape not in ((count,), (count, 1)):
        raise ArgumentError(f"`value_of` answered with shape {values.shape}; expected {(count,)}", "a value for each")
    return values.reshape(count)
