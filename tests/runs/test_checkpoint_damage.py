"""Any damaged file is detected and the previous checkpoint used; hostile files execute and reach nothing."""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.errors import CheckpointError
from hotloop.runs.checkpoint import checkpoint_name, load, newest, save, verify
from hotloop.runs.digest import digest
from hotloop.runs.files import canonical_json
from tests.runs.segment_rows import Rows

STATE = {"learner": {"w": np.arange(5, dtype=np.float32), "lr": 0.1}, "envs": {"rng": np.uint64([7])}}
STATE["replay"] = {"rows": Rows()}
FILES = ["learner.safetensors", "learner.json", "envs.safetensors", "envs.json", "manifest.json"]
FILES += ["replay.000000.segment", "replay.000004.segment"]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pristine")
    save(folder, checkpoint_name(1), {**STATE, "counters": {"env_steps": 1}}, {"env_steps": 1})
    save(folder, checkpoint_name(2), STATE, {"env_steps": 2})
    return folder


@pytest.fixture
def folder(pristine, tmp_path):
    return shutil.copytree(pristine, tmp_path / "checkpoints")


def assert_detected_and_previous_used(folder, name):
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        load(folder / checkpoint_name(2))
    with pytest.raises(CheckpointError):
        verify(folder / checkpoint_name(2))
    warnings: list[str] = []
    path, state, meta = newest(folder, warnings.append)
    assert (path.name, meta["env_steps"], state["counters"]) == (checkpoint_name(1), 1, {"env_steps": 1})
    assert len(warnings) == 1
    assert name in warnings[0]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_detected(folder, name):
    (folder / checkpoint_name(2) / name).unlink()
    assert_detected_and_previous_used(folder, name)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_a_link_is_refused_even_to_the_right_content(folder, name):
    path = folder / checkpoint_name(2) / name
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    assert_detected_and_previous_used(folder, name)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_truncated_lengthened_or_flipped_file_is_detected(pristine, tmp_path_factory, name, data):
    folder = shutil.copytree(pristine, tmp_path_factory.mktemp("damaged") / "checkpoints")
    path = folder / checkpoint_name(2) / name
    content = bytearray(path.read_bytes())
    kind = data.draw(st.sampled_from(["truncate", "lengthen", "flip"]))
    if kind == "truncate":
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    elif kind == "lengthen":
        content += data.draw(st.binary(min_size=1, max_size=9))
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert_detected_and_previous_used(folder, name)


@pytest.mark.parametrize(
    ("old", "new"), [(b'"env_steps":2', b'"env_steps":3'), (b",", b", "), (b'"schema":2', b'"schema":1')]
)
def test_a_manifest_that_still_parses_after_an_edit_is_detected(folder, old, new):
    path = folder / checkpoint_name(2) / "manifest.json"
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    assert_detected_and_previous_used(folder, "manifest.json")


def test_where_all_are_damaged_the_error_says_so(folder):
    for name in (checkpoint_name(1), checkpoint_name(2)):
        (folder / name / "learner.json").write_bytes(b"")
    warnings: list[str] = []
    with pytest.raises(CheckpointError, match="none of the 2 checkpoints"):
        newest(folder, warnings.append)
    assert len(warnings) == 2


def forge(folder, **changes):
    """Rewrite a manifest with a valid hash of its own."""
    path = folder / "manifest.json"
    body = json.loads(path.read_bytes())
    del body["sha256"]
    body.update(changes)
    body["sha256"] = hashlib.sha256(canonical_json(body)).hexdigest()
    path.write_bytes(canonical_json(body))


def forge_file(folder, name, content):
    """Replace a part's file and make the manifest agree."""
    (folder / name).write_bytes(content)
    files = json.loads((folder / "manifest.json").read_bytes())["files"]
    files[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    forge(folder, files=files)


def test_another_schema_version_says_what_it_needs(folder):
    forge(folder / checkpoint_name(2), schema=99, hotloop="9.1.0")
    with pytest.raises(CheckpointError, match="99") as caught:
        load(folder / checkpoint_name(2))
    assert "9.1.0" in caught.value.hint


def tensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype, shape, end, start=0):
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}}


