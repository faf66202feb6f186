"""What a cluster costs: `python -m tests.scale.overhead [RUNS]` trains short runs here and on a Ray cluster of the same
cores, and tells start-up, overhead, bytes for each run, and how many runs at once one driver can feed."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from hotloop.comparison.arms import parse_arms
from hotloop.comparison.jobs import plan_jobs, run_jobs
from hotloop.core.arithmetic import arithmetic
from hotloop.doctor.facts import usable_cores
from hotloop.scale.cluster import cluster
from hotloop.scale.local import LocalPlace
from hotloop.scale.ray_place import RayPlace

SHORT = [
    *("--total-env-steps", "5000", "--evaluation.every", "1000", "--evaluation.episodes", "5"),
    *("--evaluation.final-episodes", "10", "--checkpoint.every", "1000"),
]


def trained(folder: Path, place: Any, runs: int) -> tuple[float, float]:
    """Seconds, and processor seconds of this process alone."""
    jobs = plan_jobs(parse_arms(["a=cartpole-dqn"], SHORT), runs, folder)
    wall, own = time.monotonic(), psutil.Process().cpu_times()
    run_jobs(jobs, place, lambda: None)
    used = psutil.Process().cpu_times()
    assert [job.error for job in jobs] == [""] * runs
    return time.monotonic() - wall, used.user + used.system - own.user - own.system


def digests(folder: Path) -> list[str]:
    return [json.loads(path.read_text())["digest"] for path in sorted(folder.glob("a/*/result.json"))]


def main(runs: int) -> None:
    cores = usable_cores()
    arithmetic()  # PyTorch is loaded by whoever drives: not a part of what a cluster costs
    with tempfile.TemporaryDirectory(prefix="hotloop-overhead-") as name:
        base = Path(name)
        local, _ = trained(base / "local", LocalPlace(cores), runs)
        began = time.monotonic()
        with cluster("ray", cores) as found:
            started = time.monotonic() - began
            place = RayPlace(found, cores, trust=False, mixed=False, say=print)
            shaken = time.monotonic() - began - started
            seconds, driver = trained(base / "ray", place, runs)
        ended = time.monotonic() - began - started - shaken - seconds
        assert digests(base / "local") == digests(base / "ray")
        shipped = sum(place.bytes.values()) / runs
        busy = driver / (seconds * min(cores, runs))  # of the driver's core, for each run that is under way
        print(f"{runs} runs of 5,000 env steps on {cores} cores: local {local:.1f} s, Ray {seconds:.1f} s")
        print(f"overhead {seconds / local:.2f}x, {(seconds - local) * cores / runs:.2f} s of a core for each run")
        print(f"cluster: started in {started:.1f} s, handshake {shaken:.1f} s, ended in {ended:.1f} s")
        print(f"shipped home: {shipped / 1e3:,.0f} kB for each run")
        print(
            f"driver: {1e3 * driver / runs:.0f} ms of a core for each run, {100 * busy:.2f} % of it while one goes on"
        )
        print(f"so one driver feeds about {0.7 / busy:,.0f} such runs at once, at seven tenths of its core")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
