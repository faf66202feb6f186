"""Every byte of a real checkpoint flipped, every file cut off at every length: none passes for what was saved.

`tests/runs/test_checkpoint_damage.py` shows what is said and that the previous checkpoint is used; here the files are
those of whole runs. The quick suite takes some forty places in each file, `make slow` all of a small file and every
seventh of a large one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

import hotloop
from hotloop.core.errors import CheckpointError
from hotloop.runs import checkpoint
from tests.reliability.killing import FAMILIES

SMALL_FILE = 2_000


@pytest.fixture(scope="module", params=["dqn-native", "ppo-graphs"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The newest checkpoint of a whole run."""
    preset, tree = FAMILIES[request.param]
    run = tmp_path_factory.mktemp("damage") / "run"
    hotloop.train(hotloop.preset(preset, **{**tree, "run_dir": str(run)}))
    found = checkpoint.newest(run / "checkpoints", pytest.fail)
    assert found is not None
    return found[0]


def passes(folder: Path, path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    try:
        checkpoint.load(folder)
    except CheckpointError as error:
        return path.name not in error.message
    return True


def damage(folder: Path, path: Path, places: Iterable[int]) -> int:
    """How many damaged versions of one file there were, all of them found out."""
    content, draw, tried = path.read_bytes(), random.Random(path.name), 0
    for at in places:
        flipped = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
        assert not passes(folder, path, flipped), f"{path.name}: a bit of byte {at} flipped"
        assert not passes(folder, path, content[:at]), f"{path.name}: cut off after {at} bytes"
        tried += 2
    path.unlink()
    with pytest.raises(CheckpointError, match=path.name):
        checkpoint.load(folder)
    path.write_bytes(content)
    return tried + 1


def test_no_damaged_file_passes(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        size = path.stat().st_size
        damage(folder, path, sorted({0, 1, size - 1, *random.Random(size).choices(range(size), k=40)}))
    checkpoint.verify(folder)


@pytest.mark.slow
def test_no_file_damaged_anywhere_passes(folder: Path) -> None:
    tried = 0
    for path in sorted(folder.iterdir()):
        size = path.stat().st_size
        tried += damage(folder, path, range(0, size, 1 if size <= SMALL_FILE else 7))
    checkpoint.verify(folder)
    print(f"{tried} damaged versions of {len(list(folder.iterdir()))} files")
