"""What a policy learner is handed: an action space, a parameter for standard deviations, a full rollout."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from hotloop.core.errors import ArgumentError
from hotloop.core.types import Array, Obs
from hotloop.inputs.arguments import BOOL, FLOAT, INT, read_array, read_obs
from hotloop.inputs.specs import read_action_spec, require_no_count
from hotloop.maths.distributions import ActionLayout
from hotloop.nets.given_network import LOG_STD_NAMES


class ActionSpace(NamedTuple):
    """How a policy's rows [N, W] and an env's actions belong together."""

    layout: ActionLayout
    shape: tuple[int, ...]  # of one env's action

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
        return ActionSpace(ActionLayout(), ())  # the network says of how many
    require_no_count(given, f"give a space or a shape, `({given},)` for floats; one choice needs no `action=`")
    spec = read_action_spec(given, None)
    if spec.array.dtype.kind == "f":
        return ActionSpace(ActionLayout(continuous=spec.array.size), spec.array.shape)
    if spec.bounds is None:
        raise ArgumentError(f"`action` is {given}; expected None, a shape, Discrete, MultiDiscrete or a Box of floats")
    highest = np.broadcast_to(spec.bounds[1], spec.array.shape).reshape(-1)
    return ActionSpace(ActionLayout(tuple(int(high) + 1 for high in highest)), spec.array.shape)


def num_outputs_of(answer: Any, layout: ActionLayout) -> int:
    """The logits or means of an actor-critic by its answer to 2 observations; refuses another form of answer."""
    parts = answer if isinstance(answer, tuple | list) else (answer,)
    shapes = [tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__ for part in parts]
    wanted, values = layout.num_outputs, ((2,), (2, 1))
    is_right = len(shapes) == 2 and len(shapes[0]) == 2 and shapes[0][0] == 2 and shapes[1] in values
    if is_right and wanted in (0, shapes[0][1]):
        return int(shapes[0][1])
    if is_right:
        raise _wrong_number(int(shapes[0][1]), layout)
    what = "means" if layout.continuous else "logits"
    hint = f"`return {what}, value`"
    if shapes[0] in values and len(shapes) == 2 and len(shapes[1]) == 2:
        hint = f"{hint}: in this order"
    elif len(shapes) == 1 and isinstance(answer, Tensor):
        hint = f"{hint}; a Q-network is trained by `hotloop.QLearner`"
    elif any(isinstance(part, Distribution) for part in parts):
        hint = f"{hint}: the {what}, not the distribution that they make"
    found = ", ".join(map(str, shapes))
    raise ArgumentError(
        f"`actor_critic` answers 2 observations with {found if len(shapes) == 1 else f'({found})'}; expected are "
        f"({what} [2, {wanted or 'actions'}], values [2] or [2, 1])",
        hint,
    )


def _wrong_number(found: int, layout: ActionLayout) -> ArgumentError:
    if layout.continuous:
        return ArgumentError(
            f"`actor_critic` answers with {found} means; `action` has {layout.continuous} numbers",
            "a mean for each; standard deviations are a parameter, not outputs",
        )
    counts = ", ".join(map(str, layout.counts))
    what = f"{len(layout.counts)} choices (of {counts})" if len(layout.counts) > 1 else f"a choice of {counts}"
    return ArgumentError(
        f"`actor_critic` answers with {found} logits; `action` is {what}, which needs {layout.num_outputs}",
        f"a last layer of {layout.num_outputs} outputs: a logit for each entry of each choice",
    )


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


def read_rollout(rollout: Any, as_floats: bool) -> RolloutFields:
    """The one place that knows how a rollout keeps its rows."""
    if not rollout.full:
        raise ArgumentError("the rollout is not full yet", "`add` until `rollout.full`")
    floats, flags = ("log_prob", "value", "reward", "weight"), ("terminated", "truncated")
    dtypes = dict.fromkeys(floats, FLOAT) | dict.fromkeys(flags, BOOL)
    columns = {name: read_array(f"rollout.{name}", getattr(rollout, name), dtype) for name, dtype in dtypes.items()}
    obs = read_obs("rollout.obs", rollout.obs, as_floats)
    return RolloutFields(obs, rollout.action, **columns, timeouts=rollout.timeouts(), action_mask=rollout.action_mask)
