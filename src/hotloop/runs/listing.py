"""The runs under a folder at a glance, from plain files only: small ones whole, events by their tail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.runs import lock
from hotloop.runs.directory import ABOUT, LOCK, RESULT, Run, is_run
from hotloop.runs.events import last_events


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a listing; None where the run's files do not say."""

    path: Path
    label: str
    env: str | None
    algorithm: str | None
    status: str  # "finished", "running" (its lock is held) or "stopped"
    env_steps: int | None
    mean_return: float | None
    started: str | None  # ISO 8601


def list_runs(root: Path) -> list[RunSummary]:
    """All runs directly under `root`, oldest first. A damaged one is listed with what can still be read."""
    if not root.is_dir():
        return []
    summaries = [summarize(path) for path in root.iterdir() if is_run(path)]
    return sorted(summaries, key=lambda summary: (summary.started or "", summary.path.name))


def summarize(path: Path) -> RunSummary:
    run = Run(path)
    about, settings, result = _or_empty(run.read_json, ABOUT), _or_empty(run.settings), {}
    if run.finished:
        result = _or_empty(run.read_json, RESULT)
    rows: list[Mapping[str, Any]] = []
    with suppress(RunError):
        rows = [*last_events(run.events)]
    evaluation = result.get("evaluation")
    return RunSummary(
        path=path,
        label=_text(about.get("label")) or path.name,
        env=_name_of(settings.get("env")),
        algorithm=_name_of(settings.get("algorithm")),
        status=_status(run),
        env_steps=_last_number([*rows, result], "env_steps", int),
        mean_return=_last_number([*rows, evaluation if isinstance(evaluation, dict) else {}], "mean_return", float),
        started=_text(about.get("started")),
    )


def _status(run: Run) -> str:
    if lock.is_held(run.path / LOCK):
        return "running"
    return "finished" if run.finished else "stopped"


def _or_empty(read: Callable[..., dict[str, Any]], *arguments: str) -> dict[str, Any]:
    with suppress(RunError):
        return read(*arguments)
    return {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _name_of(value: Any) -> str | None:
    """`env = "snake"`, or a table `[env]` with an `id` or a `name`."""
    if isinstance(value, dict):
        value = value.get("id", value.get("name"))
    return _text(value)


def _last_number(rows: Iterable[Mapping[str, Any]], key: str, kind: type) -> Any:
    values = [row[key] for row in rows if isinstance(row.get(key), int | float) and not isinstance(row[key], bool)]
    return kind(values[-1]) if values else None
