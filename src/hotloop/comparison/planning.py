"""The runs of a comparison as a list of jobs, for machines that this one does not start anything on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.comparison.arms import parse_arms
from hotloop.comparison.jobs import plan_jobs
from hotloop.core.arithmetic import arithmetic
from hotloop.core.errors import SettingsError
from hotloop.core.overrides import Overrides, as_argv
from hotloop.runs.files import make_folder
from hotloop.scale.joblist import ListedJob, default_out, make_list, write_list


@dataclass(frozen=True)
class Planned:
    file: Path
    folder: Path
    jobs: int
    left: list[int]
    """Those that are not finished."""
    trust: bool
    """Whether a job runs code of the user's own."""

    def as_data(self) -> dict[str, Any]:
        return {"list": str(self.file), "folder": str(self.folder), "jobs": self.jobs, "left": self.left}

    def words(self) -> str:
        where = "" if self.folder == default_out(self.file) else f" --out {self.folder}"
        options = f"{where}{' --trust' if self.trust else ''}"
        return (
            f"{self.file}: {self.jobs} jobs, {self.jobs - len(self.left)} finished. "
            f"`hotloop job run {self.file} --index N{options}` does one (N from 0 to {self.jobs - 1}), anywhere; once "
            f"all runs are in {self.folder}, the same command compares them"
        )


def plan_compare(
    arms: Sequence[str],
    *,
    seeds: int | None,
    overrides: Overrides,
    file: str | Path,
    out: str | Path | None,
    command: str,
    until_sure: bool = False,
    scores: str | None = None,
    trust: bool = False,
    **how_it_is_judged: object,
) -> Planned:
    """Write the list; the same command writes the same list. How runs are judged is asked once they are there."""
    file = Path(file)
    if until_sure:
        raise SettingsError("`--until-sure` looks at runs before it plans others, which a list cannot", "leave it out")
    parsed = parse_arms(arms, as_argv(overrides), scores, trust)
    if seeds is None or any(arm.runs for arm in parsed):
        raise SettingsError(
            "`--plan` lists runs to train, which needs `--seeds N` and arms that are not finished runs",
            "compare finished runs without it",
        )
    folder = Path(out) if out else default_out(file)
    jobs = plan_jobs(parsed, seeds, folder)
    listed = [
        ListedJob(index, job.name, job.path.relative_to(folder).as_posix(), job.spec())
        for index, job in enumerate(jobs)
    ]
    make_folder(file.parent)
    write_list(make_list(listed, arithmetic(), command), file)
    left = [index for index, job in enumerate(jobs) if job.status != "finished"]
    return Planned(file, folder, len(jobs), left, any(job.spec["roots"] for job in listed))
