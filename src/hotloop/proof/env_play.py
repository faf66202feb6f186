"""Two envs played alike: the same seeds and the same actions through whole episodes, every answer kept.

Actions are drawn once, for the plain envs (by their masks where they have some), and given to both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hotloop.envs.foreign import MASK_KEY
from hotloop.proof.env_players import Event, Side, raised
from hotloop.proof.randomness import SEED, seed_library
from hotloop.proof.scales import FAR, MARKS_FROM, look_chosen
from hotloop.proof.values import leaves_of

Choose = Callable[[int, int, Any], Any]
"""Env, its env step from 0, its mask -> action; None: no more."""
OVERTIME = 2
"""An episode under way is played to its end, at most to so many times the env steps that were asked for."""


@dataclass
class EnvEvents:
    """One env's events, in order; `actions[j]` led to its j-th step."""

    events: list[Event] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    is_over: bool = False
    episodes: int = 0

    def take(self, event: Event, action: Any) -> None:
        self.events.append(event)
        if event.kind != "reset":
            self.actions.append(action)
        self.is_over = event.kind == "raised"
        self.episodes += self.has_ended()

    def mask(self) -> Any:
        return self.events[-1].fields.get(MASK_KEY)

    def has_ended(self) -> bool:
        """Whether the last event ended an episode."""
        fields = self.events[-1].fields
        return bool(fields.get("terminated", False)) or bool(fields.get("truncated", False))


class RandomActions:
    """Any allowed action of a space, a stream of its own for each env."""

    def __init__(self, space: Any, num_envs: int, seed: int) -> None:
        self._spaces = [copy.deepcopy(space) for _ in range(num_envs)]
        self._draws = [np.random.default_rng([seed, index]) for index in range(num_envs)]
        for index, own in enumerate(self._spaces):
            own.seed(seed + index)

    def __call__(self, index: int, number: int, mask: Any) -> Any:
        space = self._spaces[index]
        if mask is None or not hasattr(space, "n"):
            return space.sample()
        allowed = np.flatnonzero(np.asarray(mask))
        if not len(allowed):
            return space.sample()
        return space.start + int(self._draws[index].choice(allowed))


def play_plain(
    side: Side, seeds: Sequence[int], choose: Choose, env_steps: int, episodes: int | None = None
) -> list[EnvEvents]:
    """Each env for `env_steps` and to the end of the episode then under way, or for so many episodes, if sooner."""

    def goes_on(index: int, lane: EnvEvents) -> bool:
        if episodes is not None and lane.episodes >= episodes:
            return False
        made = len(lane.actions)
        return made < env_steps or (made < OVERTIME * env_steps and not lane.has_ended())

    return _play(side, seeds, choose, goes_on)


def play_fast(side: Side, seeds: Sequence[int], plain: Sequence[EnvEvents]) -> list[EnvEvents]:
    """The same actions; a lane ends where that of the plain env does."""
    lengths = [len(lane.actions) for lane in plain]
    return _play(side, seeds, _as_played(plain), lambda index, lane: len(lane.actions) < lengths[index])


def play_until(
    side: Side, seeds: Sequence[int], plain: Sequence[EnvEvents], index: int, position: int, disturb: Callable[[], None]
) -> Event:
    """The event at `position` of env `index` once more; `disturb` is called right before the step that leads to it."""
    events = plain[index].events
    with_step = events[position].kind == "reset" and side.restarts_at_once
    place = position - 1 if with_step else position

    def goes_on(number: int, lane: EnvEvents) -> bool:
        return len(lane.events) <= position and (number == index or not side.steps_alone)

    def before_call(lanes: list[EnvEvents]) -> None:
        if len(lanes[index].events) == place:
            disturb()

    played = _play(side, seeds, _as_played(plain), goes_on, before_call)
    return played[index].events[min(position, len(played[index].events) - 1)]


