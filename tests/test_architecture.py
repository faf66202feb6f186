"""Holds the import drawing: cli > pages > tools > scale > loop > learners > lanes > parts > maths, render > core."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.cli.main import VERBS

PACKAGE = Path(hotloop.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LAYERS = [
    {"core"},
    {"maths", "render", "inputs"},
    {"envs", "nets", "replay", "runs", "doctor"},
    {"lanes"},
    {"algos"},
    {"learners"},
    {"loop"},
    {"scale"},
    {"proof", "comparison", "viewing", "export"},
    {"reporting", "tuning", "diagnosis", "dashboard"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
EDGE = {"cli", "api", "adapters", "__init__", "__main__"}
ONLY = {
    "doctor": {"core", "render"},
    "render": {"core"},
    "presets": {"core"},
    "proof/reference": set(),
}
HEAVY = ("torch", "numba", "gymnasium", "PIL", "ray")
SIX_FILES = [
    "loop/off_policy.py",
    "loop/collector.py",
    "replay/buffer.py",
    "learners/dqn.py",
    "lanes/eager.py",
    "lanes/q_objective.py",
]
"""What docs/architecture.md names: one DQN update on the eager lane, from the env's step to Adam's."""
FORMULAS = ["maths/td.py", "maths/adam.py"]


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
    return below | {part} | ({"presets"} if LEVEL[part] >= LEVEL["algos"] else set())


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


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_parses_calls_and_prints_in_at_most_eighty_lines(verb):
    assert len((PACKAGE / "cli" / f"{verb.replace('-', '_')}.py").read_text().splitlines()) <= 80


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


def followed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """Lets a training note each deed of an update, with the files of ours through which the loop came to it."""
    import torch

    from hotloop.envs.cartpole import CartPole
    from hotloop.lanes import eager
    from hotloop.learners import dqn
    from hotloop.maths import td
    from hotloop.replay import buffer

    deeds: list[tuple[str, list[str]]] = []

    def watch(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            way, frame = [], sys._getframe(1)
            while frame is not None and (not way or way[-1] != SIX_FILES[0]):
                file = Path(frame.f_code.co_filename)
                way += [name_of(file)] if file.is_relative_to(PACKAGE) else []
                frame = frame.f_back
            deeds.append((name, list(dict.fromkeys(reversed(way)))))
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    watch(dqn, "draw_exploration")
    watch(CartPole, "step")
    watch(buffer, "store_step")
    watch(td, "td_target")
    watch(td, "huber")
    watch(torch.Tensor, "backward")
    watch(eager, "clip_scale")
    watch(eager, "adam_step")
    return deeds


def test_six_files_show_one_update_from_the_env_to_adam(tmp_path, monkeypatch, capsys):
    """Between the loop and each deed stand only files that are named, in the order in which they are named."""
    from hotloop.cli.main import main

    deeds = followed(monkeypatch)
    words = "--total-env-steps 12 --warmup-env-steps 8 --env.num-envs 4 --updates-per-env-step 1/4 --network.hidden 8"
    words += " --optimiser.max-gradient-norm 10 --learner.lane eager --replay.capacity 64 --loss huber --batch-size 4"
    words += " --n-step 1 --evaluation.every 12 --evaluation.episodes 1 --evaluation.final-episodes 1 --quiet --json"
    words += f" --run-dir {tmp_path}/run"
    assert main(["train", "cartpole-dqn", *words.split()]) == 0
    first_update = next(place for place, (name, _) in enumerate(deeds) if name == "td_target")
    loop, collector, replay, learner, lane, objective = SIX_FILES
    assert deeds[first_update - 3 : first_update + 5] == [
        ("draw_exploration", [loop, collector, learner]),
        ("step", [loop, collector]),
        ("store_step", [loop, replay]),
        ("td_target", [loop, learner, lane, objective]),
        ("huber", [loop, learner, lane, objective]),
        ("backward", [loop, learner, lane]),
        ("clip_scale", [loop, learner, lane]),
        ("adam_step", [loop, learner, lane]),
    ]


def test_the_reading_order_names_these_files_and_the_readme_leads_to_it():
    root = PACKAGE.parents[1]
    text = (root / "docs" / "architecture.md").read_text()
    order = text[text.index("## Reading order") :]
    places = [order.index(f"{name}`") for name in (*SIX_FILES, *FORMULAS)]
    assert places == sorted(places)
    assert "docs/architecture.md#reading-order" in (root / "README.md").read_text()


def test_one_dqn_update_can_be_read_in_one_sitting():
    assert sum(len((PACKAGE / name).read_text().splitlines()) for name in (*SIX_FILES, *FORMULAS)) <= 1_200


LAUNCHER = "core/children.py"
MAY_NAME_OUR_INTERPRETER = {
    LAUNCHER: "starts all children of ours",
    "doctor/script/interpreter.py": "what a user's script runs in where no other interpreter is named",
    "doctor/script/process.py": "the same, as a default; the child gets the path of `python script.py`",
    "doctor/script/plan.py": "the same, as a default",
    "comparison/scripts.py": "the same, for an arm that is a script",
    "comparison/jobs.py": "whether a script's interpreter is ours; starts nothing",
    "scale/work.py": "what a listed script runs in where no other interpreter is named",
    "proof/peers/libraries.py": "which interpreter has a library; starts none of ours",
    "proof/bench_peers.py": "runs one of our files by its path, with its own folder first",
}


def names_our_interpreter(tree: ast.AST) -> bool:
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "sys")
    named = any(node.attr in ("executable", "_base_executable") for node in attributes)
    return named or any(alias.name == "executable" for node in imports for alias in node.names)


def starts_with_the_current_folder(tree: ast.AST) -> bool:
    """A command with `-c` or `-m` that is not isolated."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            words = [one.value for one in node.elts if isinstance(one, ast.Constant)]
            if {"-c", "-m"} & set(words) and not {"-I", "-P"} & set(words):
                return True
    return False


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_children_of_our_interpreter_have_one_launcher(path):
    """Under `python -m` and `python -c` files in the current folder hide Python's own."""
    tree = ast.parse(path.read_text())
    assert not starts_with_the_current_folder(tree)
    assert names_our_interpreter(tree) == (name_of(path) in MAY_NAME_OUR_INTERPRETER)


def test_the_launcher_test_sees_what_it_is_to_see():
    assert names_our_interpreter(ast.parse("import sys as s\nrun([s.executable])"))
    assert names_our_interpreter(ast.parse("from sys import executable"))
    assert starts_with_the_current_folder(ast.parse("run([python, '-c', code])"))
    assert starts_with_the_current_folder(ast.parse("run((python, '-m', 'hotloop'))"))
    assert not starts_with_the_current_folder(ast.parse("run([python, '-I', '-c', code])"))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_temporary_folders_have_one_maker(path):
    """It removes those of verbs that were killed. A video's parts lie beside the video, in the user's folder."""
    named = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    named |= {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.alias)}
    maker = name_of(path) in ("core/temporary.py", "viewing/video.py")
    assert bool(named & {"mkdtemp", "TemporaryDirectory", "mkstemp", "NamedTemporaryFile"}) == maker
