"""Follows a whole program for what it computes: a fingerprint of every env call and of all parameters after every
optimizer step, in the order in which they came.

One line each: `E env step line FIELDS`, `R env step ordinal line observation`, `U optimizer number updates line
PARAMETERS`; `P optimizer NAMES` before its first update, `L number place` for every line of the user's own source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from types import ModuleType
from typing import Any

from .closeup import MOST_NUMBERS, Closeup, numbers_of
from .env_rows import Answer, EnvRows, number_of_envs, observation_of_reset, rows_of_step, value_of_step
from .fingerprints import fingerprint, row_of
from .follow import Follower, FollowPass
from .order import Order
from .originals import as_json, open_file
from .parameters import names_in, names_of
from .places import LIBRARY, USER, SourcePlaces, line_of

AT_ONCE = 2_000
"""Lines that are written together."""
DEEPEST = 80
LEARNERS = {"q_learner": "QLearner", "policy_learner": "PolicyLearner", "sac_learner": "SACLearner"}
"""Of hotloop's parts: they update a network's parameters without an optimizer of PyTorch's."""

OTHER_LEARNERS = ("jax", "tensorflow")
"""Libraries whose updates are not seen."""


class Tracer(Follower):
    """A follower that hears of resets before the first env step too."""

    def __init__(self, tracing: Tracing, *others: Any, at_limit: Callable[[], None]) -> None:
        super().__init__(*others, tracing, at_limit=at_limit)
        self.tracing = tracing
        self.busy, self.thread = False, get_ident()

    def try_env(self, verdict: list[str], function: Callable[..., Any], args: Any, keywords: Any) -> Any:
        self.tracing.marks.append(self.tracing.mark())
        try:
            result = super().try_env(verdict, function, args, keywords)
        finally:
            self.tracing.marks.pop()
        self.tracing.end_where_due()
        return result


class Optimiser:
    """One that has made a step, in the order of their first ones."""

    def __init__(self, owner: Any, number: int, parameters: list[Any], names: list[str]) -> None:
        self.owner, self.number, self.parameters, self.names = owner, number, parameters, names
        self.updates = 0


