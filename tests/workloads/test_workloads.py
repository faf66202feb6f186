"""The one door of workloads: ours and those of other packages bring envs, presets, drawings and verbs in the same way,
none keeps the others from working, and hotloop works without any of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.core import workloads
from hotloop.core.errors import EnvError, HotloopError
from hotloop.core.workloads import GROUP, OURS, Workload
from hotloop.envs.registry import list_envs, make_envs
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.named import preset_names, preset_text

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_workload"
HOTLOOP = str(Path(sys.executable).with_name("hotloop"))
SHORT = "--total-env-steps 400 --learning-starts 100 --evaluation.episodes 1 --evaluation.final-episodes 2 --quiet"


def install(folder: Path, name: str, place: str) -> Path:
    """What pip leaves of a distribution: its metadata, with one entry point."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {place}\n")
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of this process, to install into; nothing is remembered from before, or kept."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    remembered = (workloads.workload_places, workloads.workloads)
    for function in remembered:
        function.cache_clear()
    yield folder
    for function in remembered:
        function.cache_clear()


def run(*words: str, path: Path | None = None, folder: Path) -> subprocess.CompletedProcess[str]:
    here = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    return subprocess.run(words, capture_output=True, text=True, timeout=240, env=here, cwd=folder)


def test_a_workload_in_a_package_of_its_own_trains_is_drawn_and_has_verbs(tmp_path: Path) -> None:
    """The example, as if pip had installed it."""
    site = tmp_path / "site"
    shutil.copytree(EXAMPLE / "corridor", site / "corridor")
    (named,) = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"][GROUP].items()
    install(site, *named)

    def said(words: str) -> str:
        done = run(HOTLOOP, *words.split(), path=site, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "corridor" in said("--help")
    assert {"id": "corridor", "kind": "workload"} in json.loads(said("envs --json"))["envs"]
    said("envs check corridor")
    assert json.loads(said("corridor --json"))["presets"] == ["corridor-dqn"]
    assert said("corridor best --length 20") == "0.81\n"
    trained = json.loads(said(f"train corridor-dqn {SHORT} --run-dir run --json"))
    assert trained["updates"] > 0
    said("watch run --frames pictures")
    assert list((tmp_path / "pictures").iterdir())
    assert json.loads(said("resume run --json"))["digest"] == trained["digest"]


def test_a_gymnasium_env_of_a_workload_is_one_like_any_other(tmp_path: Path) -> None:
    """In workers, wrapped, drawn by its own `render`; no `--trust`, since pip installed it."""
    site = install(tmp_path / "site", "walks", "walks:workload")
    (site / "walks.py").write_text(
        "from pathlib import Path\nimport hotloop\n"
        "workload = hotloop.Workload(name='walks', envs={'walk': 'own_env:Corridor'}, presets=Path(__file__).parent)\n"
    )
    shutil.copy(ROOT / "examples" / "own_env.py", site)
    (site / "walk-dqn.toml").write_text("[env]\nid = 'walk'\n")

    def said(words: str) -> str:
        done = run(HOTLOOP, *words.split(), path=site, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said("envs check walk --env.wrappers ClipReward(-1,1)")
    trained = json.loads(said(f"train walk-dqn {SHORT} --env.num-envs 2 --env.workers 2 --run-dir run --json"))
    assert trained["updates"] > 0
    assert json.loads(said("evaluate run --episodes 2 --json"))["episodes"] == 2
    assert "identical" in said(f"prove --env walk --against {site}/own_env.py:Corridor --env-steps 300")


def test_the_example_is_little_to_write() -> None:
    files = [*(EXAMPLE / "corridor").glob("*.py"), *EXAMPLE.rglob("*.toml")]
    assert len(files) == 6
    assert sum(len(path.read_text().splitlines()) for path in files) <= 140


HIDE = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.startswith({hidden!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
from hotloop.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("hidden", [*OURS, ""])
def test_hotloop_works_without_the_folder_of_a_workload(hidden: str, tmp_path: Path) -> None:
    """Of each one, and of all of them."""
    program = tmp_path / "without.py"
    program.write_text(HIDE.format(hidden=f"hotloop.workloads.{hidden}" if hidden else "hotloop.workloads"))

    def said(words: str) -> str:
        done = run(sys.executable, str(program), *words.split(), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    ids = {row["id"] for row in json.loads(said("envs --json"))["envs"]}
    assert {"cartpole", "CartPole-v1"} <= ids
    assert ids & OURS.keys() == (OURS.keys() - {hidden, "topology"} if hidden else set())
    name = next(name for name in preset_names() if name.startswith(f"{hidden or 'snake'}-"))
    asked = run(sys.executable, str(program), "settings", name, folder=tmp_path)
    assert asked.returncode == 2
    assert f"no preset and no file is called `{name}`" in asked.stderr
    assert json.loads(said(f"train cartpole-dqn {SHORT} --run-dir runs/one --json"))["updates"] > 0
    assert "one" in said("runs runs")
    said("report runs/one --no-frames")


def test_what_cannot_be_loaded_is_named_and_left_out(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "broken.py").write_text("1 / 0\n")
    (site / "other.py").write_text("workload = 'maze'\n")
    (site / "wrong.py").write_text("import hotloop\nworkload = hotloop.Workload(name='right')\n")
    for name in ("broken", "other", "gone", "wrong"):
        install(site, name, f"{name}:workload")
    assert [one.name for one in workloads.workloads()] == ["hotloop", *OURS]
    said = capsys.readouterr().err.splitlines()
    assert "the workload `broken` (broken:workload) cannot be loaded: ZeroDivisionError: division by zero" in said[0]
    assert "the workload `other` (other:workload) is a str" in said[2]
    assert "the workload `gone` (gone:workload) cannot be loaded: ModuleNotFoundError" in said[1]
    assert "the workload `wrong` (wrong:workload) calls itself `right`" in said[3]
    assert "cartpole-dqn" in preset_names()
    with pytest.raises(HotloopError, match="ZeroDivisionError"):
        workloads.workload_named("broken")


def test_what_a_name_means_does_not_depend_on_what_else_is_installed(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "presets").mkdir()
    (site / "presets" / "cartpole-dqn.toml").write_text("seed = 1\n")
    (site / "greedy.py").write_text(
        "from pathlib import Path\nfrom hotloop import Workload\n"
        "env = Workload(name='env', envs={'snake': 'greedy:Snake'})\n"
        "preset = Workload(name='preset', presets=Path(__file__).parent / 'presets')\n"
        "snake = Workload(name='snake')\n"
    )
    for name in ("env", "preset", "snake"):
        install(site, name, f"greedy:{name}")
    assert [one.name for one in workloads.workloads()] == ["hotloop", *OURS]
    said = capsys.readouterr().err
    assert "the workload `env` brings the env `snake`, as `snake` does; it is left out" in said
    assert "the workload `preset` brings the preset `cartpole-dqn`, as `hotloop` does; it is left out" in said
    assert "snake" in workloads.workload_named("snake").envs
    assert "Native CartPole" in preset_text("cartpole-dqn")


def test_what_lies_in_the_current_folder_is_not_installed(tmp_path: Path) -> None:
    """Though PYTHONPATH has an empty entry, which stands for it."""
    install(tmp_path, "planted", "planted:workload")
    (tmp_path / "planted.py").write_text(f"open({str(tmp_path / 'was-imported')!r}, 'w').close()\n")
    for words in ((HOTLOOP,), (sys.executable, "-m", "hotloop")):
        for entry in ("", ".", os.pathsep):
            here = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{entry}"}
            done = subprocess.run([*words, "envs"], capture_output=True, text=True, cwd=tmp_path, env=here, timeout=120)
            assert done.returncode == 0, done.stderr
    assert not (tmp_path / "was-imported").exists()


def test_a_workload_is_loaded_no_further_than_is_asked(tmp_path: Path) -> None:
    """Its object names all else; neither PyTorch nor numba nor Gymnasium is imported for a list of presets."""
    program = (
        "import sys\nfrom hotloop.presets.named import preset_names\nfrom hotloop.core.workloads import workloads\n"
        "assert 'snake-dqn' in preset_names() and len(workloads()) == 5\n"
        "print(sorted(name for name in sys.modules if name.startswith('hotloop.workloads.')))\n"
        "print({'torch', 'numba', 'gymnasium', 'numpy'} & set(sys.modules))\n"
    )
    done = run(sys.executable, "-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    listed, heavy = done.stdout.splitlines()
    assert listed == str(sorted(f"hotloop.workloads.{name}" for name in OURS))
    assert heavy == "set()"


def test_the_order_of_envs_and_presets_is_as_it_was() -> None:
    assert [name for name, kind in list_envs() if kind == "native"] == ["cartpole", "snake", "sfc", "durotaxis"]
    assert preset_names()[:3] == ["dqn", "ppo", "sac"]
    assert preset_names()[3:] == sorted(preset_names()[3:])
    for workload in workloads.workloads()[1:]:
        assert all(file.stem.partition("-")[0] == workload.name for file in workloads.preset_files(workload))


def test_an_env_that_is_not_there_is_a_mistake_of_its_package(site: Path) -> None:
    (site / "empty.py").write_text(
        "from hotloop import Workload\nworkload = Workload(name='empty', envs={'void': 'empty:Void'})\n"
    )
    install(site, "empty", "empty:workload")
    with pytest.raises(EnvError, match="`void` cannot be loaded: AttributeError: module 'empty' has no"):
        make_envs(EnvSettings(id="void"), 1, np.zeros(1, np.uint64))


def test_runs_of_before_name_a_module_of_ours_where_it_was() -> None:
    env = EnvSettings(id="hotloop.envs.snake.gymnasium_env:hotloop/Snake-v0")
    envs = make_envs(env, 2, np.zeros(2, np.uint64))
    assert envs.reset()[0].shape[0] == 2
    envs.close()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("deploy run", "did you mean `hotloop durotaxis deploy`?"),
        ("topology dra graph.json", "did you mean `hotloop topology draw`?"),
        ("snake deploy", "it has none"),
        ("snak", "did you mean `snake`?"),
    ],
)
def test_a_verb_that_is_elsewhere_is_found(words: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert hint in capsys.readouterr().err


def test_a_workload_says_what_it_brings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verbs"] == {"draw": "Draw a network that is wired by a graph, and measure the graph."}
    assert (said["envs"], len(said["presets"])) == ([], 6)


def test_the_public_name_is_the_one_of_the_door() -> None:
    assert hotloop.Workload is Workload
