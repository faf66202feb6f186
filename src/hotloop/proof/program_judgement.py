"""Whether two recordings are of programs that compute the same, and where they first part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hotloop.proof.difference import Difference
from hotloop.proof.program_rounding import room_for
from hotloop.proof.programs import (
    EnvCall,
    Event,
    Fingerprint,
    ProgramRecording,
    Update,
    in_order,
    made_at_once,
    same_bits,
)

Ending = Literal["same", "rounding", "different"]


@dataclass(frozen=True)
class Judgement:
    """`rounding`: what may be rounding led to another action, or grew too large: what follows cannot be compared."""

    ending: Ending
    env_steps: int
    """Compared and the same, over all envs."""
    updates: int
    """Compared and the same."""
    difference: Difference | None = None
    largest_error: float = 0.0
    """Of all that was let pass."""
    event: Event | None = None
    """Where they part; None where only the counts differ."""
    other: Event | None = None
    """The same in the fast program."""
    identical: bool = True
    """Whether not a bit differs in what was compared and the same."""


def judge(plain: ProgramRecording, fast: ProgramRecording, tolerance: float | None = 0.0) -> Judgement:
    """The first place, in the order of the plain program, at which the two are not the same within `tolerance`; None:
    but for rounding.

    What only one of them shows is passed over; `program_gaps` tells it.
    """
    room = room_for(tolerance)
    others = {event.key: event for event in in_order(fast)}
    at_once = set(made_at_once(fast.updates))
    env_steps = made = 0
    largest, identical = 0.0, True
    for event in in_order(plain):
        other = others.get(event.key)
        if other is None and event.key not in at_once:
            continue
        if other is not None:
            error, name = room.worst(event, other)
            if name is not None:
                found = _difference(event, name, event.values.get(name), other.values.get(name))
                tie = not identical and isinstance(event, EnvCall) and name == "action" and _is_choice(event, other)
                ending: Ending = "rounding" if tie or room.may_have_grown() else "different"
                return Judgement(ending, env_steps, made, found, largest, event, other, identical)
            largest, identical = max(largest, error), identical and same_bits(event.values, other.values)
        env_steps += isinstance(event, EnvCall) and not event.is_reset
        made += event.count if isinstance(event, Update) and event.number else 0
    judgement = Judgement("same", env_steps, made, None, largest, identical=identical)
    unequal = _of_counts(plain, fast, f"({same_for(env_steps, made)})")
    return judgement if unequal is None else replace(judgement, ending="different", difference=unequal)


def same_for(env_steps: int, updates: int) -> str:
    return f"the same for {env_steps:,} env steps and {updates:,} updates"


def _is_choice(event: EnvCall, other: Event) -> bool:
    """Whether the action is one of a few: a number that drifts does not flip."""
    return not any(one.values["action"].projections for one in (event, other) if "action" in one.values)


def _difference(event: Event, name: str, plain: Fingerprint | None, fast: Fingerprint | None) -> Difference:
    if isinstance(event, EnvCall):
        when = f"at {'the reset after ' * event.is_reset}env step {event.step} of env {event.env}"
    elif not event.number:
        when = "before the first update"
    else:
        when = f"after update {event.number}" + (f", made by {event.line}" if event.line else "")
    said = ["none" if one is None else one.text() for one in (plain, fast)]
    return Difference(name, "keys" if plain is None or fast is None else "value", said[0], said[1], when=when)


def _of_counts(plain: ProgramRecording, fast: ProgramRecording, until: str) -> Difference | None:
    """The same as far as both go; one that goes on further, or makes more updates, is another program.

    Counted are the envs and optimizers that both show. Of programs that we ended, what each did before the env steps
    that both made.
    """
    ended = plain.limited or fast.limited
    both = min(plain.env_steps, fast.env_steps) if ended else None
    optimizers = {one.optimizer for one in plain.updates} & {one.optimizer for one in fast.updates}
    steps = plain.steps_of_envs(), fast.steps_of_envs()
    made = sum(steps[0][env] for env in steps[1]), sum(steps[1][env] for env in steps[0])
    shorter = plain if plain.env_steps < fast.env_steps else fast
    updates = plain.num_updates(both, optimizers), fast.num_updates(both, optimizers)
    counted = {"updates": updates, "env steps": (0, 0) if shorter.limited else made}
    for name, (mine, theirs) in counted.items():
        if mine != theirs:
            return Difference(f"number of {name}", "count", f"{mine:,}", f"{theirs:,}", when=until)
    return None
