"""A worker that was lost, in words."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.errors import EnvError
from hotloop.envs.workers.process import Loss

HINT = "mend what the stack shows; `env.worker_restarts` allows more, `env.worker_timeout_seconds` longer steps"
MEMORY_HINT = "signal 9 without a sender often means that memory ran out: try fewer `env.workers` or `env.num_envs`"


@dataclass(frozen=True)
class Incident:
    """Its envs `first` .. `last`, the steps of each until then, what became of it, and its Python stack if known."""

    env_id: str
    first: int
    last: int
    steps: int
    reason: str
    stack: str

    def __str__(self) -> str:
        who = f"env {self.first}" if self.first == self.last else f"envs {self.first}-{self.last}"
        when = f"after {self.steps} steps of each env" if self.steps else "before the first step"
        return f"`{self.env_id}`: the worker process of {who} {self.reason}, {when}"

    @property
    def indented_stack(self) -> str:
        lines = self.stack.strip().splitlines()
        return "".join(f"\n    {line}" for line in lines)

    def as_error(self, addition: str) -> EnvError:
        hint = MEMORY_HINT if "SIGKILL" in self.reason else HINT
        return EnvError(f"{self}; {addition}{self.indented_stack}", hint)


def incident_of(env_id: str, rows: slice, steps: int, loss: Loss) -> Incident:
    return Incident(env_id, rows.start, rows.stop - 1, steps, loss.reason, loss.stack)
