"""Two envs held equal: the same seeds and actions through whole episodes; then env steps per second, interleaved.

Compared are both spaces, and of every event observation, reward, `terminated`, `truncated` and the action mask, dtypes
included. An env that draws its random numbers in another order is no wrong env: both are asked at the place where they
part, by letting them go on from there with other random numbers (`draws.py`); then distributions are tested instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.errors import EnvError
from hotloop.core.two_sample import distribution_distance, holm
from hotloop.proof import speed
from hotloop.proof.difference import Difference, LetPass, Tolerance, first_difference
from hotloop.proof.draws import draw_differently
from hotloop.proof.env_play import EnvEvents, RandomActions, play_fast, play_plain, play_until, scales_of
from hotloop.proof.env_players import Event, Side, Target, side_of
from hotloop.proof.randomness import disturb, generators_kept
from hotloop.proof.values import leaves_of, shown_value
from hotloop.proof.verdict import DistributionTest, PairCost, Proof

NUM_ENVS, ENV_STEPS, EPISODES = 4, 2_000, 200
REDRAWS = 16
"""Times that both go on with other random numbers from where they part."""
TURNS = 64
"""Different steps that are timed interleaved."""
LEVEL = 0.01
"""Of all tests of distributions together."""
MOST_FEATURES = 16
"""Numbers of the first observations that are tested."""
LONGEST_LIST = 60
FIELDS = ("observation", "terminated", "truncated", "reward", "action_mask")
"""In the order in which they are compared: an episode's end is more often the cause of a reward than the other way."""


def prove_envs(
    plain: Target,
    fast: Target,
    *,
    num_envs: int = NUM_ENVS,
    env_steps: int = ENV_STEPS,
    episodes: int = EPISODES,
    seed: int = 0,
    tolerance: float = 1e-6,
    seconds: float = 1.0,
) -> Proof:
    """What `hotloop.prove` does with two envs: the same seeds and actions, whole episodes; then both timed."""
    with arithmetic_on(threads=1), generators_kept():
        return _EnvCheck((plain, fast), num_envs, seed, tolerance).run(env_steps, episodes, seconds)