HOSTILE_TENSORS = {
    "nothing": b"",
    "short": b"\x01\x02",
    "length_beyond_file": tensors(b"{}", length=2**40),
    "length_of_all_ones": tensors(b"{}", length=2**64 - 1),
    "not_json": tensors(b"\x80\x04cos\nsystem\n."),
    "pickle": b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "nested": tensors(b"[" * 100_000),
    "huge_shape": tensors(entry("F32", [2**62, 2**62], 4), bytes(4)),
    "terabyte": tensors(entry("F32", [2**38], 2**40)),
    "offsets_backwards": tensors(entry("U8", [4], 0, start=4), bytes(4)),
    "unknown_dtype": tensors(entry("OBJECT", [1], 8), bytes(8)),
    "foreign_dtype": tensors(entry("BF16", [1], 2), bytes(2)),
    "inside_a_value": tensors({"lr/x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"1"),
    "over_a_value": tensors({"lr": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"1"),
}
HOSTILE_JSON = {
    "nothing": b"",
    "nested": b"[" * 1_000_000,
    "nested_objects": b'{"a":' * 200_000,
    "list": b"[]",
    "not_text": b"\xff\xfe\x00",
    "long_number": b'{"a":' + b"9" * 100_000 + b"}",
}


@pytest.mark.parametrize("case", HOSTILE_TENSORS)
def test_a_hostile_tensor_file_with_a_matching_hash_is_refused(folder, case):
    forge_file(folder / checkpoint_name(2), "learner.safetensors", HOSTILE_TENSORS[case])
    with pytest.raises(CheckpointError, match=r"learner\.safetensors"):
        load(folder / checkpoint_name(2))


@pytest.mark.parametrize("case", HOSTILE_TENSORS)
def test_a_hostile_segment_with_a_matching_hash_is_refused_when_its_rows_are_wanted(folder, case):
    forge_file(folder / checkpoint_name(2), "replay.000002.segment", HOSTILE_TENSORS[case])
    state, _ = load(folder / checkpoint_name(2))
    with pytest.raises(CheckpointError, match=r"replay\.000002\.segment"):
        list(state["replay"]["rows"].pieces)


@pytest.mark.parametrize("case", HOSTILE_JSON)
def test_a_hostile_json_file_with_a_matching_hash_is_refused(folder, case):
    forge_file(folder / checkpoint_name(2), "learner.json", HOSTILE_JSON[case])
    with pytest.raises(CheckpointError, match=r"learner\.json"):
        load(folder / checkpoint_name(2))


@pytest.mark.parametrize("case", HOSTILE_JSON)
def test_a_hostile_manifest_is_refused(folder, case):
    (folder / checkpoint_name(2) / "manifest.json").write_bytes(HOSTILE_JSON[case])
    with pytest.raises(CheckpointError, match=r"manifest\.json"):
        load(folder / checkpoint_name(2))


@pytest.mark.parametrize(
    "name", ["../1/learner", "/etc/passwd", "a/b", "..", ".", "", "manifest", "learner\x00", "a" * 65, "ünï"]
)
def test_a_manifest_that_names_files_elsewhere_is_refused(folder, name):
    record = {"size": 1, "sha256": "0" * 64}
    forge(folder / checkpoint_name(2), files={f"{name}.json": record, f"{name}.safetensors": record}, segments={})
    with pytest.raises(CheckpointError, match=r"manifest\.json"):
        load(folder / checkpoint_name(2))


@pytest.mark.parametrize(
    "files", [None, [], 3, {"envs.json": {"size": 1, "sha256": "0" * 64}}, {"a.json": None, "a.safetensors": None}]
)
def test_a_manifest_without_a_proper_table_of_files_is_refused(folder, files):
    forge(folder / checkpoint_name(2), files=files, segments={})
    with pytest.raises(CheckpointError, match=r"manifest\.json"):
        load(folder / checkpoint_name(2))


@pytest.mark.parametrize(
    "segments",
    [
        None,
        [],
        {"replay": None},
        {"replay": {"rows": None}},
        {"replay": {"rows": []}},
        {"replay": {"rows": [3]}},
        {"replay": {"rows": ["replay.000000.segment"]}},  # not all that are there
        {"replay": {"rows": ["../1/replay.000000.segment"]}},
        {"replay": {"rows": [f"replay.{number:06d}.segment" for number in (0, 1, 2, 3, 3)]}},
        {"replay": {"rows": [f"replay.{number:06d}.segment" for number in range(6)]}},
        {"learner": {"rows": [f"replay.{number:06d}.segment" for number in range(5)]}},
        {"nobody": {"rows": [f"nobody.{number:06d}.segment" for number in range(5)]}},
    ],
)
def test_a_manifest_with_a_wrong_table_of_segments_is_refused(folder, segments):
    forge(folder / checkpoint_name(2), segments=segments)
    with pytest.raises(CheckpointError, match=r"manifest\.json"):
        load(folder / checkpoint_name(2))


@pytest.mark.parametrize("path", ["rows/x", "elsewhere"])
def test_a_segment_of_another_array_is_refused(folder, path):
    forge(
        folder / checkpoint_name(2),
        segments={"replay": {path: [f"replay.{number:06d}.segment" for number in range(5)]}},
    )
    state, _ = load(folder / checkpoint_name(2))
    with pytest.raises(CheckpointError, match=r"replay\.000000\.segment"):
        digest(state)


@pytest.mark.parametrize("record", [{"size": -1, "sha256": "0" * 64}, {"size": 1.5, "sha256": "0" * 64}, {"size": 1}])
def test_a_manifest_with_an_impossible_size_or_hash_is_refused(folder, record):
    forge(folder / checkpoint_name(2), files={"a.json": record, "a.safetensors": record}, segments={})
    with pytest.raises(CheckpointError, match=r"a\.json"):
        load(folder / checkpoint_name(2))


def test_a_sparse_file_larger_than_memory_is_refused_unread(folder):
    path = folder / checkpoint_name(2) / "learner.safetensors"
    os.truncate(path, 2**43)
    files = json.loads((folder / checkpoint_name(2) / "manifest.json").read_bytes())["files"]
    files["learner.safetensors"]["size"] = 2**43
    forge(folder / checkpoint_name(2), files=files)
    with pytest.raises(CheckpointError, match="of memory"):
        load(folder / checkpoint_name(2))


def test_a_sparse_segment_larger_than_memory_is_refused_unread(folder):
    os.truncate(folder / checkpoint_name(2) / "replay.000001.segment", 2**43)
    files = json.loads((folder / checkpoint_name(2) / "manifest.json").read_bytes())["files"]
    files["replay.000001.segment"]["size"] = 2**43
    forge(folder / checkpoint_name(2), files=files)
    with pytest.raises(CheckpointError, match="of memory"):
        load(folder / checkpoint_name(2))


def test_a_pipe_in_place_of_a_file_does_not_block(folder):
    (folder / checkpoint_name(2) / "learner.json").unlink()
    os.mkfifo(folder / checkpoint_name(2) / "learner.json")
    assert_detected_and_previous_used(folder, "learner.json")


AUDIT = """
import sys
from os import fsdecode
from os.path import normpath
from pathlib import Path
from hotloop.core.errors import CheckpointError
from hotloop.runs.checkpoint import load
from hotloop.runs.digest import digest
root, seen = sys.argv[1], []

def inside(path):
    return normpath(fsdecode(path)).startswith(root + "/")

def hook(event, arguments):
    if event in ("exec", "compile", "import", "os.system", "subprocess.Popen", "os.exec", "pickle.find_class",
                 "socket.connect", "os.remove", "os.rename", "os.mkdir", "ctypes.dlopen"):
        seen.append((event, str(arguments)[:80]))
    if event == "open" and not isinstance(arguments[0], int) and not inside(arguments[0]):
        seen.append((event, str(arguments[0])))

good, *bad = sorted(Path(root).iterdir())
digest(load(good)[0])  # what is imported at first use is imported now
sys.addaudithook(hook)
digest(load(good)[0])
refused = 0
for folder in bad:
    try:
        digest(load(folder)[0])  # reads the segments too
    except CheckpointError:
        refused += 1
events = list(seen)
print(len(bad) - refused, events)
"""


def test_loading_hostile_checkpoints_runs_no_code_and_opens_nothing_outside(folder, tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(folder / checkpoint_name(1), corpus / "0good")
    for number, (name, content) in enumerate(
        [("learner.safetensors", content) for content in HOSTILE_TENSORS.values()]
        + [("replay.000000.segment", content) for content in HOSTILE_TENSORS.values()]
        + [("learner.json", content) for content in HOSTILE_JSON.values()]
    ):
        forge_file(shutil.copytree(folder / checkpoint_name(2), corpus / f"bad{number}"), name, content)
    forge(
        shutil.copytree(folder / checkpoint_name(2), corpus / "bad_path"),
        files={"../0good/learner.json": {}},
        segments={},
    )
    command = [sys.executable, "-c", AUDIT, str(corpus)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0 []"