class Tracing(FollowPass):
    watch: Tracer

    def __init__(self, order: Order, places: SourcePlaces, closeup: Closeup | None = None) -> None:
        self.order, self.places, self.closeup = order, places, closeup
        self.envs: dict[int, EnvRows] = {}
        self.num_envs = self.env_steps = 0
        self.marks: list[Any] = []
        self.optimisers: dict[int, Optimiser] = {}
        self._made: dict[int, tuple[Any, list[str]]] = {}
        """Each optimizer that has not stepped yet, and fingerprints of what it was made for, as it was then."""
        self._first_resets: dict[int, tuple[Any, list[Any], int]] = {}
        """Of envs that were not stepped yet: they have no number."""
        self._lines: list[str] = []
        self._places: dict[tuple[Any, int], int] = {}
        self._started = 0.0
        self._due = False
        """Whether the program is to end as soon as it is known whose call the last one was."""
        self.workers = 0

    def prepare(self) -> None:
        open_file(self.order.lines, "w").close()
        self._look_ahead()

    def begin(self) -> None:
        self._started = self.watch.clock()
        open_file(self.order.result + ".begun", "w").close()

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        parts = {f"hotloop.learners.{module}": self._hook_learner(name) for module, name in LEARNERS.items()}
        return {**parts, "multiprocessing.process": self._count_workers}

    def _count_workers(self, module: ModuleType) -> None:
        start = module.BaseProcess.start

        def count_and_start(process: Any) -> Any:
            self.workers += 1
            return start(process)

        module.BaseProcess.start = count_and_start

    def on_step(self, args: tuple[Any, ...], result: Any, start: float) -> None:
        env = args[0] if args else None
        seen = self.envs.get(id(env)) or self._first_step(env, result)
        where = self._where()
        for key, words in rows_of_step(seen, args[1] if len(args) > 1 else None, result, self.order.near):
            self._note(key, where, words)
            self.env_steps += key[0] == "E"
            if key == self.order.look_at and self.closeup is not None:
                value = value_of_step(seen, self.order.look_for, args, result, int(key.split()[1]) - seen.first)
                self.closeup.keep_env_call(value)
                self._end()
        self._look_ahead()
        limit = self.order.env_steps
        late = self.watch.clock() - self._started > self.order.seconds
        if late or (limit is not None and self.env_steps >= limit):
            self._end()

    def _first_step(self, env: Any, result: Any) -> EnvRows:
        rows, batched = number_of_envs(env, Answer(result).reward)
        seen = self.envs[id(env)] = EnvRows(env, self.num_envs, rows, batched)
        self.num_envs += rows
        reset = self._first_resets.pop(id(env), None)
        if reset is not None:
            self._note_reset(seen, *reset[1:])
        return seen

    def on_wrapped(self, args: tuple[Any, ...], calls: int, result: Any) -> None:
        """What was written down of the calls inside is forgotten."""
        first, self.num_envs, self.env_steps, envs, resets = self.marks[-1]
        self._first_resets = dict(resets)
        self._lines[first:] = [line for line in self._lines[first:] if line[0] not in "ER"]
        self.envs = {one: seen.copy() for one, seen in envs.items()}
        self._due = False
        self.on_step(args, result, 0.0)

    def mark(self) -> Any:
        """What a first call may have to be taken back to; it is never among lines that were written already."""
        self._flush()
        envs = {one: seen.copy() for one, seen in self.envs.items()}
        return len(self._lines), self.num_envs, self.env_steps, envs, dict(self._first_resets)

    def on_reset(self, args: tuple[Any, ...], result: Any) -> None:
        env, observation = args[0] if args else None, observation_of_reset(result)
        seen, where = self.envs.get(id(env)), self._where()
        rows, batched = number_of_envs(env) if seen is None else (len(seen.steps), seen.batched)
        parts = [row_of(observation, place, rows) for place in range(rows)] if batched else [observation]
        noted = [(fingerprint(one, self.order.near), self.closeup and numbers_of(one, MOST_NUMBERS)) for one in parts]
        if seen is None:
            self._first_resets[id(env)] = (env, noted, where)
            return
        self._note_reset(seen, noted, where)
        self._look_ahead()

    def _note_reset(self, seen: EnvRows, noted: list[Any], where: int) -> None:
        """`noted`: the fingerprint of each observation, and the observation itself where it may be looked for."""
        for place, (word, value) in enumerate(noted[: len(seen.steps)]):
            seen.restarts[place] = False
            key = seen.key_of_reset(place)
            self._note(key, where, [word])
            if key == self.order.look_at and self.closeup is not None:
                self.closeup.keep_env_call(value)
                self._end()

    def on_made(self, optimiser: Any) -> None:
        parameters = [one for group in optimiser.param_groups for one in group["params"]]
        self._made[id(optimiser)] = optimiser, self._all(parameters)

    def on_optimiser(self, optimiser: Any) -> None:
        parameters = [one for group in optimiser.param_groups for one in group["params"]]
        seen = self.optimisers.get(id(optimiser))
        if seen is None or len(seen.parameters) != len(parameters):
            seen = self._first_update(optimiser, parameters, names_of(parameters))
        self._updated(seen, 1, optimiser)

    def _first_update(self, owner: Any, parameters: list[Any], names: list[str]) -> Optimiser:
        known = self.optimisers.get(id(owner))
        seen = self.optimisers[id(owner)] = Optimiser(owner, len(self.optimisers), parameters, names)
        if known is not None:
            seen.number, seen.updates = known.number, known.updates
        seen_names = [{"name": name, "shape": list(one.shape)} for name, one in zip(names, parameters)]
        self._lines.append(f"P {seen.number} {as_json(seen_names)}")
        _, words = self._made.pop(id(owner), (None, ()))
        if known is None and len(words) == len(parameters):
            self._note(f"U {seen.number} 0 0", 0, list(words))
            if self.order.look_at == f"U {seen.number} 0":
                self._end()
        return seen

    def _updated(self, seen: Optimiser, updates: int, optimiser: Any = None) -> None:
        seen.updates += updates
        key = f"U {seen.number} {seen.updates}"
        self._note(f"{key} {updates}", self._where(), self._all(seen.parameters))
        if key == self.order.look_at and self.closeup is not None:
            self.closeup.keep_update(self.order.look_for, seen.names, seen.parameters, optimiser)
            self._end()
        self._look_ahead()

    def _all(self, parameters: list[Any]) -> list[str]:
        return [fingerprint(one, self.order.near) for one in parameters]

    def _hook_learner(self, name: str) -> Callable[[ModuleType], None]:
        def arrive(module: ModuleType) -> None:
            learner = getattr(module, name)
            update = learner.update

            def counted(one: Any, *args: Any, **keywords: Any) -> Any:
                if id(one) not in self.optimisers:
                    named = list(one.network.named_parameters())
                    self._made[id(one)] = one, self._all([parameter for _, parameter in named])
                before = one.updates
                result = update(one, *args, **keywords)
                if not self.watch.over and self.watch.in_recorder:
                    self._learner_updated(one, one.updates - before)
                return result

            learner.update = counted

        return arrive

    def _learner_updated(self, learner: Any, updates: int) -> None:
        try:
            seen = self.optimisers.get(id(learner))
            if seen is None:
                parameters = [one for _, one in learner.network.named_parameters()]
                seen = self._first_update(learner, parameters, names_in(learner.network))
            if updates:
                self._updated(seen, updates)
        except Exception as error:
            self.watch.give_up("a learner's update", error)

    def _look_ahead(self) -> None:
        """Tell the close-up whether the next event may be the one that it waits for."""
        if self.closeup is None:
            return
        kind, *numbers = self.order.look_at.split()
        if kind == "U":
            owner = next((one for one in self.optimisers.values() if one.number == int(numbers[0])), None)
            done = owner.updates if owner is not None else 0
        else:
            seen = next((one for one in self.envs.values() if 0 <= int(numbers[0]) - one.first < len(one.steps)), None)
            done = seen.steps[int(numbers[0]) - seen.first] if seen is not None else 0
        self.closeup.next_event(close=done >= int(numbers[1]) - 1)

    def _where(self) -> int:
        """The number of the innermost line of the user's own, or of a library's where there is none."""
        frame: Any = sys._getframe(1)
        library = None
        for _ in range(DEEPEST):
            if frame is None:
                break
            whose = self.places.whose(frame.f_code)
            if whose == USER:
                return self._number_of_place(frame)
            if whose == LIBRARY and library is None:
                library = frame
            frame = frame.f_back
        return 0 if library is None else self._number_of_place(library)

    def _number_of_place(self, frame: Any) -> int:
        at = (frame.f_code, frame.f_lasti)
        number = self._places.get(at)
        if number is None:
            number = self._places[at] = len(self._places) + 1
            place = self.places.where(frame.f_code.co_filename, line_of(frame.f_code, frame.f_lasti))
            self._lines.append(f"L {number} {place}")
        return number

    def _note(self, key: str, where: int, words: list[str]) -> None:
        self._lines.append(f"{key} {where} {' '.join(words)}")
        if len(self._lines) >= AT_ONCE and not self.marks:
            self._flush()

    def _flush(self) -> None:
        if not self.watch.in_recorder or self.marks:
            return
        lines, self._lines = self._lines, []
        if lines:
            with open_file(self.order.lines, "a") as file:
                file.write("\n".join(lines) + "\n")

    def _end(self) -> None:
        self._due = True
        self.end_where_due()

    def end_where_due(self) -> None:
        if self._due and not self.marks:
            self._flush()
            self.watch.end_here()

    def stop(self) -> None:
        self.marks = []
        self._flush()

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["env_steps"] = self.env_steps
        trace["optimisers"] = len(self.optimisers)
        trace["workers"] = self.workers
        trace["torch"] = "torch" in sys.modules
        trace["others"] = [name for name in OTHER_LEARNERS if name in sys.modules]
