"""Durable writes: the order of system calls, and what a failing disk leaves behind."""

import errno
import os
import resource
import stat

import pytest

from hotloop.core.errors import RunError
from hotloop.runs.checkpoint import checkpoint_name, save
from hotloop.runs.files import make_folder, read_file, write_all, write_chunks, write_file


@pytest.fixture
def calls(monkeypatch):
    """Every fsync and rename, in order, as ("fsync", path) or ("rename", from, to)."""
    recorded: list[tuple[str, ...]] = []
    real_fsync, real_rename, real_replace = os.fsync, os.rename, os.replace

    def fsync(descriptor):
        recorded.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        real_fsync(descriptor)

    def rename(source, target):
        recorded.append(("rename", str(source), str(target)))
        real_rename(source, target)

    def replace(source, target):
        recorded.append(("rename", str(source), str(target)))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(os, "replace", replace)
    return recorded


def test_a_file_is_fsynced_then_renamed_then_its_folder_fsynced(tmp_path, calls):
    write_file(tmp_path / "result.json", b"{}")
    temporary = calls[0][1]
    assert calls == [
        ("fsync", temporary),
        ("rename", temporary, str(tmp_path / "result.json")),
        ("fsync", str(tmp_path)),
    ]
    assert os.path.dirname(temporary) == str(tmp_path)


def test_a_checkpoint_is_fsynced_file_by_file_with_the_manifest_last_then_renamed_then_its_parent_fsynced(
    tmp_path, calls
):
    final = save(tmp_path, checkpoint_name(1), {"learner": {"a": 1}, "envs": {}}, {})
    kinds = [call[0] for call in calls]
    at = kinds.index("rename")
    temporary = calls[at][1]
    fsynced = [path for _, path in calls[:at]]
    assert sorted(fsynced[:-2]) == sorted(
        f"{temporary}/{part}.{kind}" for part in ("learner", "envs") for kind in ("json", "safetensors")
    )
    assert fsynced[-2:] == [f"{temporary}/manifest.json", temporary]
    assert calls[at:] == [("rename", temporary, str(final)), ("fsync", str(tmp_path))]


def test_new_folders_are_made_durable_from_the_outside_in(tmp_path, calls):
    make_folder(tmp_path / "a" / "b")
    assert calls == [("fsync", str(tmp_path)), ("fsync", str(tmp_path / "a"))]


def _failing(code):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("function", "code", "hint"),
    [
        ("write", errno.ENOSPC, "free some space"),
        ("fsync", errno.ENOSPC, "free some space"),
        ("fsync", errno.EIO, "system log"),
        ("open", errno.EROFS, "read-only"),
        ("open", errno.EACCES, "permissions"),
        ("replace", errno.EROFS, "read-only"),
    ],
)
def test_a_failing_write_is_explained_and_leaves_the_old_content_and_no_litter(
    tmp_path, monkeypatch, function, code, hint
):
    path = tmp_path / "result.json"
    write_file(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, function, _failing(code))
        with pytest.raises(RunError, match=r"result\.json") as caught:
            write_file(path, b"new")
    assert hint in caught.value.hint
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_limit_of_the_kernel_on_file_size_is_explained_too(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(RunError, match="too large"):
            write_file(tmp_path / "big", bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_explained(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(RunError, match="Permission denied"):
        write_file(tmp_path / "a", b"")


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, bytes(data[:3])))
    with open(tmp_path / "a", "wb") as stream:
        write_all(stream.fileno(), b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_size_and_hash_are_those_of_the_written_bytes(tmp_path):
    record = write_chunks(tmp_path / "a", [b"ab", b"", b"c"])
    assert record.size == 3
    assert record.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of "abc"


def test_reading_refuses_links_pipes_and_files_above_the_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path / "file", 5) == b"12345"
    for name, limit in [("file", 4), ("link", 5), ("pipe", 5), ("missing", 5)]:
        with pytest.raises(RunError, match=name):
            read_file(tmp_path / name, limit)
