"""Where compiled kernels are kept: who may change them, what recompiles them, and what happens where there is no place.

Programs run in processes of their own, since a process decides once. Each says how many kernels it had to compile.
"""

import ast
import errno
import os
import pickle
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from hotloop.core import kernel_cache, own_folders
from hotloop.core.kernels import compiled, next_uint64
from hotloop.core.own_folders import NoFolder, cache_base, own_folder

SENTENCE = "machine-code kernels are compiled every time: "
DRAW = """
import numba
from numba.core import event
import numpy as np
recorder = event.RecordingListener()
with event.install_listener("numba:compile", recorder):
    from hotloop.core.kernels import next_uint64
    assert int(next_uint64(np.zeros(1, np.uint64), 0)) == 0xE220A8397B1DCDAF
print(sum(one.is_start for _, one in recorder.buffer), repr(numba.config.CACHE_DIR))
"""


def run(program: str = DRAW, **environment: str) -> tuple[str, str]:
    """What a program says on stdout and stderr; the places of caches are only those given."""
    places = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "HOME")
    given = {name: value for name, value in os.environ.items() if name not in places} | environment
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def draw() -> int:
    """How many kernels had to be compiled for one draw, by a kernel that has nothing yet, as in a new process."""
    kernel_cache.folder_of.cache_clear()
    kernel_cache._said.clear()
    recorder = event.RecordingListener()
    with event.install_listener("numba:compile", recorder):
        assert int(compiled(next_uint64.py_func)(np.zeros(1, np.uint64), 0)) == 0xE220A8397B1DCDAF
    return sum(one.is_start for _, one in recorder.buffer)


