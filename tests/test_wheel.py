"""What `pip install` puts on a machine: all files of the package are in the wheel; a machine that has nothing else
diagnoses and proves with it, and trains with its extra."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import hotloop
from hotloop.core.program import hotloop_version
from tests.test_light import SLOW

pytest.importorskip("build", reason="`build` is not installed: the wheel was not made")
ROOT = Path(__file__).parents[1]
PACKAGE = Path(hotloop.__file__).parent


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since building leaves files behind."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for code, place in ((PACKAGE, "src/hotloop"), (ROOT / "benchmarks", "benchmarks")):
        shutil.copytree(code, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def built(source: Path, *options: str) -> Path:
    words = [sys.executable, "-m", "build", "--outdir", str(source / "dist"), *options, str(source)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (source / "dist").glob("*.whl")
    return wheel


def installed(folder: Path, wanted: str) -> tuple[Path, dict[str, str]]:
    """The programs of a new environment that has nothing else, and the variables to run them with."""
    venv.create(folder / "empty", with_pip=True)
    bin = folder / "empty" / "bin"
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    install = [bin / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wanted]
    subprocess.run(install, check=True, env=clean, timeout=3_000)
    return bin, clean


def test_the_wheel_holds_every_file_of_the_package(source: Path) -> None:
    wheel = built(source, "--wheel", "--no-isolation", "--skip-dependency-check")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    files = [path for path in (source / "src" / "hotloop").rglob("*") if path.is_file()]
    wanted = {f"hotloop/{path.relative_to(source / 'src' / 'hotloop').as_posix()}" for path in files}
    assert not wanted - held
    assert {name.split("/")[0].partition("-")[0] for name in held} == {"hotloop"}, "benchmarks and tests stay outside"
    for name in (
        *(
            "presets/dqn.toml",
            "workloads/snake/presets/snake-dqn.toml",
            "render/page.css",
            "render/page.js",
            "dashboard/page/index.html",
            "py.typed",
        ),
        *("dashboard/page/uplot/uPlot.iife.min.js", "dashboard/page/uplot/LICENSE", "doctor/recorder/child.py"),
    ):
        assert f"hotloop/{name}" in held
    wheel.unlink()


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_an_empty_environment_installs_the_wheel_and_its_instruments_work(source: Path, tmp_path: Path) -> None:
    """Downloads five small packages; nothing that trains is there."""
    wheel = built(source)
    bin, clean = installed(tmp_path, str(wheel))
    listed = subprocess.run(
        [bin / "python", "-m", "pip", "list"], env=clean, capture_output=True, text=True, check=True
    )
    packages = {line.split()[0].lower() for line in listed.stdout.splitlines()}
    assert {"hotloop", "numpy", "psutil", "rich", "safetensors", "tomli_w"} <= {
        name.replace("-", "_") for name in packages
    }
    assert not packages & {"torch", "numba", "gymnasium", "scipy", "networkx", "pillow", "llvmlite"}
    work = tmp_path / "work"
    work.mkdir()
    (work / "slow.py").write_text(SLOW)
    (work / "fast.py").write_text(SLOW.replace(" @ np.eye(4)", ""))

    def hotloop_said(*words: str, code: int = 0) -> str:
        done = subprocess.run([bin / "hotloop", *words], cwd=work, env=clean, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout if not code else done.stderr

    assert json.loads(hotloop_said("doctor", "--json", "slow.py"))["counts"]["env_steps"] > 0
    proved = json.loads(hotloop_said("prove", "--script", "slow.py", "--against", "fast.py", "--rounds", "0", "--json"))
    assert proved["pairs"][0]["verdict"] == "identical"
    refused = hotloop_said("train", "cartpole-dqn", code=2)
    assert refused.startswith("error: training `cartpole-dqn` needs PyTorch, which is not installed")
    assert f"{wheel}[train]" in refused


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_an_empty_environment_installs_the_wheel_and_trains(source: Path, tmp_path: Path) -> None:
    """Downloads PyTorch and all else; `python -m build` makes the source archive and, from that, the wheel."""
    wheel = built(source)
    bin, clean = installed(tmp_path, f"{wheel}[train,dashboard]")
    work = tmp_path / "work"
    work.mkdir()

    def hotloop_said(*words: str) -> str:
        done = subprocess.run([bin / "hotloop", *words], cwd=work, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert hotloop_said("--version").strip() == hotloop_version()
    hotloop_said("train", "cartpole-dqn", "--total-env-steps", "2k", "--run-dir", "runs/first")
    assert "first" in hotloop_said("runs")
    serving = subprocess.Popen(
        [bin / "hotloop", "dashboard", "--no-browser"], cwd=work, env=clean, stdout=subprocess.PIPE, text=True
    )
    assert serving.stdout is not None
    try:
        assert serving.stdout.readline().startswith("http://127.0.0.1:")
    finally:
        serving.terminate()
        serving.wait(60)
        serving.stdout.close()
