"""A user's module as lanes take it: checked, its parameters in a lane's order, its memory shared and watched.

The parameters become views of one flat vector; the module stays the user's and keeps working, saving and loading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter, is_
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import ArgumentError, CheckpointError
from hotloop.core.types import Array, ArraySpec, ObsSpec, map_obs
from hotloop.lanes.choice import LaneJob
from hotloop.lanes.compiled import untraceable
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.optimizer import shapes_of, split_vector
from hotloop.lanes.spec import Lane
from hotloop.nets.given_network import SharedNetwork
from hotloop.nets.reading import Reading
from hotloop.nets.tracing import in_mode

REQUIRES_GRAD = attrgetter("requires_grad")


def require_trainable(name: str, network: Any) -> str:
    """The device of a module that can be shared; refuses one that cannot."""
    if not isinstance(network, nn.Module):
        raise ArgumentError(f"`{name}` is a {type(network).__name__}; expected a torch.nn.Module", "e.g. nn.Sequential")
    parameters = dict(network.named_parameters())
    if not parameters:
        raise ArgumentError(f"`{name}` has no parameters: there is nothing to learn", "give it layers")
    starts: dict[int, str] = {}
    for key, parameter in parameters.items():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise ArgumentError(f"`{name}` has a lazy layer (`{key}`)", f"call `{name}(obs)` once before")
        if parameter.dtype != torch.float32:
            raise ArgumentError(f"`{name}` has parameters of {parameter.dtype} (`{key}`)", f"`{name}.float()`")
        start = parameter.data_ptr()  # 0 where there are no numbers
        twin = starts.setdefault(start, key) if start else key
        if twin != key:
            raise ArgumentError(
                f"`{name}` has two parameters in the same memory, `{twin}` and `{key}`",
                "tie them by using one nn.Parameter in both places",
            )
    devices = {str(parameter.device) for parameter in parameters.values()}
    if len(devices) > 1:
        raise ArgumentError(f"`{name}` lies on several devices ({', '.join(sorted(devices))})", f"`{name}.to('cpu')`")
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise ArgumentError(f"all parameters of `{name}` are frozen: there is nothing to learn", "`requires_grad_()`")
    return devices.pop()


def answer_to(name: str, network: nn.Module, spec: ObsSpec, device: str, rows: int = 2) -> Any:
    """What the module says to observations of zeros; torch's complaint in one sentence where it does not take them."""
    obs = map_obs(lambda part: torch.zeros(rows, *part.shape, dtype=_torch_dtype(part), device=device), spec)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), in_mode(network, training=False):
            return network(obs)
    except NotImplementedError as error:
        raise ArgumentError(f"`{name}` has no `forward`", "which answers to observations [B, ...]") from error
    except Exception as error:
        shapes = map_obs(lambda part: part.shape, spec)
        hint = "mend its `forward`, or the observations that it gets"
        raise ArgumentError(f"`{name}` does not take observations of shape {shapes}: {said_by(error)}", hint) from error


def said_by(error: BaseException | None) -> str:
    """On one line; torch's own complaints need no name."""
    said = str(error).strip().partition("\n")[0]
    kind = type(error).__name__
    return said if said and type(error) is RuntimeError else f"{kind}: {said}".removesuffix(": ")


def _torch_dtype(spec: ArraySpec) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, spec.dtype)).dtype


def guess_obs(network: nn.Module, fits: Callable[[ObsSpec], bool]) -> ArraySpec | None:
    """The observation as a vector, where the module takes one: as wide as the first linear layer that it fits."""
    return next((ArraySpec(shape) for shape in linear_widths(network) if fits(ArraySpec(shape))), None)


def linear_widths(network: nn.Module) -> list[tuple[int, ...]]:
    """The shapes of vectors that its linear layers take, in their order."""
    return list(dict.fromkeys((part.in_features,) for part in network.modules() if isinstance(part, nn.Linear)))


class GivenModule(NamedTuple):
    """A module that somebody else made, as a learner trains it in the place of one that it would make by settings."""

    shared: SharedNetwork
    reading: Reading
    device: str
    planned_updates: int  # 0: nobody knows
    title: str = "network"
    memory: Any = None  # a `LaneMemory`, where its parameters are views of vectors already

    def job(self, job: LaneJob) -> LaneJob:
        """Of this module instead."""
        frozen, problem = self._frozen_problem(), untraceable(self.shared.network)
        return replace(
            job,
            layout=self.reading.layout,
            device=self.device,
            num_envs=0,
            planned_updates=self.planned_updates,
            untraceable=frozen or (f"it {problem}" if problem else ""),
            unreadable=frozen or self.reading.reason,
            memory=self.memory,
        )

    def _frozen_problem(self) -> str:
        """Why only the eager lane can train the module; empty where others could."""
        frozen = [key for key, parameter in self.shared.network.named_parameters() if not parameter.requires_grad]
        if not frozen:
            return ""
        return f"`{self.title}` has frozen parameters (`{frozen[0]}`), which only the eager lane leaves alone"


