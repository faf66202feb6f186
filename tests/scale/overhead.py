"""What a cluster costs: `python -m tests.scale.overhead [RUNS]` trains short runs here and on a Ray cluster of the same
cores, then a long one on each core, and tells start-up, overhead, bytes, and how many runs at once one driver can feed.

The driver's processor time is a cost for each run (submitting it, its files and checkpoints) and one for each second of
a run (signs of life, event rows): two loads of which one is nearly all runs, the other nearly all seconds, give both.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass
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
LONG = [*("--total-env-steps", "200k", "--checkpoint.every", "20k")]
SHARE = 0.7
"""Of a core that a driver may be busy, so that nobody waits for it."""


@dataclass(frozen=True)
class Load:
    runs: int
    seconds: float
    driver: float
    """Processor seconds of this process alone."""
    run_seconds: float
    """Of all runs together, from their first row to their last."""
    bytes: int


def trained(folder: Path, place: Any, runs: int, words: list[str]) -> Load:
    jobs = plan_jobs(parse_arms(["a=cartpole-dqn"], words), runs, folder)
    wall, own = time.monotonic(), psutil.Process().cpu_times()
    run_jobs(jobs, place, lambda: None)
    used = psutil.Process().cpu_times()
    assert [job.error for job in jobs] == [""] * runs
    went = sum(json.loads((job.path / "result.json").read_text())["seconds"] for job in jobs)
    sent = sum(place.bytes[job.name] for job in jobs) if isinstance(place, RayPlace) else 0
    return Load(runs, time.monotonic() - wall, used.user + used.system - own.user - own.system, went, sent)


def digests(folder: Path) -> list[str]:
    return [json.loads(path.read_text())["digest"] for path in sorted(folder.glob("a/*/result.json"))]


def main(runs: int) -> None:
    cores = usable_cores()
    arithmetic()  # PyTorch is loaded by whoever drives: not a part of what a cluster costs
    with tempfile.TemporaryDirectory(prefix="hotloop-overhead-") as name:
        base = Path(name)
        local = trained(base / "local", LocalPlace(cores), runs, SHORT)
        began = time.monotonic()
        with cluster("ray", cores) as found:
            started = time.monotonic() - began
            place = RayPlace(found, cores, trust=False, mixed=False, say=print)
            shaken = time.monotonic() - began - started
            short = trained(base / "ray", place, runs, SHORT)
            long = trained(base / "long", place, cores, LONG)
            ending = time.monotonic()
        ended = time.monotonic() - ending
        assert digests(base / "local") == digests(base / "ray")
    print(f"{runs} runs of 5,000 env steps on {cores} cores: local {local.seconds:.1f} s, Ray {short.seconds:.1f} s")
    more = (short.seconds - local.seconds) * cores / runs
    print(f"overhead {short.seconds / local.seconds:.2f}x, {more:.2f} s of a core for each run")
    print(f"cluster: started in {started:.1f} s, handshake {shaken:.1f} s, ended in {ended:.1f} s")
    tell_model(short, long)


def tell_model(short: Load, long: Load) -> None:
    """driver = per_run * runs + per_second * run_seconds, for both loads."""
    scale = short.runs * long.run_seconds - long.runs * short.run_seconds
    per_run = (short.driver * long.run_seconds - long.driver * short.run_seconds) / scale
    per_second = (short.runs * long.driver - long.runs * short.driver) / scale
    for name, load in (("short", short), ("long", long)):
        each = load.run_seconds / load.runs
        print(
            f"{name} runs of {each:.1f} s: {load.bytes / load.runs / 1e3:,.0f} kB sent home by each, "
            f"{load.bytes / load.run_seconds / 1e3:,.1f} kB for each second of one; "
            f"driver {1e3 * load.driver / load.runs:.0f} ms of a core for each"
        )
    print(f"driver: {1e3 * per_run:.0f} ms of a core for each run and {1e3 * per_second:.1f} ms for each second of one")
    for minutes in (1, 10, 60):
        busy = per_run / (60 * minutes) + per_second
        print(f"runs of {minutes} min: one driver feeds about {SHARE / busy:,.0f} at once, at {SHARE:.0%} of its core")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
