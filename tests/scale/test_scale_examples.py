"""The scripts for other people's schedulers, as far as they can be run without one: a fake `sbatch`, `parallel` and
`ssh` do what the real ones do with the command, and `hotloop` notes what it is asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hotloop.comparison.jobs import plan_jobs
from hotloop.scale.joblist import ListedJob, make_list, write_list
from tests.comparison.synthetic_runs import make_arm

SCRIPTS = Path(__file__).parents[2] / "examples" / "scale"
FAKES = {
    "sbatch": """#!/bin/bash
range=${1#--array=}
shift
for i in $(seq ${range/-/ }); do SLURM_ARRAY_TASK_ID=$i bash "$@"; done
""",
    "parallel": """#!/bin/bash
while [ "$1" != hotloop ]; do shift; done
while read -r i; do "${@//\\{\\}/$i}"; done
""",
    "ssh": """#!/bin/bash
mkdir -p "$MACHINES/$1" && cd "$MACHINES/$1" && shift && HOME=$PWD exec bash -c "$*"
""",
    "ray": """#!/bin/bash
echo "$PWD ray $* mode=$RAY_AUTH_MODE" >> "$ASKED"
""",
    "hotloop": """#!/bin/bash
echo "$PWD $*" >> "$ASKED"
mkdir -p jobs/a/seed-$5
touch jobs/a/seed-$5/result.json
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a list of four jobs, and fakes first on the path."""
    for name, text in FAKES.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("MACHINES", str(tmp_path / "machines"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    jobs = plan_jobs([make_arm("a")], 4, tmp_path)
    listed = [ListedJob(i, job.name, f"a/seed-{i}", job.spec()) for i, job in enumerate(jobs)]
    (tmp_path / "home").mkdir()
    write_list(make_list(listed, {}, ""), tmp_path / "home" / "jobs.jsonl")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path


def asked(folder: Path) -> list[str]:
    return sorted(line.partition(" ")[2] for line in (folder / "asked").read_text().splitlines())


JOBS = [f"job run jobs.jsonl --index {index}" for index in range(4)]


@pytest.mark.parametrize("words", [["sbatch", "--array=0-3", "slurm.sh"], ["bash", "parallel.sh"]], ids=str)
def test_every_job_of_the_list_is_asked_for_once(words: list[str], folder: Path) -> None:
    *before, script = words
    subprocess.run([*before, str(SCRIPTS / script), "jobs.jsonl"], check=True)
    assert asked(folder) == JOBS


def test_machines_that_share_nothing_get_the_list_and_the_runs_come_home(folder: Path) -> None:
    (folder / "home" / "jobs" / "a" / "seed-9").mkdir(parents=True)  # from an earlier try
    for _ in range(2):
        subprocess.run(["bash", str(SCRIPTS / "ssh.sh"), "jobs.jsonl", "one", "two"], check=True)
        assert {path.name for path in Path("jobs/a").iterdir()} == {"seed-0", "seed-1", "seed-2", "seed-3", "seed-9"}
    assert asked(folder) == sorted(2 * JOBS)
    assert {line.split()[0].split("/")[-2] for line in (folder / "asked").read_text().splitlines()} == {"one", "two"}


def test_a_job_that_fails_stops_no_other_and_is_told(folder: Path) -> None:
    fake = folder / "bin" / "hotloop"
    fake.write_text(FAKES["hotloop"] + '[ "$5" != 1 ]\n')
    done = subprocess.run(["bash", str(SCRIPTS / "ssh.sh"), "jobs.jsonl", "one", "two"])
    assert done.returncode == 1
    assert asked(folder) == JOBS


def test_a_cluster_over_ssh_has_a_token_that_only_its_owner_can_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder / "home"))
    for deed in ("up", "up", "down"):
        subprocess.run(["bash", str(SCRIPTS / "ray.sh"), deed, "192.0.2.1", "one", "two"], check=True)
    token = folder / "home" / ".ray" / "auth_token"
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(token.read_text()) == 64
    begun = [line for line in asked(folder) if "start" in line]
    assert begun == sorted(
        2 * ["ray start --head --node-ip-address 192.0.2.1 --port 6379 --include-dashboard false mode=token"]
        + 4 * ["ray start --address 192.0.2.1:6379 mode=token"]
    )
    assert len([line for line in asked(folder) if "ray stop" in line]) == 3
