"""What of two programs was not compared, since only one of them, or neither, showed it; and what would decide it.

Programs that show the same as far as both are seen are the same that far, and no further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.proof.programs import EnvCall, Event, ProgramRecording, Update, in_order, made_at_once

KINDS = ("env steps", "updates", "resets")
ENVS_SEEN = (
    "an env is seen where the program's own process calls its `step` and `reset`, in one thread:"
    " hold the envs themselves against each other with `hotloop prove --env`"
)
UPDATES_SEEN = (
    "updates are seen of PyTorch's optimizers and hotloop's learners, in the program's own process:"
    " hold the functions that update against each other with `hotloop prove FILE.py`"
)
DECIDES = {"env steps": ENVS_SEEN, "resets": ENVS_SEEN, "updates": UPDATES_SEEN}


def only_in(one: ProgramRecording, other: ProgramRecording) -> Counter[str]:
    """How much of each kind `one` did of which `other` shows nothing, up to the end of both.

    A restart after an env's last env step leads nowhere; of a program that we ended, what the other did later counts
    for nothing either.
    """
    seen: list[Event] = [*other.env_calls, *other.updates]
    keys = {event.key for event in seen} | set(made_at_once(other.updates))
    steps, done = other.steps_of_envs(), 0
    found: Counter[str] = Counter()
    for event in in_order(one):
        beyond = other.limited and done >= other.env_steps > 0
        done += isinstance(event, EnvCall) and not event.is_reset
        if event.key in keys or beyond:
            continue
        if isinstance(event, Update):
            found["updates"] += event.count if event.number else 0
        elif event.is_reset:
            found["resets"] += event.step < steps[event.env]
        else:
            found["env steps"] += 1
    return +found


def gaps(
    recordings: tuple[ProgramRecording, ProgramRecording], data: Sequence[Mapping[str, Any]], names: tuple[str, str]
) -> list[str]:
    """What was not compared, in words, with what would decide it last; empty where all that both did was seen."""
    plain, fast = recordings
    said: list[str] = []
    lacking: list[str] = []
    for own, other, name in ((plain, fast, names[0]), (fast, plain, names[1])):
        alone = only_in(own, other)
        listed = [f"{alone[kind]:,} {kind if alone[kind] > 1 else kind[:-1]}" for kind in KINDS if alone[kind]]
        said += [f"{' and '.join(listed)} {_were(alone)} seen in {name} only"] if listed else []
        lacking += [kind for kind in KINDS if alone[kind]]
    for kind, why in _seen_nowhere(recordings, data).items():
        said.append(why)
        lacking.append(kind)
    return [*said, *dict.fromkeys(DECIDES[kind] for kind in lacking)]


def _were(alone: Counter[str]) -> str:
    return "was" if sum(alone.values()) == 1 else "were"


def _seen_nowhere(
    recordings: tuple[ProgramRecording, ProgramRecording], data: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Kinds that neither shows, where there is a reason to think that there was something to see."""
    counts = {
        "env steps": sum(one.env_steps for one in recordings),
        "updates": sum(one.num_updates() for one in recordings),
    }
    found: dict[str, str] = {}
    if not any(counts.values()):
        return {"env steps": "no env step and no update was seen in either"}
    workers = any(one.get("workers") for one in data)
    others = sorted({name for one in data for name in one.get("others", ())})
    if not counts["env steps"] and workers:
        found["env steps"] = "no env step was seen in either, and worker processes were started"
    if not counts["updates"] and (workers or others):
        why = f"{' and '.join(others)} is loaded" if others else "worker processes were started"
        found["updates"] = f"no update was seen in either, and {why}"
    return found
