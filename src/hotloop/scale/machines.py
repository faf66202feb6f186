"""The machines of a Ray cluster: each says how it rounds before it gets a run, and which of them may take part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.core.arithmetic import arithmetic, differences
from hotloop.core.errors import RunError
from hotloop.scale import node

_HANDSHAKE_SECONDS = 300.0


@dataclass
class Machine:
    name: str
    differs: list[str]
    unable: bool = False
    """It could not be asked: it has no hotloop, or is gone."""
    faulty: bool = False
    """Something went wrong there that was the machine's fault."""


class Machines:
    """Asked when they are seen first. RunError where none may take part from the start."""

    def __init__(self, ray: Any, mixed: bool, say: Callable[[str], None]) -> None:
        self._ray, self._mixed, self._say = ray, mixed, say
        self._known: dict[str, Machine] = {}
        said = self._shake_hands()
        if not self.usable():
            raise RunError(
                "; ".join(said) or "no machine of the cluster has a core to train with",
                "make the machines alike, or pass `--mixed`" if said else "`ray start --address ...` on one that has",
            )
        for text in said:
            say(text)

    def _shake_hands(self) -> list[str]:
        """One that differs is refused by name, or told with `mixed`."""
        there = self._there()
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        ask = self._ray.remote(num_cpus=0, max_retries=2)(node.facts)
        new = [key for key in there if key not in self._known]
        asked = {key: ask.options(scheduling_strategy=strategy(key, soft=False)).remote() for key in new}
        said = []
        for key, answer in asked.items():
            name = node.name_of(there[key]["NodeManagerHostname"], key)
            try:
                facts = self._ray.get(answer, timeout=_HANDSHAKE_SECONDS)
            except Exception as error:  # whatever it is, it is told in a sentence
                facts = {"error": last_line(error)}
            unable = "error" in facts
            differs = [str(facts["error"])] if unable else differences(arithmetic(), facts)
            self._known[key] = Machine(name, differs, unable)
            if differs and key in self._there():
                verb = "takes part all the same" if self._mixed and not unable else "cannot take part"
                said.append(f"{name} {verb}: {'; '.join(differs)}")
        return said

    def _there(self) -> dict[str, Any]:
        """Those that are there and can train."""
        return {one["NodeID"]: one for one in self._ray.nodes() if one["Alive"] and one["Resources"].get("CPU", 0) >= 1}

    def find(self, key: str) -> Machine | None:
        """The one that a run has begun on, which may have joined just now; None where it may not take part."""
        if key not in self._known:
            for text in self._shake_hands():
                self._say(text)
        return self._known[key] if key in self.usable() else None

    def usable(self) -> list[str]:
        there = self._there()
        return [key for key, one in self._known.items() if key in there and not one.faulty and self._may(one)]

    def barred(self) -> list[str]:
        """Those that get no run. Rather a machine that has failed before than none at all."""
        if not self.usable():
            for one in self._known.values():
                one.faulty = False
        return [key for key, one in self._known.items() if one.faulty or not self._may(one)]

    def _may(self, one: Machine) -> bool:
        return not one.unable and (self._mixed or not one.differs)

    def cores(self) -> int:
        there, usable = self._there(), self.usable()
        return max(1, sum(int(one["Resources"]["CPU"]) for key, one in there.items() if key in usable))

    @property
    def differing(self) -> dict[str, list[str]]:
        """Machines that took part although they round in another way."""
        return {one.name: one.differs for one in self._known.values() if one.differs and not one.unable}


def last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
