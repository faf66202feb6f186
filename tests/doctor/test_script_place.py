"""Where a script runs: in whose interpreter, in which folder, and what it wrote there."""

import sys
import textwrap
from pathlib import Path

import pytest

from hotloop.core.errors import SettingsError
from hotloop.doctor.script import ScriptPlan, choose_interpreter, copies, record_script

LOOP = """
import os, sys
class Corridor:
    def reset(self): return 0
    def step(self, action): return 0, 1.0, False, {}
env = Corridor()
for _ in range(50):
    env.step(0)
with open("log.txt", "a") as log:
    log.write(os.getcwd() + "\\n")
"""


def environment(tmp_path, name="venv"):
    """An environment's folder whose Python is ours."""
    binary = tmp_path / name / "bin"
    binary.mkdir(parents=True)
    (binary / "python").symlink_to(sys.executable)
    return tmp_path / name


def test_the_script_is_run_by_the_python_of_the_active_environment(tmp_path):
    venv, conda = environment(tmp_path), environment(tmp_path, "conda")
    chosen = choose_interpreter(None, {"VIRTUAL_ENV": str(venv), "CONDA_PREFIX": str(conda)})
    assert (chosen.path, chosen.why) == (str(venv / "bin" / "python"), "VIRTUAL_ENV")
    chosen = choose_interpreter(None, {"CONDA_PREFIX": str(conda), "CONDA_DEFAULT_ENV": "rl"})
    assert (chosen.path, chosen.why) == (str(conda / "bin" / "python"), "CONDA_PREFIX")
    for nothing in (
        {},
        {"CONDA_PREFIX": str(conda), "CONDA_DEFAULT_ENV": "base"},
        {"VIRTUAL_ENV": str(tmp_path / "no")},
    ):
        assert choose_interpreter(None, nothing).path == sys.executable
    assert f"Python {sys.version.split()[0]}" in str(chosen)


def test_an_interpreter_or_its_environment_can_be_named(tmp_path):
    venv = environment(tmp_path)
    for name in (venv, venv / "bin" / "python"):
        assert choose_interpreter(name, {"VIRTUAL_ENV": "/elsewhere"}).path == str(venv / "bin" / "python")
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho '[\"CPython\", [3, 7, 2]]'\n")
    old.chmod(0o755)
    for wrong, said in ((old, "is Python 3.7"), (tmp_path / "none", "no Python that can be started")):
        with pytest.raises(SettingsError, match=said):
            choose_interpreter(wrong)


def record(folder, path="train.py", loop=LOOP, **plan):
    (folder / "train.py").write_text(textwrap.dedent(loop))
    return record_script(Path(path), (), ScriptPlan(threads=False, **plan), lambda _: None)


def test_runs_after_the_first_write_into_a_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trace = record(tmp_path)
    assert trace.counted.env_steps > 0
    assert (tmp_path / "log.txt").read_text() == f"{tmp_path}\n"
    assert "the script wrote log.txt" in trace.notes
    trace = record(tmp_path, in_place=True)
    assert trace.counted.env_steps > 0
    assert (tmp_path / "log.txt").read_text() == f"{tmp_path}\n" * 3


@pytest.mark.parametrize("path", ["project/train.py", "absolute"])
def test_a_script_elsewhere_counts_the_same_lines_in_its_copy(tmp_path, monkeypatch, path):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(tmp_path)
    trace = record(project, project / "train.py" if path == "absolute" else path)
    assert {call.where.partition(":")[0] for call in trace.calls} == {"train.py"}
    assert (tmp_path / "log.txt").read_text() == f"{tmp_path}\n"


def test_a_folder_that_is_too_large_is_not_copied_and_the_report_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(copies, "MOST_BYTES", 1000)
    (tmp_path / "data.bin").write_bytes(b"0" * 2000)
    trace = record(tmp_path)
    assert trace.counted.env_steps == 0
    assert any("too much to copy" in note and "--in-place" in note for note in trace.notes)


def test_what_the_first_run_wrote_is_not_copied_for_the_next_and_does_not_make_the_folder_too_large(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(copies, "MOST_BYTES", 100_000)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "data.txt").write_text("read by every run")
    saving = "import os\n\nassert not os.path.exists('kept/model.bin') and os.path.exists('kept/data.txt')\n"
    saving += "with open('kept/model.bin', 'wb') as file:\n    file.write(b'0' * 200_000)\n"
    trace = record(tmp_path, loop=saving + LOOP)
    assert (tmp_path / "kept" / "model.bin").exists()
    assert trace.counted.env_steps > 0


def test_a_copy_has_links_to_what_a_script_only_reads_and_no_caches(tmp_path):
    folder = tmp_path / "here"
    for name in (".git/config", "env/pyvenv.cfg", "env/lib/big.py", "__pycache__/x.pyc", "src/a.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    before = copies.look(folder)
    assert before is not None
    assert set(before) == {"src/a.py"}
    with copies.copy_of(folder) as copy:
        assert (copy / "src" / "a.py").read_text() == "src/a.py"
        assert (copy / ".git").is_symlink()
        assert (copy / "env" / "lib" / "big.py").read_text() == "env/lib/big.py"
        assert not (copy / "__pycache__").exists()
    assert not copy.exists()
    (folder / "src" / "b.py").write_text("")
    (folder / "src" / "a.py").write_text("longer than before")
    assert copies.written(before, copies.look(folder)) == ["src/a.py", "src/b.py"]
