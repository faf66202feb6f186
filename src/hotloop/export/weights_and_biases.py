"""Event rows for Weights & Biases. `WANDB_MODE=offline` and the library's other variables count as usual."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hotloop.core.errors import RunError
from hotloop.export.extras import need
from hotloop.export.follow import Once
from hotloop.runs.directory import Run

STATE = "wandb.json"
"""In the run: how far it was logged, by project."""


class WeightsAndBiases:
    """Logs into `[ENTITY/]PROJECT` under an id that follows from the run, so that logging again continues there."""

    def __init__(self, run: Run, project: str) -> None:
        (library,) = need("wandb", "logging to Weights & Biases", "wandb")
        self._run, self._project = run, project
        self._all = run.read_json(STATE).get("projects", {}) if (run.path / STATE).exists() else {}
        self.once = Once(self._all.get(project))
        about = run.read_json("run.json")
        identity = f"{about.get('label')} {about.get('started')} {run.path.name}"
        entity, _, name = project.rpartition("/")
        try:
            self._logged: Any = library.init(
                project=name,
                entity=entity or None,
                id=hashlib.sha256(identity.encode()).hexdigest()[:12],
                name=run.path.name,
                config=run.settings(),
                resume="allow",
            )
            self._logged.define_metric("*", step_metric="env_steps")
        except Exception as error:  # the library has many kinds, and asks for a key in its own way
            raise RunError(
                f"Weights & Biases did not start: {error}",
                "WANDB_MODE=offline records without a network (`wandb sync` sends it later); `wandb login` sets a key",
            ) from error

    def write(self, scalars: Mapping[str, float], env_steps: int, wall_time: float) -> None:
        self._logged.log({**scalars, "env_steps": env_steps}, step=env_steps)

    def flush(self) -> None:
        self._run.write_json(STATE, {"projects": {**self._all, self._project: self.once.reached}})

    def close(self) -> None:
        self._logged.finish()