class _EnvCheck:
    def __init__(self, targets: tuple[Target, Target], num_envs: int, seed: int, tolerance: float) -> None:
        self._targets, self._num_envs, self._seed, self._tolerance = targets, num_envs, seed, tolerance
        self._seeds = [seed + index for index in range(num_envs)]
        self._notes: list[str] = []
        self._let_pass = LetPass()

    def run(self, env_steps: int, episodes: int, seconds: float) -> Proof:
        plain, fast = self._sides()
        try:
            return self._judged(plain, fast, env_steps, episodes, seconds)
        finally:
            plain.close()
            fast.close()

    def _sides(self) -> tuple[Side, Side]:
        return side_of(self._targets[0], self._num_envs), side_of(self._targets[1], self._num_envs)

    def _judged(self, plain: Side, fast: Side, env_steps: int, episodes: int, seconds: float) -> Proof:
        proof = Proof("envs", fast.name, plain.name, fast.name, _of_spaces(plain, fast), {"tolerance": self._tolerance})
        if proof.difference is not None:
            return proof
        each = max(1, env_steps // self._num_envs)
        lanes = play_plain(plain, self._seeds, self._actions(plain), each)
        if lanes[0].events[0].kind == "raised":
            raise EnvError(f"`{plain.name}` raises in `reset`: {lanes[0].events[0].fields['error']}", "mend it first")
        others = play_fast(fast, self._seeds, lanes)
        place = self._first_difference(plain, fast, lanes, others)
        evidence = self._evidence(lanes, place) | self._let_pass.as_data()
        proof = replace(proof, evidence=evidence, notes=tuple(self._notes), rounding=self._let_pass.any)
        if place is None:
            return replace(proof, cost=self._cost(plain, fast, lanes, seconds) if seconds else None)
        difference, index, position = place
        if not self._is_drawn(difference, (lanes, others), index, position):
            return replace(proof, difference=difference)
        return self._by_distribution(proof, difference, plain, fast, episodes)

    def _actions(self, plain: Side, offset: int = 0) -> RandomActions:
        return RandomActions(plain.action_space, self._num_envs, self._seed + offset)

    def _evidence(self, lanes: Sequence[EnvEvents], place: tuple[Difference, int, int] | None) -> dict[str, Any]:
        events = [event for lane in lanes for event in lane.events]
        counted = {
            "env steps": sum(event.kind == "step" for event in events),
            "episodes": sum(_ends(event) for event in events),
        }
        if not counted["episodes"]:
            self._notes.append("no episode ended: `--env-steps` plays more")
        if place is not None:
            counted = {f"{name} played": count for name, count in counted.items()}
        envs = f"{self._num_envs} side by side, seeds {self._seeds[0]} to {self._seeds[-1]}"
        return {**counted, "envs": envs, "tolerance": self._tolerance}

    def _first_difference(
        self, plain: Side, fast: Side, lanes: Sequence[EnvEvents], others: Sequence[EnvEvents]
    ) -> tuple[Difference, int, int] | None:
        """The earliest of all envs, with its env and its place among that env's events."""
        tolerance = Tolerance(self._tolerance, scales_of(lanes), let_pass=self._let_pass)
        is_mixed = type(plain) is not type(fast)
        for position in range(max(len(lane.events) for lane in lanes)):
            for index, (lane, other) in enumerate(zip(lanes, others, strict=True)):
                if position >= len(lane.events):
                    continue
                mine = lane.events[position]
                theirs = (
                    other.events[position] if position < len(other.events) else Event("raised", {"error": "no event"})
                )
                if found := _of_events(mine, theirs, tolerance, is_mixed):
                    when, way = self._way(lane, index, position)
                    return found.at(when, way), index, position
                if mine.kind == "raised":
                    self._notes.append(f"both raise {mine.fields['error']}: what follows counts as no evidence")
        return None

    def _way(self, lane: EnvEvents, index: int, position: int) -> tuple[str, str]:
        """When it was, and how to come there again."""
        before = lane.events[: position + 1]
        steps = sum(event.kind != "reset" for event in before)
        resets = [place for place, event in enumerate(before) if event.kind == "reset"]
        is_reset = lane.events[position].kind == "reset"
        at = f"at the reset after env step {steps}" if is_reset else f"at env step {steps}"
        when = f"{at} of env {index} (episode {len(resets)}, its step {position - resets[-1]})"
        shown = [shown_value(action) for action in lane.actions[:steps]]
        dropped = max(0, len(shown) - LONGEST_LIST)
        listed = f"... {dropped} more, " * bool(dropped) + ", ".join(shown[dropped:])
        return when, f"reset(seed={self._seeds[index]}), then actions [{listed}] with reset() after each episode's end"

    def _is_drawn(
        self, difference: Difference, both: tuple[list[EnvEvents], list[EnvEvents]], index: int, position: int
    ) -> bool:
        """Whether the two part there by the order of their random numbers alone."""
        events = [lanes[index].events[position] for lanes in both]
        if difference.kind != "value" or any(event.kind == "raised" for event in events):
            return False
        times: tuple[list[Any], list[Any]] = ([events[0]], [events[1]])
        for found, target in zip(times, self._targets, strict=True):
            found += self._redrawn(target, both[0], index, position)
        if len(times[0]) == 1:
            self._notes.append("whether it draws random numbers there is out of reach: taken as a difference")
            return False
        arrays = [[_leaf(difference.what, event) for event in found] for found in times]
        if len(times[1]) == 1:  # those of the fast env alone are out of reach
            return any(first_difference("", arrays[0][0], one) is not None for one in arrays[0])
        pairs = [(one, other) for one, other in zip(*arrays, strict=True) if one is not None and other is not None]
        return bool(pairs) and draw_differently([one for one, _ in pairs], [other for _, other in pairs])

    def _redrawn(self, target: Target, plain: Sequence[EnvEvents], index: int, position: int) -> list[Event]:
        """The same event once more and again, all the same up to it, with other random numbers for it each time."""
        side = side_of(target, self._num_envs)
        try:
            if position > 0 and side.owner(index) is None:
                return []
            return [self._once_more(side, plain, index, position, number) for number in range(1, REDRAWS + 1)]
        finally:
            side.close()

    def _once_more(self, side: Side, plain: Sequence[EnvEvents], index: int, position: int, number: int) -> Event:
        if position == 0:
            return side.reset([seed + 1_000 * number for seed in self._seeds])[index]
        other = 1_000_003 * number + self._seed
        return play_until(side, self._seeds, plain, index, position, lambda: disturb(side.owner(index), other))

    def _by_distribution(self, proof: Proof, difference: Difference, plain: Side, fast: Side, episodes: int) -> Proof:
        """The two part where the plain env draws: are returns, lengths, rewards and first observations alike?"""
        said = f"they part where plain draws random numbers, {difference.when}; up to there they are the same"
        both = [self._episodes(side, plain, episodes) for side in (plain, fast)]
        tests = _tests(both[0], both[1])
        told = [test for test in tests if test.chance < LEVEL]
        proof = replace(proof, tests=tests, draws_differently=True, notes=(*self._notes, said))
        if not told:
            return proof
        worst = min(told, key=lambda test: test.chance)
        means = f"mean {worst.plain:.4g}", f"mean {worst.fast:.4g}"
        when = f"in distribution over {len(both[0])} episodes of each (chance {worst.chance:.2g})"
        return replace(proof, difference=Difference(worst.measure, "value", *means, when=when))

    def _episodes(self, side: Side, plain: Side, episodes: int) -> list[list[Event]]:
        """Events of whole episodes, of an own seed for each env; the first ones of each."""
        each, found = -(-episodes // self._num_envs), []
        seeds = [seed + 10_000 for seed in self._seeds]
        actions = self._actions(plain, 10_000)
        for lane in play_plain(side, seeds, actions, ENV_STEPS * 4, episodes=each):
            starts = [place for place, event in enumerate(lane.events) if event.kind == "reset"]
            pieces = [lane.events[a:b] for a, b in itertools.pairwise([*starts, len(lane.events)])]
            found += [piece for piece in pieces if len(piece) > 1][:each]
        return found

    def _cost(self, plain: Side, fast: Side, lanes: Sequence[EnvEvents], seconds: float) -> PairCost | None:
        """Time of one env step: all envs are stepped interleaved, with actions that were played."""
        if any("action_mask" in event.fields for lane in lanes for event in lane.events[:1]):
            turns = [self._masked_turn(side, plain) for side in (plain, fast)]
        else:
            turns = [self._turn(side, lanes) for side in (plain, fast)]
        try:
            measured = speed.measure(turns[0], turns[1], seconds)
        except Exception as error:
            self._notes.append(f"not timed: it raises {type(error).__name__}: {error}")
            return None
        share = 1.0 / self._num_envs
        times = measured.first_seconds * share, measured.second_seconds * share
        return PairCost(replace(measured, first_seconds=times[0], second_seconds=times[1]), "env step")

    def _turn(self, side: Side, lanes: Sequence[EnvEvents]) -> Any:
        side.reset(self._seeds)
        longest = min(TURNS, *(len(lane.actions) for lane in lanes))
        calls = itertools.cycle([side.turn([lane.actions[number] for lane in lanes]) for number in range(longest)])
        return lambda: next(calls)()

    def _masked_turn(self, side: Side, plain: Side) -> Any:
        """Legal actions need the masks: they are read, and actions drawn, in the time of both."""
        choose, masks = self._actions(plain), [event.fields.get("action_mask") for event in side.reset(self._seeds)]

        def step_all() -> None:
            for index, events in enumerate(side.step([choose(i, 0, mask) for i, mask in enumerate(masks)])):
                masks[index] = events[-1].fields.get("action_mask")

        return step_all


def _ends(event: Event) -> bool:
    return bool(event.fields.get("terminated", False)) or bool(event.fields.get("truncated", False))


def _of_spaces(plain: Side, fast: Side) -> Difference | None:
    for name in ("observation_space", "action_space"):
        mine, theirs = getattr(plain, name), getattr(fast, name)
        if mine is not None and theirs is not None and mine != theirs:
            return Difference(name, "type", shown_value(mine), shown_value(theirs), when="before the first env step")
    return None


def _of_events(plain: Event, fast: Event, tolerance: Tolerance, is_mixed: bool) -> Difference | None:
    """Field by field; where one side is batched, the containers of its numbers (a reward's dtype) are its own."""
    if plain.kind != fast.kind:
        said = [event.fields["error"] if event.kind == "raised" else f"a {event.kind}" for event in (plain, fast)]
        return Difference("step", "raised", said[0], said[1])
    if plain.kind == "raised":
        return None
    for name in FIELDS:
        mine, theirs = plain.fields.get(name), fast.fields.get(name)
        if is_mixed and name in ("reward", "terminated", "truncated") and mine is not None:
            kind: Any = float if name == "reward" else bool
            mine, theirs = kind(mine), kind(theirs)
        if (mine is None) != (theirs is None):
            return Difference(name, "keys", "none" if mine is None else "given", "none" if theirs is None else "given")
        if found := first_difference(name, mine, theirs, tolerance):
            return found
    return None


def _leaf(path: str, event: Event) -> np.ndarray | None:
    """That number or array, by its path."""
    name = path.split("[")[0].split(".")[0]
    leaf = dict(leaves_of(event.fields.get(name), name)).get(path)
    return None if leaf is None else np.asarray(leaf)


def _tests(plain: list[list[Event]], fast: list[list[Event]]) -> tuple[DistributionTest, ...]:
    measures = [_measures(events) for events in (plain, fast)]
    rows = []
    for name in measures[0]:
        if name in measures[1]:
            mine, theirs = measures[0][name], measures[1][name]
            distance, chance = distribution_distance(mine, theirs)
            means = [float(np.mean(np.concatenate(side))) for side in (mine, theirs)]
            rows.append((name, means[0], means[1], distance, chance))
    adjusted = holm([row[4] for row in rows])
    return tuple(DistributionTest(*row[:4], chance) for row, chance in zip(rows, adjusted, strict=True))


def _measures(episodes: list[list[Event]]) -> dict[str, list[np.ndarray]]:
    """By name, an array for each episode: its return, its length, its rewards, numbers of its first observation."""
    rewards = [np.array([float(event.fields["reward"]) for event in events[1:]]) for events in episodes]
    found = {
        "return": [np.array([own.sum()]) for own in rewards],
        "length": [np.array([float(len(own))]) for own in rewards],
        "reward": rewards,
    }
    for path, leaf in leaves_of(episodes[0][0].fields.get("observation"), "first observation") if episodes else ():
        firsts = [dict(leaves_of(events[0].fields["observation"], "first observation"))[path] for events in episodes]
        if np.asarray(leaf).dtype.kind in "fiub" and len({np.shape(first) for first in firsts}) == 1:
            flat = np.array(firsts, np.float64).reshape(len(firsts), -1)
            for column in range(min(flat.shape[1], MOST_FEATURES)):
                found[f"{path}[{column}]"] = list(flat[:, column : column + 1])
    return found
