"""Holds the import drawing: cli > reporting, tuning > tools > loop > algos > lanes > parts > maths, render > core."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import hotloop

PACKAGE = Path(hotloop.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LAYERS = [
    {"core"},
    {"maths", "render"},
    {"envs", "nets", "replay", "runs", "doctor"},
    {"lanes"},
    {"algos"},
    {"loop"},
    {"parts", "proof", "comparison", "viewing", "export", "scale", "dashboard"},
    {"reporting", "tuning"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
EDGE = {"cli", "api", "__init__", "__main__"}
ONLY = {
    "doctor": {"core", "render"},
    "render": {"core"},
    "presets": {"core"},
    "proof/reference": set(),
    "dashboard": {"runs", "doctor", "render", "core"},
}
HEAVY = ("torch", "numba", "gymnasium")
FOLLOW_ONE_UPDATE = [
    "cli/train.py",
    "api.py",
    "loop/off_policy.py",
    "loop/running.py",
    "loop/session.py",
    "loop/collector.py",
    "replay/buffer.py",
    "algos/dqn.py",
    "lanes/choice.py",
    "lanes/eager.py",
    "lanes/objective.py",
    "lanes/q_objective.py",
    "maths/td.py",
    "lanes/optimiser.py",
    "maths/adam.py",
]
"""What README and docs/architecture.md name: from the command line to the optimiser's step, on the eager lane."""
ON_THE_NATIVE_LANE = ["lanes/native/lane.py", "lanes/native/update_kernels.py"]
BELOW = ("nets/", "core/", "algos/dqn_settings.py", "replay/samplers.py", "replay/storage.py", "replay/layout.py")
"""What an update also calls, and README says so; kernels are told by their names."""


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part_of(path: Path) -> str:
    """`core`, `lanes`, `proof/reference`, or the stem of a file that stands at the top."""
    parts = path.relative_to(PACKAGE).parts
    if len(parts) == 1:
        return path.stem
    return "proof/reference" if parts[:2] == ("proof", "reference") else parts[0]


