"""Where work runs: a place takes whole runs as tasks and says which of them have ended. What a task computes is not its
business, and whoever asks puts the answers in order by `index`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Task:
    """One whole run: a process that leaves a directory."""

    index: int
    name: str
    path: Path
    """Its directory, which is also where a run that was begun before is found."""
    command: tuple[str, ...] = ()
    """What does it on this machine."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The same as plain data, from which another machine makes its own command."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those that are there."""
    folder: Path | None = None
    """To run in; None is where we are."""
    proof: Callable[[], str] | None = None
    """Says what is missing of it here, empty where it is finished: an exit code of 0 is nobody's word for that."""
    keeps_output: bool = False
    """Whether what it prints belongs into its log beside what it complains of."""

    @property
    def log(self) -> Path:
        return self.path.with_suffix(".log")


@dataclass(frozen=True)
class Began:
    index: int
    where: str = ""
    """The machine's name; empty: this one."""


@dataclass(frozen=True)
class Done:
    index: int
    error: str = ""
    """What went wrong, for people; empty where nothing did."""


News = Generator[Began | Done | None, None, None]


class Place(Protocol):
    """This machine, a list of jobs, a cluster."""

    @property
    def workers(self) -> int:
        """Runs at once."""

    @property
    def elsewhere(self) -> bool:
        """Whether tasks are done from their `spec`, on machines that need not have this one's files."""

    @property
    def differing(self) -> Mapping[str, Sequence[str]]:
        """Machines that take part although they round in another way, and in what they differ."""

    def run(self, tasks: Sequence[Task]) -> News:
        """News as it comes, and None ten times a second where there is none. Whoever stops listening ends what is
        running, which saves a checkpoint first."""
