"""`kill -9` leaves folders behind; the next verb of any kind removes them, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hotloop.core.temporary import SUFFIX, TemporaryFolder, remove_leftovers
from tests.reliability.test_killed_parents import SCRIPT, until

HOTLOOP = str(Path(sys.executable).with_name("hotloop"))
SLOW = "dqn --env.id CartPole-v1 --total-env-steps 100000000"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder of this process and of those it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work" / "train.py").write_text(SCRIPT)
    yield folder
    monkeypatch.setattr("tempfile.tempdir", None)


def own(folder: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[0].rpartition("-")[0] for path in folder.glob("hotloop-*"))


def plan() -> None:
    words = ["compare", f"a={SLOW}", "--seeds", "1", "--plan", "jobs.jsonl"]
    subprocess.run([HOTLOOP, *words], check=True, capture_output=True)


VERBS: dict[str, tuple[list[str], Callable[[], None], str]] = {
    "doctor": (["doctor", "--seconds", "500", "train.py"], lambda: None, "work/ready"),
    "doctor of a preset": (["doctor", "cartpole-dqn", "--seconds", "500"], lambda: None, "temporary/*/run"),
    "prove": (["prove", "--script", "train.py", "--against", "train.py"], lambda: None, "temporary/*/lines"),
    "job": (["job", "run", "jobs.jsonl", "--index", "0"], plan, "work/jobs/**/events.jsonl"),
    "dashboard": (["dashboard", ".", "--no-browser"], lambda: None, "temporary/hotloop-dashboard-*"),
}


@pytest.mark.parametrize("verb", [*VERBS])
def test_what_a_killed_verb_leaves_is_removed_by_the_next(verb, temporary, tmp_path):
    words, prepare, ready = VERBS[verb]
    prepare()
    said = tmp_path / "said"
    with said.open("wb") as log:
        killed = subprocess.Popen([HOTLOOP, *words], stdout=log, stderr=log, start_new_session=True)
    until(lambda: [*tmp_path.glob(ready)] or killed.poll() is not None, said.read_text)
    assert killed.poll() is None, said.read_text()
    assert own(temporary)
    subprocess.run([HOTLOOP, "settings", "dqn"], check=True, capture_output=True)
    assert own(temporary), "a living owner's folder stays"
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert own(temporary)
    time.sleep(0.5)  # its child is being ended and may still write
    subprocess.run([HOTLOOP, "settings", "dqn"], check=True, capture_output=True)
    assert own(temporary) == []


def test_only_what_is_marked_ours_and_abandoned_is_removed(temporary, tmp_path):
    precious = tmp_path / "precious"
    (precious / "inner").mkdir(parents=True)
    (precious / "inner" / "thesis").write_text("years of work")
    (temporary / f"hotloop-doctor-linked{SUFFIX}").symlink_to(precious)
    (temporary / f"hotloop-doctor-file{SUFFIX}").write_text("a file")
    os.mkfifo(temporary / f"hotloop-doctor-pipe{SUFFIX}")
    for name in ("hotloop-doctor-older", "hotloopish", f"hot{SUFFIX}"):
        (temporary / name).mkdir()
    if os.geteuid() == 0:
        others = temporary / f"hotloop-doctor-others{SUFFIX}"
        others.mkdir()
        os.chown(others, 12345, 12345)
    before = sorted(path.name for path in temporary.iterdir())
    abandoned = temporary / f"hotloop-doctor-abandoned{SUFFIX}"
    (abandoned / "copy").mkdir(parents=True)
    (abandoned / "copy" / "linked").symlink_to(precious)
    (abandoned / "copy" / "readonly").mkdir()
    (abandoned / "copy" / "readonly" / "file").touch()
    (abandoned / "copy" / "readonly").chmod(0o500)
    remove_leftovers()
    assert sorted(path.name for path in temporary.iterdir()) == before
    assert (precious / "inner" / "thesis").read_text() == "years of work"
    assert oct(precious.stat().st_mode)[-3:] != "700"


def test_a_folder_lives_as_long_as_its_owner_and_no_longer(temporary):
    with TemporaryFolder("doctor") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        remove_leftovers()
        assert folder.is_dir()
        (folder / "a" / "b").mkdir(parents=True)
    assert not folder.exists()
    program = "import os; from hotloop.core.temporary import *; made = TemporaryFolder('job'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program])
    assert own(temporary) == ["hotloop-job"]
    remove_leftovers()
    assert own(temporary) == []


def test_owners_and_those_who_remove_at_the_same_time(temporary):
    """Thousands of folders are made while others look for abandoned ones: none is taken from its owner."""
    program = "import time; from hotloop.core.temporary import remove_leftovers\nwhile True: remove_leftovers()"
    looking = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    try:
        for _ in range(2_000):
            with TemporaryFolder("doctor") as folder:
                (folder / "note").touch()
                assert (folder / "note").exists()
    finally:
        for process in looking:
            process.kill()
            process.wait()
    assert own(temporary) == []