@pytest.fixture
def place(tmp_path, monkeypatch) -> Iterator[Path]:
    """A cache folder of this test's own."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    yield tmp_path / "c"
    kernel_cache.folder_of.cache_clear()
    kernel_cache._said.clear()


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_kernel_is_compiled_once_and_numbas_own_settings_are_left_alone(tmp_path):
    assert run(XDG_CACHE_HOME=str(tmp_path)) == ("1 ''", "")
    assert run(XDG_CACHE_HOME=str(tmp_path)) == ("0 ''", "")
    folders = [path for path in (tmp_path / "hotloop").rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
    assert len(files_in(tmp_path)) == 2  # an index and the code


def test_the_folder_that_numba_was_told_is_used_and_a_users_own_function_finds_its_own(tmp_path):
    (tmp_path / "mine.py").write_text("import numba\n@numba.njit(cache=True)\ndef f(x): return x\n")
    own = "import sys; sys.path.insert(0, {path!r})\nimport mine\nmine.f(1)\nprint(mine.f.stats.cache_path)"
    program, told = DRAW + own.format(path=str(tmp_path)), str(tmp_path / "told")
    assert run(program, XDG_CACHE_HOME=str(tmp_path / "c"))[0] == f"1 ''\n{tmp_path / '__pycache__'}"
    said, complaint = run(program, NUMBA_CACHE_DIR=told, HOME="/dev/null")
    assert said.startswith(f"1 {told!r}\n{told}/")
    assert not complaint
    assert run(NUMBA_CACHE_DIR=told, HOME="/dev/null") == (f"0 {told!r}", "")


def test_without_a_folder_kernels_work_and_one_sentence_says_what_to_do():
    program = DRAW + "from hotloop.core.kernels import next_uniform\nnext_uniform(np.zeros(1, np.uint64), 0)"
    said, told = run(program, HOME="/dev/null")
    assert said == "1 ''"
    assert told.startswith(SENTENCE)
    assert told.count("\n") == 1
    assert "/dev/null" in told
    assert "set NUMBA_CACHE_DIR to a folder" in told


def test_a_user_without_a_home_has_no_folder(monkeypatch):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(NoFolder, match="no home folder"):
        cache_base()


def test_a_full_disk_or_a_folder_that_is_only_read_costs_a_sentence(place, monkeypatch, capsys):
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    assert draw() == 1
    assert not kernel_cache.kernels_are_kept()
    told = capsys.readouterr().err
    assert told.startswith(SENTENCE)
    assert "(No space left)" in told
    assert told.count("\n") == 1


DAMAGE = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "garbage": lambda whole: b"\xff" * 99,
    "foreign": lambda whole: pickle.dumps(7),
}


@pytest.mark.parametrize("spoil", DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_compiled_again_and_replaced(place, spoil, capsys):
    assert draw() == 1
    for path in files_in(place):
        path.write_bytes(spoil(path.read_bytes()))
        assert (draw(), draw()) == (1, 0)
    assert capsys.readouterr().err == ""


PLANTED = "import os; os.environ['HOTLOOP_TEST_PLANTED'] = 'ran'"


def plant(folder: Path) -> None:
    """Code of somebody else in the place of kernels."""
    for path in files_in(folder):
        path.write_bytes(b"\x80\x04cbuiltins\nexec\n(V" + PLANTED.encode() + b"\ntR.")


@pytest.mark.parametrize("opened", ["nothing", "c", "c/hotloop", "c/hotloop/kernels", "module", "file"])
def test_what_others_could_have_written_is_not_loaded(place, tmp_path, monkeypatch, capsys, opened):
    """The first case shows that the planted code would run."""
    monkeypatch.setenv("HOTLOOP_TEST_PLANTED", "")
    draw()
    plant(place)
    module = next((place / "hotloop" / "kernels").iterdir())
    places = {"nothing": [], "module": [module], "file": files_in(module)}.get(opened, [tmp_path / opened])
    for one in places:
        one.chmod(one.stat().st_mode | 0o022)
    assert draw() == 1
    assert os.environ["HOTLOOP_TEST_PLANTED"] == ("ran" if opened == "nothing" else "")
    told = capsys.readouterr().err
    if opened in ("nothing", "file"):
        assert told == ""
        assert draw() == 0
    else:
        assert told.startswith(f"{SENTENCE}other users may write to {places[0]}; ")


def test_a_folder_that_is_a_link_is_not_used(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoFolder, match="symbolic link"):
        own_folder(tmp_path / "link")
    assert own_folder(tmp_path / "link" / "below")  # a cache on another disk: the link is ours


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given_away", ["c", "c/hotloop"])
def test_a_folder_of_another_user_is_not_used(tmp_path, given_away):
    folder = own_folder(tmp_path / "c" / "hotloop")
    os.chown(tmp_path / given_away, 12345, 12345)
    with pytest.raises(NoFolder, match="belongs to another user"):
        own_folder(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_link_of_another_user_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.chown(tmp_path / "link", 12345, 12345, follow_symlinks=False)
    with pytest.raises(NoFolder, match="belongs to another user"):
        own_folder(tmp_path / "link" / "below")


def test_a_private_group_may_write_and_a_shared_one_may_not(tmp_path, monkeypatch):
    folder = own_folder(tmp_path / "c")
    folder.chmod(0o770)
    monkeypatch.setattr(own_folders, "_is_private", lambda group: True)
    assert own_folder(folder) == folder
    monkeypatch.setattr(own_folders, "_is_private", lambda group: False)
    with pytest.raises(NoFolder, match="other users may write"):
        own_folder(folder)


def test_folders_below_a_sticky_one_are_ours(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)  # as /tmp
    assert own_folder(tmp_path / "shared" / "mine")


def test_two_types_compiled_at_once_are_both_kept(tmp_path):
    program = """
import sys, numpy as np
from numba.core import event
from hotloop.core.kernels import next_below
recorder = event.RecordingListener()
with event.install_listener("numba:compile", recorder):
    assert 0 <= next_below(np.zeros(1, np.uint64), 0, {bound}) < 7
print(sum(one.is_start for _, one in recorder.buffer))
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    bounds = ["np.int64(7)", "np.float32(7)"]
    commands = [[sys.executable, "-c", program.replace("{bound}", bound)] for bound in bounds]
    together = [subprocess.Popen(command, env=environment) for command in commands]
    assert [process.wait(timeout=300) for process in together] == [0] * len(bounds)
    assert [run(command[2], XDG_CACHE_HOME=str(tmp_path)) for command in commands] == [("0", "")] * len(bounds)


