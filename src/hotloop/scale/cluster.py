"""A Ray cluster: one of our own on this machine, started and ended by us, or one that is there already.

What Ray does by default and we do not: its token lies in a file that everybody may read, its folder is open to all, it
listens on the machine's outer address. Ours has a token in a file of mode 0600, everything in one folder of mode 0700
that a janitor removes however we end, loopback only, no dashboard, and lost nodes are noticed within seconds.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import secrets
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.core.temporary import RAYS_BASE, TemporaryFolder
from hotloop.scale.janitor import Janitor

STORE_BYTES = 128 * 2**20
HEALTH = {
    "health_check_initial_delay_ms": 1_000,
    "health_check_period_ms": 1_000,
    "health_check_timeout_ms": 1_000,
    "health_check_failure_threshold": 3,
}
"""A node that is silent for some four seconds is lost; by default Ray takes about a minute."""
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_LONGEST_FOLDER = 9  # Ray puts sockets far below, whose paths may have 107 bytes


@dataclass(frozen=True)
class Cluster:
    ray: Any
    folder: Path | None
    """Where runs are worked on; None: each node's own temporary folder."""


@contextlib.contextmanager
def cluster(on: str, workers: int) -> Iterator[Cluster]:
    """Connected to Ray for as long as it takes; the process's environment is left as it was."""
    before = dict(os.environ)
    try:
        with _own(workers) if on == "ray" else _joined(on) as found:
            yield found
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _own(workers: int) -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        base = tempfile.gettempdir()
        folder = stack.enter_context(TemporaryFolder("ray", base if len(base) <= _LONGEST_FOLDER else RAYS_BASE))
        stack.enter_context(Janitor(folder))
        token = folder / "token"
        descriptor = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
        # the last makes Ray listen on loopback: `_node_ip_address` alone is replaced by the machine's outer address
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
        os.environ.update(_QUIET | auth)
        os.environ.pop("RAY_AUTH_TOKEN", None)
        (folder / "work").mkdir(mode=0o700)
        with _connected(
            num_cpus=workers,
            num_gpus=0,
            include_dashboard=False,
            object_store_memory=STORE_BYTES,
            _temp_dir=str(folder / "ray"),  # Ray opens it to everybody; what it lies in is ours alone
            _node_ip_address="127.0.0.1",
            _system_config=dict(HEALTH),  # Ray notes in it where this cluster puts what does not fit into memory
        ) as ray:
            yield Cluster(ray, folder / "work")


@contextlib.contextmanager
def _joined(address: str) -> Iterator[Cluster]:
    os.environ.update(_QUIET)
    if os.environ.setdefault("RAY_AUTH_MODE", "token") == "token":
        _require_token()
    with _connected(address=address) as ray:
        yield Cluster(ray, None)


def _require_token() -> None:
    """There is one, and only its owner can read it."""
    if os.environ.get("RAY_AUTH_TOKEN"):
        return
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token").expanduser()
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        raise RunError(
            f"there is no token for the cluster: {path} cannot be read",
            "copy it from the machine that started the cluster, or name it in RAY_AUTH_TOKEN_PATH",
        ) from None
    if mode & 0o077:
        raise RunError(f"others can read the cluster's token {path}", f"chmod 600 {path}")


class _NoFolders(list[str]):
    """Ray would put the current folder first on the path of its workers: a file there could hide Python's own."""

    def extend(self, _: object) -> None:
        pass


@contextlib.contextmanager
def _connected(**options: Any) -> Iterator[Any]:
    import ray
    from ray.job_config import JobConfig

    options["job_config"] = JobConfig()
    options["job_config"]._py_driver_sys_path = _NoFolders()
    _read_environment_again()
    _let_raylets_speak(False)
    said: list[str] = []
    try:
        with _silence(said), _signals_left_to_us():
            ray.init(log_to_driver=False, logging_level=logging.FATAL, configure_logging=True, **options)
    except BaseException as error:
        _shut_down(ray)
        if not isinstance(error, Exception):
            raise
        raise _refused(error, options.get("address", ""), "".join(said)) from None  # whatever it is, in a sentence
    try:
        yield ray
    finally:
        _shut_down(ray)


def _shut_down(ray: Any) -> None:
    with _signals_kept():
        ray.shutdown()
    _let_raylets_speak(True)


@contextlib.contextmanager
def _signals_left_to_us() -> Iterator[None]:
    """While Ray starts: its own handler of SIGTERM ends the process with exit code 15 and no word. From where it
    connects on, when all its processes are there, signals wait until it is done: half connected, it aborts."""
    worker: Any = importlib.import_module("ray._private.worker")
    utils: Any = importlib.import_module("ray._private.utils")
    connect, install = worker.connect, utils.set_sigterm_handler

    with contextlib.ExitStack() as until_ready:

        def connect_and_keep(*arguments: Any, **named: Any) -> Any:
            until_ready.enter_context(_signals_kept())
            return connect(*arguments, **named)

        worker.connect, utils.set_sigterm_handler = connect_and_keep, lambda _: None
        try:
            yield
        finally:
            worker.connect, utils.set_sigterm_handler = connect, install


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray's C++ side takes SIGTERM as it connects, to abort, and gives it back to the system as it ends, which kills: a
    signal waits meanwhile, until our handlers are in place again. No process is started within, which would inherit
    that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ours)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _silence(said: list[str]) -> Iterator[None]:
    """Ray's C++ side writes to stderr while it connects: a refusal is one sentence of ours, not a line a second."""
    with tempfile.TemporaryFile() as nowhere:
        there = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(there, 2)
            os.close(there)
            nowhere.seek(0)
            said.append(nowhere.read().decode(errors="replace"))


def _read_environment_again() -> None:
    """Ray reads token and address once, when it is first imported or used; that may have been before we came."""
    with contextlib.suppress(ImportError, AttributeError):
        constants: Any = importlib.import_module("ray._private.ray_constants")
        inside: Any = importlib.import_module("ray._raylet")
        constants.ENABLE_RAY_CLUSTER = os.environ.get("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER") != "0"
        inside.Config.initialize("")
        inside.AuthenticationTokenLoader.instance().reset_cache()


def _let_raylets_speak(aloud: bool) -> None:
    """What they say of lost workers and nodes goes to stdout, where our data goes, `log_to_driver` or not. We say what
    was lost in our own words; this is the switch that Ray's own debugger uses."""
    with contextlib.suppress(ImportError):
        worker: Any = importlib.import_module("ray._private.worker")
        worker._worker_logs_enabled = aloud


def _refused(error: Exception, address: str, beside: str) -> RunError:
    """In a sentence; `beside` is what was written to stderr, where Ray tells of a wrong token."""
    said = " ".join(str(error).split())
    if address and ("InvalidAuthToken" in beside or "token" in said.lower() or "unauthenticated" in said.lower()):
        return RunError(
            f"the cluster at {address} refused our token", "use the token that the cluster was started with"
        )
    if "version" in said.lower() and "match" in said.lower():
        return RunError(f"the cluster at {address} has another version of Ray or Python: {said[:300]}")
    if address:
        return RunError(
            f"the cluster at {address} cannot be joined: {type(error).__name__}: {said[:300]}",
            f"this machine must be one of it: `ray start --address={address}` (`--num-cpus 0` where nothing shall run)",
        )
    return RunError(f"Ray could not be started here: {type(error).__name__}: {said[:300]}")
