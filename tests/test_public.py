"""What `import hotloop` offers: functions and classes that explain themselves, hidden by no package, and that work."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import hotloop
from hotloop.comparison import jobs
from tests.comparison.synthetic_runs import make_arm, write_run

NOT_IMPORTED = ("hotloop.__main__", "hotloop.dashboard.")
"""Programs: one runs when it is imported, the others need libraries that may not be here."""
TINY = {
    "total_env_steps": 400,
    "learning_starts": 100,
    "batch_size": 8,
    "network": {"hidden": [8]},
    "evaluation": {"episodes": 2, "final_episodes": 3},
}


CASES = """
import hotloop
import torch


@hotloop.cases("as many threads as one")
def planted():
    return [hotloop.Case("right", "n1", lambda: hotloop.Programs(lambda: 1, torch.get_num_threads))]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A trained run of four hundred env steps, as the first example makes it."""
    folder = tmp_path_factory.mktemp("public") / "run"
    return str(hotloop.train(hotloop.preset("cartpole-dqn", run_dir=str(folder), **TINY))["run"])


@pytest.fixture(scope="module", autouse=True)
def _every_submodule() -> None:
    """What a submodule's import puts into `hotloop` is there when the names are looked up."""
    for module in pkgutil.walk_packages(hotloop.__path__, "hotloop."):
        if not module.name.startswith(NOT_IMPORTED):
            importlib.import_module(module.name)


@pytest.mark.parametrize("name", hotloop.__all__)
def test_a_public_name_is_a_function_or_class_that_explains_itself(name: str) -> None:
    thing = getattr(hotloop, name)
    assert not isinstance(thing, ModuleType)
    assert inspect.isfunction(thing) or inspect.isclass(thing)
    assert thing.__module__ == f"hotloop.{hotloop._HOMES[name]}"
    assert len(inspect.getdoc(thing) or "") > 20
    if inspect.isfunction(thing):
        assert thing.__annotations__.keys() == {*inspect.signature(thing).parameters, "return"}
        assert f"hotloop.{name}(" in (thing.__doc__ or ""), "no example"


def test_the_names_that_checkers_see_are_those_that_are_there() -> None:
    source = Path(hotloop.__file__).read_text()
    assert all(f"from hotloop.{home} import {name} as {name}\n" in source for name, home in hotloop._HOMES.items())
    assert hotloop.__all__ == sorted(hotloop._HOMES)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = hotloop.trian


@pytest.mark.parametrize(
    "words",
    [
        ["train", "cartpole-dqm"],
        ["compare", "cartpole-dqm", "--seeds", "2"],
        ["tune", "cartpole-dqm", "--search", "n_step=1,3", "--trials", "2"],
    ],
    ids=lambda words: words[0],
)
def test_a_typo_in_the_name_of_a_preset_is_answered_before_pytorch_is_loaded(words: list[str]) -> None:
    program = (
        "import json, sys\n"
        "from hotloop.cli.main import main\n"
        f"code = main({words!r})\n"
        "print(json.dumps([code, sorted({'torch', 'numba', 'gymnasium'} & set(sys.modules))]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout) == [2, []]
    assert "did you mean `cartpole-dqn`" in done.stderr


def test_train_load_evaluate_and_resume(run: str) -> None:
    assert hotloop.load(run).act([0.0, 0.0, 0.0, 0.0]) in (0, 1)
    assert hotloop.evaluate(run, episodes=2)["episodes"] == 2
    assert hotloop.resume(run)["env_steps"] == 400


def test_report_writes_the_page_that_it_returns(run: str, tmp_path: Path) -> None:
    made = hotloop.report(run, html=tmp_path / "page.html", frames=False)
    assert made.file == tmp_path / "page.html"
    assert made.file.read_text() == made.html == hotloop.report(run, frames=False, write=False).html
    assert made.data["bytes"] == made.file.stat().st_size
    assert "400 env steps" in made.sentence


def test_export_agent_writes_parameters(run: str, tmp_path: Path) -> None:
    written = hotloop.export_agent(run, torch=tmp_path / "agent.safetensors")
    assert list(written) == ["run", "safetensors", "notes"]
    assert (tmp_path / "agent.safetensors").stat().st_size == written["safetensors"]["bytes"]
    with pytest.raises(hotloop.HotloopError, match="neither"):
        hotloop.export_agent(run)


def test_compare_judges_finished_runs_and_writes_its_files(run_folder: Path) -> None:
    for label, score in (("plain", 10.0), ("better", 60.0)):
        for seed in range(3):
            write_run(Path("old", label, f"seed-{seed}"), make_arm(label, gamma=score / 100), seed, [1.0, score + seed])
    found = hotloop.compare(Path("old/plain"), "new=old/better", threshold=50, html="page.html", out="there")
    (contrast,) = found.contrasts
    assert (contrast.arm, contrast.reference) == ("new", "plain")
    options = "--threshold 50 --measure mean_return --out there"
    assert found.question.command == f"hotloop compare old/plain new=old/better {options}"
    assert json.loads(Path("there/compare.json").read_text()) == {"schema": 1, **found.as_data()}
    curves = {f"curve-{x}.{kind}" for x in ("env-steps", "seconds") for kind in ("svg", "png")}
    assert {path.name for path in found.folder.iterdir()} == {"compare.json", "table.md", *curves}
    assert "old/better" in Path("page.html").read_text()


def test_compare_takes_overrides_as_preset_does_and_tells_what_failed(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(planned: list[jobs.TrainingJob], workers: int, watch: object) -> None:
        for job in planned:
            job.status, job.error = "failed", "no such luck"

    monkeypatch.setattr(jobs, "run_jobs", fail)
    found = hotloop.compare("cartpole-dqn", "cartpole-dqn --double false", seeds=2, overrides=TINY)
    assert [job.name for job in found.failed][:2] == ["cartpole-dqn, seed 0", "cartpole-dqn, double false, seed 0"]
    one, other = (summary.arm.settings for summary in found.summaries)
    assert (one["network"]["hidden"], one["evaluation"]["final_episodes"]) == ([8], 3)
    assert (one["double"], other["double"]) == (True, False)
    assert found.question.command.endswith("--evaluation.final-episodes 3")
    with pytest.raises(hotloop.HotloopError, match="seeds"):
        hotloop.compare("cartpole-dqn")
    with pytest.raises(hotloop.HotloopError, match="unknown setting `gama`"):
        hotloop.compare("cartpole-dqn", seeds=1, overrides={"gama": 0.9})


def test_prove_holds_cases_equal_and_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "cases_of_a_file.py"
    path.write_text(CASES)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (row,) = hotloop.prove(f"{path}::right", seconds=0.01)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert row.verdict == "identical"  # what both answer is the number of threads, and that is 1
    assert row.cost is not None
    assert row.as_data()["speedup"] == row.cost.speed.ratio
    with pytest.raises(hotloop.HotloopError, match="no case `wrong`"):
        hotloop.prove(f"{path}::wrong")
    with pytest.raises(hotloop.HotloopError, match="nothing was named"):
        hotloop.prove()
