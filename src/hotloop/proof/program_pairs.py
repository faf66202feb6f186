"""Two programs held equal: both run unmodified with the same arguments, and everything that they compute is compared.

Hashes first. Where they differ, both run again to that point: that shows whether each of them repeats itself, and keeps
what led there. Only programs that are the same are timed, interleaved and without fingerprints.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from hotloop.core.errors import SettingsError
from hotloop.doctor.script.interpreter import choose_interpreter
from hotloop.proof.program_gaps import gaps
from hotloop.proof.program_judgement import Judgement, judge
from hotloop.proof.program_rounding import LARGEST, OF_WAY, RULE
from hotloop.proof.program_runs import FOREVER, Followed, RecordedProgram, RunPace, follow, pace
from hotloop.proof.program_words import Before, closer, sentence
from hotloop.proof.programs import EnvCall, ProgramRecording, renamed
from hotloop.proof.speed import Speed
from hotloop.proof.verdict import PairCost, Proof

Say = Callable[[str], None]
TIMING_SECONDS, MOST_ROUNDS = 60.0, 5
"""All rounds together take about so long, where their number was not given."""
CLOCKS = {"processor": "processor time, children included", "wall": "on the wall"}


def prove_programs(
    plain: str | Path,
    fast: str | Path,
    arguments: str | Sequence[str] = (),
    *,
    tolerance: float | None = None,
    env_steps: int | None = None,
    seconds: float | None = None,
    rounds: int | None = None,
    python: str | Path | None = None,
    in_place: bool = False,
    say: Say = lambda _: None,
) -> Proof:
    """What `hotloop.prove` does with two scripts: every env call and every update; then their time interleaved."""
    if tolerance is not None and tolerance < 0:
        raise SettingsError(f"tolerance is {tolerance}, expected 0 or more")
    words = tuple(shlex.split(arguments)) if isinstance(arguments, str) else tuple(arguments)
    programs = []
    for path in (Path(plain), Path(fast)):
        if not path.is_file():
            raise SettingsError(f"there is no script at {path}", "give the path of a Python file")
        programs.append(path)
    chosen = choose_interpreter(python).path
    both = [
        RecordedProgram(
            path=path,
            arguments=words,
            python=chosen,
            env_steps=env_steps,
            seconds=seconds or FOREVER,
            in_place=in_place,
        )
        for path in programs
    ]
    return _ProgramCheck((both[0], both[1]), tolerance, say).run(rounds)


class _ProgramCheck:
    def __init__(self, programs: tuple[RecordedProgram, RecordedProgram], tolerance: float | None, say: Say) -> None:
        self.programs, self.tolerance, self.say = programs, tolerance, say
        names = programs[0].name, programs[1].name
        self.names = names if names[0] != names[1] else ("plain", "fast")
        self.notes: list[str] = []

    def run(self, rounds: int | None) -> Proof:
        plain, fast = (self._follow(place) for place in (0, 1))
        recordings = self._aligned(plain, fast)
        judgement = judge(*recordings, self.tolerance)
        self._note_unseen(plain, fast)
        proof = replace(self._proof(judgement, recordings), rounding=not judgement.identical)
        if judgement.ending == "same" and not judgement.identical and self.tolerance is None:
            found = self._looked_at_again(judgement, recordings, proof, (plain, fast))
            if found.verdict != "to rounding":
                return found
        if judgement.ending == "same":
            left_out = tuple(gaps(recordings, (plain.data, fast.data), self.names))
            if left_out:
                return replace(proof, not_compared=left_out, notes=tuple(self.notes))
            return replace(proof, cost=self._timed(rounds, (plain, fast)), notes=tuple(self.notes))
        if judgement.event is None or judgement.other is None:
            assert judgement.difference is not None
            words = sentence(judgement, judgement.difference, self.names, ())
            return replace(proof, words=words, difference=judgement.difference)
        return self._looked_at_again(judgement, recordings, proof, (plain, fast))

    def _follow(self, place: int, **more: Any) -> Followed:
        program = self.programs[place]
        purpose = "what led there" if more else "what it computes"
        self.say(f"{program.name}: {purpose}")
        return follow(program, near=self.tolerance != 0, **more)

    def _aligned(self, plain: Followed, fast: Followed) -> tuple[ProgramRecording, ProgramRecording]:
        recording, by_order = renamed(plain.recording, fast.recording)
        if by_order:
            self.notes.append("parameters have other names in the two programs and are matched by order and shape")
        return plain.recording, recording

    def _proof(self, judgement: Judgement, recordings: tuple[ProgramRecording, ProgramRecording]) -> Proof:
        """Of what was compared and the same; the verdict is yet to come."""
        found: dict[str, Any] = {"env steps": judgement.env_steps, "updates": judgement.updates}
        if self.tolerance != 0:
            found["tolerance"] = RULE if self.tolerance is None else self.tolerance
            found["largest error"] = f"{judgement.largest_error:.2g}"
        found["made in all"] = {
            name: {"env_steps": one.env_steps, "updates": one.num_updates()}
            for name, one in zip(("plain", "fast"), recordings, strict=True)
        }
        plain, fast = (shlex.join([str(one.path), *one.arguments]) for one in self.programs)
        return Proof("programs", fast, plain, fast, None, found, tuple(self.notes))

    def _note_unseen(self, plain: Followed, fast: Followed) -> None:
        for name, one in zip(self.names, (plain, fast), strict=True):
            workers = one.data.get("workers", 0)
            if workers:
                self.notes.append(
                    f"{name} started {workers} worker process{'es' * (workers > 1)}: what they did was not seen,"
                    " only env calls and updates of the program's own process"
                )
            if not one.recording.updates and one.recording.env_calls:
                why = "no optimizer step of PyTorch's was seen" if one.data.get("torch") else "it uses no PyTorch"
                self.notes.append(f"{name}: {why}; only its env calls were compared")
            if any(update.count > 1 for update in one.recording.updates):
                self.notes.append(f"{name} makes several updates in one call: only the last of each was compared")

    def _looked_at_again(
        self,
        judgement: Judgement,
        recordings: tuple[ProgramRecording, ProgramRecording],
        proof: Proof,
        first: tuple[Followed, Followed],
    ) -> Proof:
        """Where they part; where no tolerance was given, where the first bit differs, unless rounding ends them.

        Of two that are the same to rounding the gradient there must be too: Adam forgets by what it was multiplied.
        """
        beyond = judgement
        if self.tolerance is None and judgement.ending != "rounding":
            judgement = judge(*recordings)
        assert judgement.event is not None
        assert judgement.difference is not None
        name = judgement.difference.what
        looks = []
        for place in (0, 1):
            look = self._follow(
                place, look_at=judgement.event.key, look_for=self._own_name(name, recordings, first, place)
            )
            if changes := self._changes(place, first[place], look):
                return replace(proof, not_compared=changes, words=f"not comparable: {'; '.join(changes)}")
            looks.append(look)
        rounding = OF_WAY if self.tolerance is None else self.tolerance
        before = Before(looks[0].closeup, looks[1].closeup, rounding, self.names)
        if judgement.ending == "rounding":
            is_choice = (
                isinstance(judgement.event, EnvCall) and name == "action" and judgement.difference.plain[:1] != "#"
            )
            if not is_choice or before.is_near_tie(*_actions(judgement)):
                return replace(proof, not_compared=_from_there_on(judgement), notes=tuple(self.notes))
        if beyond.ending == "same" and not before.gradients_differ():
            return proof
        difference = closer(judgement, looks[0].closeup, looks[1].closeup)
        exact = Before(looks[0].closeup, looks[1].closeup, self.tolerance or 0.0, self.names)
        clues = exact.clues(judgement, recordings)
        if beyond.event is not None and beyond.event.key != judgement.event.key and beyond.difference is not None:
            clues.append(f"by more than rounding does: `{beyond.difference.what}` {beyond.difference.when}")
        return replace(proof, difference=difference, words=sentence(judgement, difference, self.names, clues))

    def _own_name(
        self,
        name: str,
        recordings: tuple[ProgramRecording, ProgramRecording],
        first: tuple[Followed, Followed],
        place: int,
    ) -> str:
        """What the program itself calls a parameter that goes by the plain one's name."""
        if place == 0:
            return name
        for number, parameters in first[1].recording.parameters.items():
            theirs, mine = [one.name for one in parameters], recordings[0].parameters.get(number, ())
            if name not in theirs and name in [one.name for one in mine] and len(mine) == len(theirs):
                return theirs[[one.name for one in mine].index(name)]
        return name

    def _changes(self, place: int, first: Followed, again: Followed) -> tuple[str, ...]:
        """How a program that does not repeat itself does so: it cannot be held against another. One that draws without
        a seed may have drawn alike by chance as far as this look went."""
        found = judge(again.recording, first.recording)
        if found.event is None and again.data.get("unseeded"):
            found = judge(self._follow(place).recording, first.recording)
        if found.event is None:
            return ()
        drawn = {one["what"]: one for one in reversed(again.data.get("unseeded", ()))}
        where = "; ".join(
            f"{one['what']} draws without a seed at {one['where']}: set `{one['remedy']}`"
            for one in list(drawn.values())[::-1]
        )
        unknown = "a seed from the clock, threads, or the order of a set may be why; no unseeded generator was seen"
        assert found.difference is not None
        return (
            f"{self.programs[place].name} does not repeat itself with the same arguments: in a second run"
            f" `{found.difference.what}` differs {found.difference.when}",
            where or unknown,
        )

    def _timed(self, rounds: int | None, followed: tuple[Followed, Followed]) -> PairCost | None:
        """From the first env step to the end, interleaved: processor time, children included, and time on the wall."""
        if rounds is None:
            once = sum(float(one.data.get("seconds", 0.0)) for one in followed)
            rounds = max(1, min(MOST_ROUNDS, int(TIMING_SECONDS / max(once, 1e-9))))
        if rounds and not all(one.recording.env_steps for one in followed):
            self.notes.append("not timed: no env step was seen from which to take the time")
            return None
        if not rounds:
            return None
        steps = min(one.recording.env_steps for one in followed)
        limited = any(one.recording.limited for one in followed)
        programs = [replace(one, env_steps=steps if limited else None, seconds=FOREVER) for one in self.programs]
        times: list[dict[int, RunPace]] = []
        for number in range(rounds):
            self.say(f"timing, round {number + 1} of {rounds}")
            turn = (0, 1) if number % 2 == 0 else (1, 0)
            times.append({place: pace(programs[place]) for place in turn})
        by_processor = all(one.children_counted for both in times for one in both.values())
        clock = "processor" if by_processor else "wall"
        ratios = sorted(one[0].seconds(clock) / one[1].seconds(clock) for one in times)
        seconds = [median(one[place].seconds(clock) for one in times) / steps for place in (0, 1)]
        speed = Speed(median(ratios), ratios[0], ratios[-1], seconds[0], seconds[1])
        wall = median(one[0].wall / one[1].wall for one in times)
        return PairCost(speed, "env step", rounds=rounds, wall_ratio=wall, clock=CLOCKS[clock])


def _actions(judgement: Judgement) -> tuple[int | None, int | None]:
    said = judgement.difference
    assert said is not None
    plain, fast = (int(text) if text.lstrip("-").isdigit() else None for text in (said.plain, said.fast))
    return plain, fast


def _from_there_on(judgement: Judgement) -> tuple[str, str]:
    """What may be rounding led two programs apart; what would decide more."""
    event, said = judgement.event, judgement.difference
    assert event is not None
    assert said is not None
    if isinstance(event, EnvCall) and said.what == "action":
        why = f"{said.when} near-equal values led to another action ({said.plain} and {said.fast})"
    else:
        why = f"{said.when} what began as rounding has grown to more than {LARGEST:g} (`{said.what}`)"
    ends = f"`--env-steps {event.step - 1}`" if isinstance(event, EnvCall) and event.step > 1 else "fewer `--env-steps`"
    return (
        f"{why}, and what follows was not compared",
        f"{ends} proves up to there, `hotloop compare` judges what they learn",
    )
