"""What a search knows, in `study.db` of its folder: trials, their scores on the way and at the end."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.core.extras import need
from hotloop.core.rng import derive_seed
from hotloop.runs.files import SCHEMA, canonical_json
from hotloop.tuning.space import Dimension, of_preset

DATABASE = "study.db"
FIRST_UNPRUNED = 4
"""So many trials end by themselves before any is pruned: a median needs something to stand on."""


@dataclass(frozen=True)
class StudyPlan:
    """What is searched, and how a trial is judged."""

    source: str
    words: tuple[str, ...]
    settings: Mapping[str, Any]
    dimensions: Sequence[Dimension]
    seeds: int
    measure: str
    prune: bool
    folder: Path

    def identity(self) -> dict[str, Any]:
        """What must be the same for a search to be continued."""
        tree = {name: value for name, value in self.settings.items() if name not in ("run_dir", "trust", "seed")}
        return {
            "settings": tree,
            "search": [repr(dimension) for dimension in self.dimensions],
            "seeds": self.seeds,
            "measure": self.measure,
        }

    def default_folder(self) -> Path:
        """The same for the same search, so that the same command continues what was stopped."""
        mark = hashlib.sha256(canonical_json(self.identity())).hexdigest()[:8]
        return Path("runs") / f"tune-{Path(self.source).stem}-{mark}"

    def run_path(self, number: int, seed: int) -> Path:
        return self.folder / f"trial-{number:04d}" / f"seed-{seed}"


def open_study(plan: StudyPlan) -> Any:
    """Made, or found and continued. Its first trial is the preset as it is, where the search contains it.

    The database may come from elsewhere. Tables hold numbers and JSON; the only things that optuna unpickles are
    snapshots of its journal storage and states of its CMA-ES sampler, and neither is used here.
    """
    (optuna,) = need("tune", "searching", "optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with _readable(plan.folder / DATABASE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features that may still change
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{plan.folder / DATABASE}", engine_kwargs={"connect_args": {"timeout": 60}}
        )
        study = optuna.create_study(storage=storage, study_name="tune", direction="maximize", load_if_exists=True)
        # a search that continues must not draw the first trials again
        seed = derive_seed(0, "tune", len(study.get_trials(deepcopy=False))) % 2**32
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=FIRST_UNPRUNED, n_warmup_steps=2)
    study.pruner = pruner if plan.prune else optuna.pruners.NopPruner()
    _require_same(study, plan)
    return study


@contextlib.contextmanager
def _readable(database: Path) -> Iterator[None]:
    """A file that is no study of optuna's is refused in a sentence, and one elsewhere is not written to."""
    (optuna, sqlalchemy) = need("tune", "searching", "optuna", "sqlalchemy")
    if database.is_symlink():
        raise RunError(f"{database} is a symbolic link, expected a file", "choose another `--storage`")
    try:
        yield
    except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.DatabaseError) as error:
        reason = str(getattr(error.__cause__ or error, "orig", None) or error).splitlines()[0]
        raise RunError(f"{database} cannot be used as a study: {reason}", "choose another `--storage`") from None


def _require_same(study: Any, plan: StudyPlan) -> None:
    identity, found = plan.identity() | {"schema": SCHEMA}, study.user_attrs.get("identity")
    if found is None:
        study.set_user_attr("identity", identity)
        preset = of_preset(plan.dimensions, plan.settings)
        if preset is not None:
            study.enqueue_trial(preset, user_attrs={"preset": True})
        return
    names = [name for name, value in identity.items() if found.get(name) != value]
    if names:
        raise RunError(
            f"{plan.folder} holds another search: its {', '.join(names)} differ", "choose another `--storage`"
        )


def close_study(study: Any) -> None:
    storage = getattr(study._storage, "_backend", study._storage)  # optuna wraps it in a cache
    storage.remove_session()
    storage.engine.dispose()


def states() -> Any:
    (optuna,) = need("tune", "searching", "optuna")
    return optuna.trial.TrialState
