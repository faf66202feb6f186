"""A network of the user's own as ours are used: its module shared, its parameters in the order that lanes read.

`SharedNetwork` and `SharedActorCritic` serve the learners of other people's loops; our own loops take such a network
where `network.torso` names an object that was given (`hotloop.train(settings, network=...)`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import SettingsError
from hotloop.core.given import PREFIX as GIVEN
from hotloop.core.given import given
from hotloop.core.types import ObsSpec, map_obs
from hotloop.maths.distributions import ActionLayout
from hotloop.nets.actor_critic import LOG_STD
from hotloop.nets.reading import Reading, read_actor_critic, read_q_network

PREFIX = "network."
LOG_STD_NAMES = ("log_std", "logstd")
UNSTEADY = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase)
SEVERAL_PARTS = Reading(None, reason="the observation has several parts")


class SharedNetwork(nn.Module):
    """The user's module with its parameters in another order: `order` names them, those left out do not count."""

    reading: Reading = Reading(None)
    """What it turned out to be, for the native lane."""

    def __init__(self, network: nn.Module, order: Sequence[str] = ()) -> None:
        super().__init__()
        self.network = network
        self._order = [PREFIX + name for name in order or [name for name, _ in network.named_parameters()]]

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        if not remove_duplicate:  # `functional_call` asks for all names of a parameter
            yield from super().named_parameters(prefix, recurse, remove_duplicate)
        for name in self._order if remove_duplicate else ():
            yield prefix + name, self.get_parameter(name)

    def user_name(self, name: str) -> str:
        return name.removeprefix(PREFIX)

    def forward(self, obs: Any) -> Any:
        return self.network(obs)


class SharedActorCritic(SharedNetwork):
    """The same of a module that gives a policy's outputs and a value; `log_std` comes last, as objectives know it."""

    def __init__(self, network: nn.Module, order: Sequence[str], log_std: nn.Parameter | None, name: str) -> None:
        super().__init__(network, order or [name for name, one in network.named_parameters() if one is not log_std])
        self._log_std_name = name or "log_std"
        if log_std is not None:
            self.spread = nn.Module()
            self.spread.log_std = log_std
            self._order.append(LOG_STD)

    @property
    def log_std(self) -> Tensor:
        """[C], empty where no action is a number."""
        return self.spread.log_std.reshape(-1) if hasattr(self, "spread") else torch.zeros(0)  # type: ignore

    def user_name(self, name: str) -> str:
        return self._log_std_name if name == LOG_STD else super().user_name(name)

    def forward(self, obs: Any) -> Any:
        outputs, value = self.network(obs)
        return outputs, value.reshape(len(outputs))


def given_q_network(torso: str, obs_spec: ObsSpec, num_actions: int) -> SharedNetwork:
    """The module that `torso` stands for: obs [B, ...] -> Q [B, A]."""
    module = _made(torso)
    q = _answer(torso, module, obs_spec)
    if not isinstance(q, Tensor) or q.shape != (2, num_actions):
        raise _wrong(torso, q, f"Q-values [2, {num_actions}]")
    reading = SEVERAL_PARTS if isinstance(obs_spec, dict) else read_q_network(module, obs_spec.shape)
    network = SharedNetwork(module, reading.order)
    network.reading = reading
    return network


def given_actor_critic(torso: str, obs_spec: ObsSpec, layout: ActionLayout, log_std: float) -> SharedActorCritic:
    """The module that `torso` stands for: obs [B, ...] -> (outputs [B, O], values [B] or [B, 1]).

    Of actions that are numbers the standard deviations are its parameter whose name ends in `log_std`, or one more.
    """
    module = _made(torso)
    answer = _answer(torso, module, obs_spec)
    pair = isinstance(answer, tuple) and len(answer) == 2
    if not pair or answer[0].shape != (2, layout.num_outputs) or answer[1].numel() != 2:
        raise _wrong(torso, answer, f"logits or means [2, {layout.num_outputs}] and values [2]")
    own = [(name, one) for name, one in module.named_parameters() if name.endswith(LOG_STD_NAMES)]
    name, spread = own[0] if own and layout.continuous else ("", None)
    if layout.continuous and spread is None:
        spread = nn.Parameter(torch.full((layout.continuous,), log_std))
    reading = SEVERAL_PARTS if isinstance(obs_spec, dict) else read_actor_critic(module, obs_spec.shape, name)
    network = SharedActorCritic(module, reading.order, spread, name)
    network.reading = reading
    return network


def _made(torso: str) -> nn.Module:
    """A module of its own for each who asks: weights are never shared between two runs, or a run and its agent."""
    thing = given("network", torso)
    try:
        module = copy.deepcopy(thing) if isinstance(thing, nn.Module) else thing()
    except Exception as error:
        name = torso.removeprefix(GIVEN)
        raise SettingsError(
            f"the network `{name}` could not be made: {type(error).__name__}: {error}",
            f"it is called without arguments: give `lambda: {name}(...)`, or a module",
        ) from error
    if not isinstance(module, nn.Module):
        raise SettingsError(
            f"`network` made a {type(module).__name__}; expected a torch.nn.Module", "mend what makes it"
        )
    for name, part in module.named_modules():
        if isinstance(part, UNSTEADY):
            raise SettingsError(
                f"the network has `{name}` ({type(part).__name__}), which answers otherwise while it is trained",
                "our loop has one mode; `hotloop.QLearner` and `hotloop.PolicyLearner` train such a network in yours",
            )
    return module


def _answer(torso: str, module: nn.Module, obs_spec: ObsSpec) -> Any:
    obs = map_obs(lambda part: torch.from_numpy(np.zeros((2, *part.shape), part.dtype)), obs_spec)
    try:
        with torch.no_grad():
            return module(obs)
    except Exception as error:
        shape = map_obs(lambda part: part.shape, obs_spec)
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SettingsError(
            f"the network `{torso.removeprefix(GIVEN)}` does not take observations of shape {shape}: {said}",
            "it is called with a batch of them",
        ) from error


def _wrong(torso: str, answer: Any, expected: str) -> SettingsError:
    parts = answer if isinstance(answer, tuple) else (answer,)
    shapes = ", ".join(str(tuple(getattr(part, "shape", ()))) for part in parts)
    return SettingsError(
        f"the network `{torso.removeprefix(GIVEN)}` answers two observations with {shapes}", f"expected are {expected}"
    )
