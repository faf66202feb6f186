"""A janitor leaves nothing of its owner's, however the owner ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hotloop.scale.janitor import Janitor

OWNER = """
import os, signal, subprocess, sys, time
from pathlib import Path
from hotloop.scale.janitor import Janitor
with Janitor(Path(sys.argv[1])) as here:
    (here / "run").mkdir()
    left = subprocess.Popen(["sleep", "100"], cwd=here / "run", process_group=0)
    print(left.pid, flush=True)
    time.sleep(100)
"""


def test_it_removes_the_folder_before_its_owner_goes_on(tmp_path: Path) -> None:
    with Janitor(tmp_path / "one") as here:
        here.mkdir()
        (here / "file").touch()
    assert not here.exists()
    assert psutil.Process().children() == []


def test_it_ends_who_has_a_file_open_there_but_not_its_owner(tmp_path: Path) -> None:
    """As Ray's agents have, whose title and standard streams say nothing."""
    folder = tmp_path / "one"
    with Janitor(folder):
        folder.mkdir()
        with (folder / "log").open("w"), (folder / "agents").open("w") as log:
            program = "import time; print(flush=True); time.sleep(100)"
            pipe = subprocess.PIPE
            agent = subprocess.Popen([sys.executable, "-c", program], stdout=pipe, pass_fds=[log.fileno()])
            assert agent.stdout is not None
            agent.stdout.readline()
            kept = (folder / "log").open("w")
    assert agent.wait(10) == -15
    agent.stdout.close()
    kept.close()
    assert not folder.exists()


@pytest.mark.parametrize("children_first", [False, True])
def test_it_comes_when_its_owner_is_killed(children_first: bool, tmp_path: Path) -> None:
    """Also where somebody kills all children of the owner first, as Ray does with those of a worker that ends."""
    folder = tmp_path / "one"
    folder.mkdir()
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout as said:
        left = int(said.readline())
    if children_first:
        for child in psutil.Process(owner.pid).children():
            child.kill()
    owner.kill()
    owner.wait()
    give_up = time.monotonic() + 20
    while (folder.exists() or psutil.pid_exists(left)) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not folder.exists()
    assert not os.path.exists(f"/proc/{left}")