def _as_played(lanes: Sequence[EnvEvents]) -> Choose:
    def choose(index: int, number: int, mask: Any) -> Any:
        actions = lanes[index].actions
        return copy.deepcopy(actions[min(number, len(actions) - 1)])

    return choose


def _play(
    side: Side,
    seeds: Sequence[int],
    choose: Choose,
    goes_on: Callable[[int, EnvEvents], bool],
    before_call: Callable[[list[EnvEvents]], None] = lambda lanes: None,
) -> list[EnvEvents]:
    seed_library(SEED)  # for envs that draw from the library's generators
    try:
        lanes = [EnvEvents([event]) for event in side.reset(seeds)]
    except Exception as error:
        return [EnvEvents([raised(error)], is_over=True) for _ in seeds]
    for index, lane in enumerate(lanes):
        lane.is_over = not goes_on(index, lane)
    masks = [lane.mask() for lane in lanes]
    while not all(lane.is_over for lane in lanes):
        before_call(lanes)
        _advance(side, lanes, masks, choose, goes_on)
    return lanes


def _advance(
    side: Side, lanes: list[EnvEvents], masks: list[Any], choose: Choose, goes_on: Callable[[int, EnvEvents], bool]
) -> None:
    """One step of every env; a lane that is over is stepped along where envs are stepped together, not recorded."""
    actions = [
        None if lane.is_over and side.steps_alone else choose(index, len(lane.actions), masks[index])
        for index, lane in enumerate(lanes)
    ]
    for index, (lane, events) in enumerate(zip(lanes, side.step(actions), strict=True)):
        for event in events:
            masks[index] = event.fields.get(MASK_KEY, masks[index])
            if not lane.is_over:
                lane.take(event, actions[index])
                lane.is_over = lane.is_over or not goes_on(index, lane)


def scales_of(lanes: Sequence[EnvEvents]) -> dict[str, Any]:
    """By path, the size of each number over all events: what its errors are measured by. Where it is a mark at times
    (-1e9 in the place of what is not there), its size is that of the other times."""
    plain: dict[str, _Sum] = {}
    chosen: dict[str, _Sum] = {}
    for lane in lanes:
        for event in lane.events:
            for path, leaf in leaves_of(event.fields):
                array = np.asarray(leaf)
                if array.dtype.kind != "f" or plain.setdefault(path, _Sum(array.shape)).shape != array.shape:
                    continue
                sizes = np.abs(array).astype(np.float64)
                may_be = np.isfinite(sizes) & (sizes >= MARKS_FROM)
                if may_be.any():
                    may_be[may_be] = look_chosen(sizes[may_be])
                    chosen.setdefault(path, _Sum(array.shape)).add(sizes, may_be)
                plain[path].add(sizes, np.isfinite(sizes) & ~may_be)
    return {_bare(path): _sizes(found, chosen.get(path)) for path, found in plain.items()}


class _Sum:
    """Squares of one array's numbers over many events."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.squares, self.counts = shape, np.zeros(shape), np.zeros(shape)

    def add(self, sizes: np.ndarray, counted: np.ndarray) -> None:
        with np.errstate(over="ignore"):
            self.squares += np.where(counted, sizes, 0.0) ** 2
        self.counts += counted

    def size(self) -> np.ndarray:
        return np.sqrt(self.squares / np.maximum(self.counts, 1))


def _sizes(plain: _Sum, chosen: _Sum | None) -> np.ndarray:
    """Numbers that look chosen count with the others where they are not far larger."""
    if chosen is None:
        return plain.size()
    is_far = (plain.counts > 0) & (chosen.size() >= FAR * plain.size())
    both = (plain.squares + chosen.squares) / np.maximum(plain.counts + chosen.counts, 1)
    return np.where(is_far, plain.size(), np.sqrt(both))


def _bare(path: str) -> str:
    """`['observation'][0]` -> `observation[0]`."""
    head, _, rest = path.removeprefix("['").partition("']")
    return head + rest