class Sharing:
    """Notices when the module's parameters are no longer the memory that a lane trains. Asked before every call, so
    it compares addresses and nothing else."""

    def __init__(self, name: str, network: nn.Module, lane: Lane | None = None) -> None:
        self._name = name
        self._children: list[tuple[dict[str, Any], str, nn.Module, str]] = []
        self._parameters: list[tuple[dict[str, Any], str, nn.Parameter, int, bool, str]] = []
        for path, module in network.named_modules():
            prefix = f"{path}." if path else ""
            self._children += [(module._modules, key, child, prefix + key) for key, child in module.named_children()]
            self._parameters += [
                (module._parameters, key, one, one.data_ptr(), one.requires_grad, prefix + key)
                for key, one in module._parameters.items()
                if one is not None
            ]
        self._tables: list[Any] = [row[0] for row in (*self._children, *self._parameters)]
        self._keys: list[Any] = [row[1] for row in (*self._children, *self._parameters)]
        self._things = [row[2] for row in (*self._children, *self._parameters)]
        self._tensors = [row[2] for row in self._parameters]
        self._pointers, self._moves = [row[3] for row in self._parameters], [row[4] for row in self._parameters]
        self._eager = lane if isinstance(lane, EagerLane) else None
        self._gradients = [(row[2], row[2].grad) for row in self._parameters] if self._eager else []

    def require(self) -> None:
        """Before every call, so it is quick to see that nothing happened and slow only to say what did."""
        is_same = (  # `map` instead of loops: half the time
            all(map(is_, map(dict.get, self._tables, self._keys), self._things))
            and list(map(Tensor.data_ptr, self._tensors)) == self._pointers
            and list(map(REQUIRES_GRAD, self._tensors)) == self._moves
        )
        if not is_same:
            self._name_the_break()
        if self._eager is not None:
            self._mend_gradients()

    def _name_the_break(self) -> None:
        for table, key, child, path in self._children:
            if table.get(key) is not child:
                raise self._broken(f"its layer `{path}` was replaced")
        for parameters, key, parameter, pointer, moves, path in self._parameters:
            if parameters.get(key) is not parameter:
                raise self._broken(f"its parameter `{path}` was replaced")
            if parameter.data_ptr() != pointer:
                raise self._broken(f"its parameter `{path}` was moved ({_place(parameter)})")
            if parameter.requires_grad is not moves:
                raise self._broken(f"its parameter `{path}` was {'frozen' if moves else 'thawed'} since")

    def _mend_gradients(self) -> None:
        for parameter, gradient in self._gradients:
            if parameter.grad is not gradient:  # zero_grad(set_to_none=True)
                assert self._eager is not None
                self._eager.groups["online"].flat.attach()
                self._gradients = [(row[2], row[2].grad) for row in self._parameters]
                break

    def _broken(self, what: str) -> ArgumentError:
        hint = f"make a new learner of the changed module; `load_state_dict` and `.copy_()` keep `{self._name}` shared"
        return ArgumentError(f"`{self._name}` no longer shares its memory with the learner: {what}", hint)


def _place(parameter: Tensor) -> str:
    return f"now {str(parameter.dtype).removeprefix('torch.')} on {parameter.device}"


def named_vector(shared: SharedNetwork, vector: Array) -> dict[str, Tensor]:
    """A flat vector as tensors by the user's names for the parameters."""
    parts = split_vector(torch.from_numpy(vector), shapes_of(shared))
    return {shared.user_name(name): part.clone() for name, part in parts.items()}


def flattened(shared: SharedNetwork, named: Any, what: str) -> Array:
    """The inverse; refuses other names or shapes, leaves out buffers."""
    shapes = {shared.user_name(name): tuple(shape) for name, shape in shapes_of(shared).items()}
    held = named if isinstance(named, Mapping) else {}
    found = {name: tuple(held[name].shape) for name in shapes if name in held}
    if found != shapes:
        raise CheckpointError(f"`{what}` of the state holds {found}; the network has {shapes}", "build the same one")
    return torch.cat([torch.as_tensor(named[name]).reshape(-1).cpu() for name in shapes]).float().numpy()
