"""What the reader of a report should know of what was found, and of what could not be seen."""

from __future__ import annotations

import sys
from typing import Any

from .meters import LEAST_OF_A_WORKER, children_seconds
from .passes import Pass

NO_ENV = (
    "no env step was seen: nothing with `step` and `reset` was called"
    " (an env stepped in another process or compiled by JAX cannot be seen); name yours with --env"
)
NO_ENV_YET = "no env step was seen before the program failed"
LEAST_UNSEEN = 50
BY_ANOTHER_THREAD = (
    "by another thread than the one that steps envs: only the latter is timed, and what learning costs cannot be seen."
    " Step the envs in the thread that learns to have both diagnosed"
)
BEFORE_ANY_ENV = "and no env step, and the program ended before a loop was made out"
ALONE = "no env step was seen: the rounds of the optimizers are told as the loop; name what steps yours with --env"
ELSEWHERE = (
    "child processes computed beside this one ({}): what they do (envs may be stepped there) is not seen. The same"
    " program with one actor in this process can be diagnosed whole"
)
RAY = (
    "Ray runs envs and learners in processes of its own, which are not seen: what is told is of this process alone."
    " RLlib's own timers say which part waits; with num_env_runners=0 and num_learners=0 it all runs here"
)


class Remarks(Pass):
    """What the reader should know of what was found and what could not be seen."""

    def __init__(self) -> None:
        self.children = 0
        """Processes of the script's that have computed something, at the end."""

    def stop(self) -> None:
        self.children = sum(seconds >= LEAST_OF_A_WORKER for seconds in children_seconds())

    def add_to(self, trace: dict[str, Any]) -> None:
        notes, watch = trace["notes"], self.watch
        if self.children and (watch.alone or not watch.begun) and not watch.env_calls:
            notes.append(ELSEWHERE.format(self.children))
            trace["counts"]["workers"] = self.children
        if "ray" in sys.modules:
            notes.append(RAY)
        steps = watch.unseen_steps
        unseen = steps >= LEAST_UNSEEN and steps > watch.attribution.counts["updates"]
        if unseen:
            trace["counts"]["unseen_updates"] = steps
            notes[:] = [note for note in notes if note != NO_ENV]
            notes.append(f"{steps:,} optimizer steps were made {BY_ANOTHER_THREAD if watch.begun else BEFORE_ANY_ENV}")
        if not watch.begun:
            return
        notes.insert(0, f"envs found: {', '.join(sorted(set(watch.envs.values())))}" if watch.env_calls else ALONE)
        learners = [name for name in ("torch", "tensorflow", "keras") if name in sys.modules]
        if not learners:
            used = "jax" if "jax" in sys.modules else "no PyTorch"
            notes.append(
                f"{used}: acting and learning cannot be told apart; only env, replay and logging are split off"
            )
        elif not watch.attribution.counts["updates"] and not unseen:
            notes.append(
                "no optimizer step was seen in the recorded time; --after N skips N env steps, --seconds watches longer"
            )