@pytest.fixture
def copied(tmp_path) -> Path:
    """A second installation of the same version."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(kernel_cache.PACKAGE, tmp_path / "copy" / "hotloop", ignore=ignored))


def test_a_second_installation_compiles_nothing(tmp_path, copied):
    assert run(XDG_CACHE_HOME=str(tmp_path / "c"))[0] == "1 ''"
    where = "import hotloop; print(hotloop.__file__)\n"
    said, _ = run(where + DRAW, XDG_CACHE_HOME=str(tmp_path / "c"), PYTHONPATH=str(copied.parent))
    assert said == f"{copied / '__init__.py'}\n0 ''"


def test_an_edit_recompiles_what_depends_on_it_and_nothing_else(copied, monkeypatch):
    monkeypatch.setattr(kernel_cache, "PACKAGE", copied)
    kernels = [*copied.rglob("*_kernels.py"), copied / "core" / "kernels.py"]
    hash_now = kernel_cache.source_hash.__wrapped__

    def hashes() -> dict[str, str]:
        kernel_cache._contents_hash.cache_clear()
        return {path.relative_to(copied).as_posix(): hash_now(path) for path in kernels}

    def changed_by(name: str) -> set[str]:
        before = hashes()
        (copied / name).write_text((copied / name).read_text() + "\n")
        after = hashes()
        return {kernel for kernel in before if before[kernel] != after[kernel]}

    assert changed_by("maths/gae_kernels.py") == {"maths/gae_kernels.py"}
    assert changed_by("replay/storage_kernels.py") == {f"replay/{name}_kernels.py" for name in ("storage", "n_step")}
    assert "lanes/native/update_kernels.py" in changed_by("lanes/native/plan_kernels.py")  # imported from its package
    assert "workloads/durotaxis/step_kernels.py" in changed_by("workloads/durotaxis/settings.py")  # constants count too
    assert changed_by("core/types.py") == changed_by("core/kernel_cache.py") == changed_by("loop/session.py") == set()


def test_a_users_own_file_of_kernels_is_kept_too(tmp_path):
    text = "from hotloop.core.kernels import kernel\n@kernel\ndef f(x): return x + {}\nassert f(1) == 1 + {}\n"
    runner = "from numba.core import event; r = event.RecordingListener()\nimport runpy\n"
    runner += "with event.install_listener('numba:compile', r): runpy.run_path({!r})\nprint(len(r.buffer) // 2)"
    for number, compiled_now in ((1, "1"), (1, "0"), (2, "1")):
        (tmp_path / "mine.py").write_text(text.format(number, number))
        assert run(runner.format(str(tmp_path / "mine.py")), XDG_CACHE_HOME=str(tmp_path / "c")) == (compiled_now, "")


def test_no_import_of_ours_is_overlooked():
    for path in [*kernel_cache.PACKAGE.rglob("*_kernels.py"), kernel_cache.PACKAGE / "core" / "kernels.py"]:
        for one in kernel_cache.imported_files(path):
            seen = set(kernel_cache._direct_imports(one))
            for node in ast.walk(ast.parse(one.read_text())):
                assert not (isinstance(node, ast.ImportFrom) and node.level), f"{one}: a relative import"
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
                names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                ours = {name for name in names if name.startswith("hotloop.")} - kernel_cache.WITHOUT_CODE
                for name in ours:
                    place = kernel_cache.PACKAGE.joinpath(*name.split(".")[1:])
                    assert {place.with_suffix(".py"), place / "__init__.py"} & seen, (one, name)


def test_kernels_take_only_annotations_from_the_file_of_types():
    for path in kernel_cache.PACKAGE.rglob("*_kernels.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "hotloop.core.types":
                assert [alias.name for alias in node.names] == ["Array"], path
