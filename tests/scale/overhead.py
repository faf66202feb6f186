"""What a cluster costs: `python -m tests.scale.overhead [RUNS]` trains short runs here and on a Ray cluster of the same
cores (here, there, there, here), then long ones, and tells start-up, overhead, bytes, and how many runs at once one
driver can feed.

The driver's processor time is a cost for each run (submitting it), one for each second of a run (signs of life, event
rows) and one for each megabyte that comes home (checkpoints): three loads, each mostly one of the three, give all.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
LONG = ["--total-env-steps", "2M", "--checkpoint.every", "2M"]
SAVING = ["--total-env-steps", "200k", "--checkpoint.every", "10k"]
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
        local = [trained(base / "local", LocalPlace(cores), runs, SHORT)]
        began = time.monotonic()
        with cluster("ray", cores) as found:
            started = time.monotonic() - began
            place = RayPlace(found, cores, trust=False, mixed=False, say=print)
            shaken = time.monotonic() - began - started
            short = [trained(base / f"ray-{turn}", place, runs, SHORT) for turn in range(2)]
            long = trained(base / "long", place, cores, LONG)
            saving = trained(base / "saving", place, cores, SAVING)
            ending = time.monotonic()
        ended = time.monotonic() - ending
        local.append(trained(base / "local-again", LocalPlace(cores), runs, SHORT))
        assert digests(base / "local") == digests(base / "ray-0") == digests(base / "ray-1")
    print(f"{runs} runs of 5,000 env steps on {cores} cores, interleaved:")
    for turn, (here, there) in enumerate(zip(local, short, strict=True), 1):
        more = (there.seconds - here.seconds) * cores / runs
        ratio = there.seconds / here.seconds
        both = f"local {here.seconds:.1f} s, Ray {there.seconds:.1f} s"
        print(f"  {turn}. {both}: {ratio:.2f}x, {more:.2f} s of a core for each run")
    print(f"cluster: started in {started:.1f} s, handshake {shaken:.1f} s, ended in {ended:.1f} s")
    tell_model({"short": short[1], "long": long, "often saved": saving})


def tell_model(loads: dict[str, Load]) -> None:
    """driver = per_run * runs + per_second * run_seconds + per_byte * bytes, for all three loads."""
    for name, load in loads.items():
        seconds, sent, spent_by_driver = (value / load.runs for value in (load.run_seconds, load.bytes, load.driver))
        each = f"{sent / 1e3:,.0f} kB sent home by each; driver {1e3 * spent_by_driver:.0f} ms of a core for each"
        print(f"{name} runs of {seconds:.1f} s: {each}")
    known = np.array([(load.runs, load.run_seconds, load.bytes / 1e6) for load in loads.values()])
    spent = np.array([load.driver for load in loads.values()])
    per_run, per_second, per_megabyte = np.linalg.solve(known, spent)
    costs = f"{1e3 * per_run:.0f} ms of a core for each run, {1e3 * per_second:.1f} ms for each second of one"
    print(f"driver: {costs}, {1e3 * per_megabyte:.1f} ms for each megabyte that comes home")
    for minutes, megabytes in ((1, 1), (1, 20), (60, 20), (60, 1000)):
        busy = (per_run + per_megabyte * megabytes) / (60 * minutes) + per_second
        fed = f"one driver feeds about {SHARE / busy:,.0f} at once, at {SHARE:.0%} of its core"
        print(f"runs of {minutes} min that send {megabytes} MB: {fed}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
