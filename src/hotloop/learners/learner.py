"""What learners of users' modules share: which observations they take, the choice of a lane, memory and state."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from hotloop.core.errors import ArgumentError, CheckpointError, LaneError
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, Obs, ObsSpec, UpdateStats, map_obs
from hotloop.inputs.arguments import read_obs, require_above_zero, rows_of, shape_of, spec_of
from hotloop.inputs.specs import read_obs_spec
from hotloop.inputs.values import require_count
from hotloop.lanes.choice import LaneChoice
from hotloop.lanes.compiled import CompiledLane
from hotloop.learners.own_network import (
    Sharing,
    flattened,
    guess_obs,
    linear_widths,
    named_vector,
    require_trainable,
    said_by,
)
from hotloop.nets.tracing import in_mode

NOT_ARGUMENTS = ("self", "network", "actor_critic", "__class__")
UNDECIDED = LaneChoice("", "not chosen yet: it depends on the observations; say `obs=` or make the first call")


class ModuleLearner:
    """The door of a learner for a module, batches and observations of anybody's: it looks at what it is given, says
    what is wrong with it, and hands it to the learner that our own runs have.

    `network` stays the user's module; `lane` and `lane_reason` say how it is trained. The lane depends on the
    observations, since a layout of the network does. They are as `obs=` says, or else a vector as wide as the network's
    first layer, or else what the first call brings.
    """

    _title = "network"
    _arguments: dict[str, Any]
    """Of the constructor, but for the module."""
    _learner: Any
    """Once the observations are known."""

    def __init__(self, network: nn.Module, learning_rate: float, lane: str, obs: Any, planned_updates: int) -> None:
        self._device = require_trainable(self._title, network)
        self.network, self.learning_rate = network, learning_rate
        self._asked, self._planned = lane, require_count("planned_updates", planned_updates, 0)
        self._counters, self._choice = Counters(), UNDECIDED
        self._as_floats = self._compiles = False
        self._spec: ObsSpec | None = None
        self._shape: tuple[int, ...] = (-1,)
        given = None if obs is None else read_obs_spec(obs)
        spec = given or guess_obs(network, self._takes)
        self._guessed = given is None
        if spec is not None:
            self._start(spec)

    def _learner_of(self, spec: ObsSpec) -> Any:
        """Who trains the module on observations of `spec`; an ArgumentError where the module does not take them."""
        raise NotImplementedError

    def _check_answer(self, spec: ObsSpec) -> int:
        """How many outputs the module has; an ArgumentError where it answers in another form."""
        raise NotImplementedError

    @property
    def lane(self) -> str:
        """`native`, `compiled` or `eager`; empty before it is chosen."""
        return self._choice.name

    @property
    def lane_reason(self) -> str:
        return self._choice.reason

    @property
    def updates(self) -> int:
        """Made so far."""
        return self._counters.updates

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.network).__name__}, updates={self.updates}, lane={self.lane!r})"

    def _takes(self, spec: ObsSpec) -> bool:
        return self._refusal(spec) is None

    def _refusal(self, spec: ObsSpec) -> ArgumentError | None:
        try:
            self._check_answer(spec)
        except ArgumentError as error:
            return error
        return None

    def _start(self, spec: ObsSpec) -> None:
        """Choose and build the lane for observations of `spec`."""
        try:
            self._learner = self._learner_of(spec)
        except LaneError as error:
            raise LaneError(error.message, 'lane="auto" chooses one that can') from error
        self._choice, self._spec = self._learner.choice, spec
        self._shape = (-1,) if isinstance(spec, dict) else spec.shape  # of the usual kind, which is told at once
        self._begin_on(self._learner.lane)

    def _begin_on(self, lane: Any) -> None:
        self._lane, self._as_floats, self._compiles = lane, lane.name == "native", lane.name == "compiled"
        self._sharing = Sharing(self._title, self.network, lane)

    def _compile(self, data: Any, k: int) -> None:
        """Before the first update. What `auto` chose and cannot be compiled goes on eagerly, and says so."""
        self._compiles = False
        try:
            self._lane.prepare(data, k)
        except LaneError as error:
            if self._asked != "auto":
                raise
            assert isinstance(self._lane, CompiledLane)
            self._choice = LaneChoice("eager", f"{self._choice.reason}; compiled: {error.message}")
            self._learner.lane = self._lane.eager
            self._begin_on(self._lane.eager)

    def _learn(self, data: Any) -> UpdateStats:
        """Up to k updates, counted."""
        learner = self._learner
        if self.learning_rate != learner.rates.lr:
            learner.rates.lr = require_above_zero("learning_rate", self.learning_rate, "1e-3")
        if self._as_floats:
            return learner.update(data)
        with torch.enable_grad():  # who acts under `no_grad` may forget to leave it
            return learner.update(data)

    def _infer(self, rows: Obs, mask: Array | None = None, noisy: bool = False) -> tuple[Any, ...]:
        """What acting on observations [N, ...] needs; a module answers in evaluation mode."""
        if self._as_floats:  # the native lane, which asks no module
            return self._lane.infer(rows, mask)
        with in_mode(self.network, training=False):
            return self._lane.infer(rows, mask)

    def _read_obs(self, name: str, value: Any, leading: tuple[int, ...]) -> Obs:
        """Observations after axes `leading`."""
        if value.__class__ is np.ndarray and value.shape == leading + self._shape and not self._guessed:
            return read_obs(name, value, self._as_floats)
        obs = read_obs(name, value, as_floats=False)
        parts = list(obs.values()) if isinstance(obs, dict) else [obs]
        if any(tuple(part.shape[: len(leading)]) != leading for part in parts):
            raise ArgumentError(f"`{name}` has shape {shape_of(spec_of(obs, 0))}; expected to begin with {leading}")
        self._settle([spec_of(obs, len(leading))], name)
        return read_obs(name, value, self._as_floats)

    def _read_rows(self, value: Any) -> tuple[Obs, bool]:
        """Observations [N, ...] to act on, and whether it was a single one."""
        rows = read_obs("obs", value, self._as_floats)
        if rows.__class__ is np.ndarray and not self._guessed:
            if rows.shape == self._shape:
                return rows[None], True
            if rows.shape[1:] == self._shape and len(rows):
                return rows, False
        one, several = spec_of(rows, 0), spec_of(rows, 1)
        self._settle([one, several], "obs")
        if self._as_floats:
            rows = read_obs("obs", value, as_floats=True)
        if shape_of(one) == shape_of(self._spec):  # type: ignore[arg-type]
            return map_obs(lambda part: part[None], rows), True
        if not rows_of(rows):
            raise ArgumentError("`obs` is empty", "give one observation, or several")
        return rows, False

    def _settle(self, possible: list[ObsSpec], name: str) -> None:
        """Begin with the observations that were seen where nothing is known yet, refuse others where it is."""
        shapes = [shape_of(spec) for spec in possible]
        if self._spec is not None and shape_of(self._spec) in shapes:
            self._guessed = False
            return
        if self._spec is not None and not self._guessed:
            raise _other_shape(name, shapes, shape_of(self._spec))
        refusals = [self._refusal(spec) for spec in possible]
        fits = [spec for spec, refusal in zip(possible, refusals, strict=True) if refusal is None]
        if len(fits) > 1:
            raise ArgumentError(
                f"`{name}` has shape {shapes[0]}, which `{self._title}` takes as one observation and as several",
                "say the shape of one: `obs=` of the learner",
            )
        if not fits:
            raise self._neither(name, possible, [refusal for refusal in refusals if refusal])
        before = None if self._spec is None else self.state_dict()  # a state may have been loaded
        self._start(fits[0])
        if before is not None:
            self.load_state_dict(before)
        self._guessed = False

    def _neither(self, name: str, possible: list[ObsSpec], refusals: list[ArgumentError]) -> ArgumentError:
        """Why the module takes an observation neither as one nor as several. Of the two readings that one is told which
        gives a layer its width, else the one that the module answered to at all."""
        shapes, widths = [shape_of(spec) for spec in possible], linear_widths(self.network)
        meant = [refusal for shape, refusal in zip(shapes, refusals, strict=True) if shape in widths]
        told = meant or [refusal for refusal in refusals if refusal.__cause__ is None] or refusals
        first, causes = told[0], {said_by(refusal.__cause__) for refusal in told}
        if meant and first.__cause__ is None:  # the observation is right, the answer is not
            return first
        if first.__cause__ is not None and len(causes) == 1:
            words = f", on which `{self._title}` fails: {causes.pop()}"
        elif len(told) == 1:
            words = f": {first.message}"
        else:
            one, several = (said_by(refusal.__cause__) if refusal.__cause__ else refusal.message for refusal in told)
            words = f", which the network takes neither as one observation ({one}) nor as several ({several})"
        guess = None if self._spec is None else shape_of(self._spec)
        hint = first.hint if guess is None else f"`{self._title}` takes observations of shape {guess}"
        of_each = "" if len(shapes) > 1 else "observations of "
        error = ArgumentError(f"`{name}` has {of_each}shape {shapes[0]}{words}", hint)
        error.__cause__ = first.__cause__ or first
        return error

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A learner of its own, with a copy of the network."""
        other = type(self)(copy.deepcopy(self.network, memo), **self._arguments)
        other.learning_rate = self.learning_rate
        if self._spec is not None:
            other._start(self._spec)
        other.load_state_dict(self.state_dict())
        return other

    def state_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _named_vectors(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Of the lane's state, by the names of the network's parameters; none before there is a lane."""
        state: dict[str, Array] = {} if self._spec is None else self._lane.state()
        return {name: named_vector(self._learner.network, state[name]) for name in names if state}

    def _load(self, state: Mapping[str, Any], needed: tuple[str, ...], vectors: tuple[str, ...]) -> None:
        """The network, and the vectors if there are any."""
        if missing := {"network", "updates", *needed} - set(state):
            raise CheckpointError(f"the state has no `{sorted(missing)[0]}`", "give what `state_dict()` returned")
        if vectors[0] in state and self._spec is None:
            raise ArgumentError("the learner does not know its observations yet", "say `obs=` when you make it")
        flat = {name: flattened(self._learner.network, state[name], name) for name in vectors if vectors[0] in state}
        try:
            self.network.load_state_dict(state["network"])
        except RuntimeError as error:
            said = " ".join(str(error).split())
            raise CheckpointError(f"the state is of another network: {said}", "build the same one") from error
        if flat:
            self._lane.load_state(self._lane.state() | flat)
        self._counters.updates = int(state["updates"])


def _other_shape(name: str, shapes: list[Any], expected: Any) -> ArgumentError:
    """`shapes`: of one observation, or of what was given as one and of each of several."""
    if len(shapes) > 1 and not isinstance(expected, dict) and len(shapes[1]) == len(expected):
        return ArgumentError(f"`{name}` has shape {shapes[0]}, {shapes[1]} of each; expected {expected} of each")
    return ArgumentError(f"`{name}` has observations of shape {shapes[0]}; expected {expected}")