def imported_modules(path: Path, tree: ast.AST) -> Iterator[str]:
    package = ["hotloop", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ([f"hotloop.{alias.name}" for alias in node.names] if module == "hotloop" else [module])


def imported_parts(path: Path) -> set[str]:
    """Which parts of hotloop a file imports, wherever in the file."""
    modules = [module.split(".") for module in imported_modules(path, ast.parse(path.read_text()))]
    return {module[1] if len(module) > 1 else "__init__" for module in modules if module[0] == "hotloop"}


def allowed(part: str) -> set[str]:
    if part in EDGE:
        return EDGE | set(LEVEL) | {"presets"}
    if part in ONLY:
        return ONLY[part] | ({part} if part != "proof/reference" else set())
    below = {other for other in LEVEL if LEVEL[other] < LEVEL[part]}
    return below | {part} | ({"presets"} if LEVEL[part] >= LEVEL["proof"] else set())


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_down_only(path):
    part = part_of(path)
    assert part in EDGE | set(LEVEL) | set(ONLY), f"{part} has no place in the drawing"
    assert imported_parts(path) <= allowed(part)


def test_the_drawing_test_sees_relative_plain_and_nested_imports(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    file = tmp_path / "core" / "bad.py"
    file.parent.mkdir()
    file.write_text("import hotloop.loop.cadence\nfrom hotloop import cli\ndef f():\n    from ..nets import build\n")
    assert imported_parts(file) == {"loop", "cli", "nets"}
    assert not imported_parts(file) <= allowed("core")


def dangerous(tree: ast.AST) -> Iterator[str]:
    """Names that run code found in data."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
            yield node.func.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            called = f"{node.value.id}.{node.attr}"
            if called in ("torch.load", "torch.save", "builtins.eval", "builtins.exec", "yaml.load", "np.load"):
                yield called


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_nothing_runs_code_that_it_reads(path):
    tree = ast.parse(path.read_text())
    modules = {module.split(".")[0] for module in imported_modules(path, tree)}
    assert not modules & {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
    assert not list(dangerous(tree))
    keywords = [keyword.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords]
    assert "allow_pickle" not in keywords


@pytest.mark.parametrize("path", [path for path in FILES if path.name == "__init__.py"][1:], ids=name_of)
def test_a_package_begins_with_a_table_of_its_files(path):
    table = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("Files:\n")[2]
    named = {line.split()[0].rstrip("/") for line in table.splitlines() if line.startswith("    ") and line[4] != " "}
    inner = {file.parent.name for file in path.parent.glob("*/__init__.py")}
    assert named == inner | {file.name for file in path.parent.glob("*.py")} - {"__init__.py"}


WRITES_TO_A_TERMINAL = ("core/terminal.py", "cli/console.py")
NOBODYS_TEXT_BUT_ITS_OWN = ("proof/peers/", "proof/reference/", "doctor/recorder/program.py")
"""Programs of their own, and a script's last word, which is written as Python would write it."""


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_text_reaches_a_terminal_through_one_door(path):
    """Names from elsewhere are shown, not obeyed: `print` and Rich's own console would pass their escapes on."""
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    called = {call.id for call in calls if isinstance(call, ast.Name)} & {"print", "Console"}
    assert not called or name_of(path) in WRITES_TO_A_TERMINAL or name_of(path).startswith(NOBODYS_TEXT_BUT_ITS_OWN)


def test_help_answers_without_the_heavy_libraries():
    program = (
        "import json, sys\n"
        "from hotloop.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as leave:\n    assert not leave.code\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout
    assert not set(HEAVY) & set(json.loads(done.stderr))


def test_importing_the_package_is_light_until_something_is_asked_for():
    program = f"import sys, hotloop; raise SystemExit(any(name in sys.modules for name in {HEAVY!r}))"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def files_run_by(work: Callable[[], object]) -> set[str]:
    """The package's files whose functions were called."""
    files: set[str] = set()
    root = f"{PACKAGE}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            files.add(frame.f_code.co_filename.removeprefix(root))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return files


def trained_on(lane: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """Files that a short training runs through, and those within sampling and updating alone."""
    from hotloop.algos.dqn import DQNLearner
    from hotloop.cli.main import main
    from hotloop.replay.buffer import Replay

    words = [
        "--total-env-steps",
        "400",
        "--warmup-env-steps",
        "200",
        "--env.num-envs",
        "4",
        "--network.hidden",
        "8",
        "--quiet",
        "--json",
    ]
    words += ["--evaluation.episodes", "1", "--evaluation.final-episodes", "1", "--learner.lane", lane]
    assert main(["train", "cartpole-dqn", *words, "--run-dir", str(folder / "compiled-before")]) == 0
    inside: set[str] = set()
    for cls, name in ((Replay, "sample"), (DQNLearner, "update")):
        monkeypatch.setattr(cls, name, _watched(getattr(cls, name), inside))
    outside = files_run_by(lambda: main(["train", "cartpole-dqn", *words, "--run-dir", str(folder / "run")]))
    return outside, inside


def _watched(method: Callable[..., Any], files: set[str]) -> Callable[..., Any]:
    def watched(*arguments: Any) -> Any:
        outer, answer = sys.getprofile(), []
        files.update(files_run_by(lambda: answer.append(method(*arguments))))
        sys.setprofile(outer)
        return answer[0]

    return watched


@pytest.mark.parametrize("lane", ["eager", "native"])
def test_an_update_happens_in_the_files_that_are_named(lane, tmp_path, monkeypatch, capsys):
    """Each file named is run through, and an update runs through none that is not."""
    outside, inside = trained_on(lane, tmp_path, monkeypatch)
    eager = FOLLOW_ONE_UPDATE[FOLLOW_ONE_UPDATE.index("lanes/eager.py") :]
    named = set(FOLLOW_ONE_UPDATE) if lane == "eager" else {*FOLLOW_ONE_UPDATE, *ON_THE_NATIVE_LANE} - set(eager)
    assert named <= outside | inside
    others = {name for name in inside - named if not name.startswith(BELOW) and not name.endswith("_kernels.py")}
    assert not others


@pytest.mark.parametrize("document", ["README.md", "docs/architecture.md"])
def test_documents_name_these_files_in_this_order(document):
    text = (PACKAGE.parents[1] / document).read_text()
    assert "fifteen files" in text
    assert len(FOLLOW_ONE_UPDATE) == 15
    order = text[text.index("Reading order") if "Reading order" in text else text.index("## Follow one update") :]
    places = [order.index(f"{name}`") for name in (*FOLLOW_ONE_UPDATE, *ON_THE_NATIVE_LANE)]
    assert places == sorted(places)


def test_one_dqn_update_can_be_followed_within_two_thousand_lines():
    assert sum(len((PACKAGE / name).read_text().splitlines()) for name in FOLLOW_ONE_UPDATE) <= 2_000


def test_the_files_one_follows_lead_from_one_to_the_next():
    """Each file of the list is imported by one before it: the path has no hole."""
    for position, name in enumerate(FOLLOW_ONE_UPDATE[1:], start=1):
        module = "hotloop." + name.removesuffix(".py").replace("/", ".")
        package, _, last = module.rpartition(".")
        imported = set()
        for before in FOLLOW_ONE_UPDATE[:position]:
            tree = ast.parse((PACKAGE / before).read_text())
            imported |= set(imported_modules(PACKAGE / before, tree))
            imported |= {
                f"{node.module}.{alias.name}"
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
        assert module in imported or f"{package}.{last}" in imported, module
