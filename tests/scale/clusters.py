"""Clusters of several nodes on this machine, and what is left of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from hotloop.scale.cluster import HEALTH, STORE_BYTES, Cluster, _read_environment_again
from hotloop.scale.janitor import Janitor

TINY = [
    *("--total-env-steps", "600", "--learning-starts", "100", "--batch-size", "8", "--network.hidden", "8"),
    *("--evaluation.every", "200", "--evaluation.episodes", "2", "--evaluation.final-episodes", "3"),
    *("--checkpoint.every", "200"),
]


@contextlib.contextmanager
def several_nodes(
    nodes: int, cpus: int = 1, store: int = STORE_BYTES, join: bool = True, **of_nodes: Any
) -> Iterator[tuple[Any, Cluster]]:
    """As `hotloop.scale.cluster` starts one, with more nodes, which can be killed and added. `join=False` leaves it to
    a command to join it."""
    before = dict(os.environ)
    folder = Path(tempfile.mkdtemp(prefix="hotloop-test-"))
    try:
        with Janitor(folder):
            token = folder / "token"
            token.touch(mode=0o600)
            token.write_text(secrets.token_hex(32))
            os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(token), RAY_USAGE_STATS_ENABLED="0")
            os.environ.update(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_TMPDIR=str(folder))
            (folder / "ray").mkdir()
            import ray
            from ray.cluster_utils import Cluster as SeveralNodes

            _read_environment_again()

            options = {"include_dashboard": False, "object_store_memory": store, "num_gpus": 0}
            made = SeveralNodes()
            (folder / "work").mkdir()
            made.add_node(num_cpus=0, temp_dir=str(folder / "ray"), _system_config=dict(HEALTH), **options)
            for _ in range(nodes):
                made.add_node(num_cpus=cpus, wait=False, **options, **of_nodes)
            made.wait_for_nodes()
            if join:
                ray.init(address=made.address, log_to_driver=False, logging_level="FATAL")
            try:
                yield made, Cluster(ray, folder / "work")
            finally:
                ray.shutdown()
                made.shutdown()
    finally:
        os.environ.clear()
        os.environ.update(before)


BEGUN = time.time()


def ours() -> list[psutil.Process]:
    """Those that we started, and those that lost their parents since: never a cluster of somebody else's."""
    orphans = [one for one in psutil.process_iter(["ppid", "create_time"]) if one.info["ppid"] == 1]
    return psutil.Process().children(recursive=True) + [one for one in orphans if one.info["create_time"] > BEGUN]


def words_of(process: psutil.Process) -> str:
    """Its command line or title; empty where it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def left_behind() -> list[str]:
    """Processes of a cluster, folders and shared memory."""
    names = ("raylet", "gcs_server", "ray::", "hotloop-node-", "hotloop-job-", "janitor.py")
    found = [words[:200] for words in map(words_of, ours()) if any(name in words for name in names)]
    base = Path(tempfile.gettempdir())
    folders = [path for name in ("test", "node", "ray", "job") for path in base.glob(f"hotloop-{name}-*")]
    return (
        found
        + [str(path) for path in folders if not has_owner(path)]
        + [name for name in os.listdir("/dev/shm") if "plasma" in name]
    )


def has_owner(folder: Path) -> bool:
    """Whether somebody at work holds it: another test's, since the cluster that is asked about is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return True  # gone meanwhile
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def pids_of(word: str) -> list[int]:
    """Processes of ours with this word on their command line or as their title."""
    return [process.pid for process in ours() if word in words_of(process)]
