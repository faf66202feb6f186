"""Holds the import drawing: cli > guests > pages > tools > scale > loop > learners > lanes > parts > base > core; and
the line between what is light and what trains."""

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
TREES = {path: ast.parse(path.read_text()) for path in FILES}
LAYERS = [
    {"core"},
    {"maths", "render", "inputs"},
    {"runs"},
    {"presets"},
    {"envs", "nets", "replay", "doctor"},
    {"lanes"},
    {"learners"},
    {"loop"},
    {"scale"},
    {"proof", "comparison", "viewing", "export"},
    {"reporting", "tuning", "diagnosis", "dashboard"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
LIGHT = {"core", "render", "runs", "presets", "doctor", "proof", "scale", "comparison", "dashboard"}
"""What `pip install hotloop` is for: works without the extra `train`, and imports nothing below that line."""
STILL_BELOW = {
    "proof/env_play.py": {"envs"},
    "proof/env_players.py": {"envs"},
}
"""Files of light rooms that import what trains, and which of it; this list may only shrink."""
EDGE = {"cli", "api", "adapters", "__init__", "__main__"}
GUESTS = "workloads"
"""Import what they like up to the tools, and what a verb parses and prints with; nobody imports them."""
FOR_VERBS = {"hotloop.cli.arguments", "hotloop.cli.console"}
WOVEN_IN = {
    "nets.branches": {"lanes", "learners"},
    "nets.graphs": {"lanes", "learners", "loop"},
    "nets.topology": {"export", "reporting", "viewing"},
}
"""Networks that only one workload of ours has -> the parts that import them by name. They move into its folder when any
network has a way in. May only shrink."""
ONLY = {
    "doctor": {"core", "render"},
    "render": {"core"},
}
HEAVY = ("torch", "numba", "gymnasium", "PIL", "ray")
ALSO_HEAVY = ("llvmlite", "networkx", "scipy")
LOADED_AT_ONCE = {
    "core/kernel_cache.py": {"llvmlite", "numba"},
    "core/kernels.py": {"numba"},
    "proof/env_players.py": {"gymnasium"},
    "proof/module_inputs.py": {"torch"},
    "proof/module_pairs.py": {"torch"},
    "proof/module_training.py": {"torch"},
}
"""Files of light rooms that import a heavy library as they are loaded; this list may only shrink."""
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
    """`core`, `lanes`, or the stem of a file that stands at the top."""
    parts = path.relative_to(PACKAGE).parts
    return path.stem if len(parts) == 1 else parts[0]


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
        return EDGE | set(LEVEL)
    if part == GUESTS:
        return set(LEVEL) | {"cli", GUESTS}
    if part in ONLY:
        return ONLY[part] | {part}
    return {other for other in LEVEL if LEVEL[other] < LEVEL[part]} | {part}


def test_imports_point_down_only():
    places = EDGE | set(LEVEL) | set(ONLY) | {GUESTS}
    assert {part_of(path) for path in FILES} <= places, "a part has no place in the drawing"
    upwards = {name_of(path): imported_parts(path) - allowed(part_of(path)) for path in FILES}
    assert not {name: parts for name, parts in upwards.items() if parts}


def modules_of(folder: Path) -> dict[str, set[str]]:
    """By file, the first names of what it imports; a dot stands for a neighbor that is named from within."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "." for node in nodes if isinstance(node, ast.ImportFrom) if not node.level}
        names |= {"." for node in nodes if isinstance(node, ast.ImportFrom) if node.level}
        found[path.relative_to(folder).as_posix()] = {name.split(".")[0] or "." for name in names}
    return found


def test_nothing_installed_imports_the_benchmarks():
    """They are not there where hotloop is installed."""
    assert not [name for name, modules in modules_of(PACKAGE).items() if "benchmarks" in modules]


def test_a_witness_imports_nothing_of_ours():
    found = modules_of(PACKAGE.parents[1] / "benchmarks" / "witnesses")
    assert len(found) > 10
    assert not [name for name, modules in found.items() if modules & {"hotloop", "benchmarks", "tests", "."}]


def test_the_packages_of_the_benchmarks_begin_with_tables_of_their_files():
    for path in sorted((PACKAGE.parents[1] / "benchmarks").rglob("__init__.py")):
        table_names_its_files(path)


def test_nobody_imports_a_workload_but_through_the_door():
    """Nor by name: `core/workloads.py` lists them, older runs name their modules, and a remedy is a text."""
    others = [path for path in FILES if part_of(path) != GUESTS]
    assert not [name_of(path) for path in others if GUESTS in imported_parts(path)]
    naming = {name_of(path) for path in others if "hotloop.workloads." in path.read_text()}
    assert naming == {"core/workloads.py", "envs/gymnasium_make.py", "doctor/rules/searching.py"}


def test_workloads_know_neither_each_other_nor_more_of_the_command_line_than_verbs_need():
    for path in FILES:
        if part_of(path) == GUESTS and path.parent.name != GUESTS:
            modules = set(imported_modules(path, TREES[path]))
            own = f"hotloop.workloads.{path.parent.name}"
            assert all(f"{name}.".startswith(f"{own}.") for name in modules if name.startswith("hotloop.workloads")), (
                path
            )
            assert {name for name in modules if name.startswith("hotloop.cli")} <= FOR_VERBS, path


def test_the_networks_of_single_workloads_are_known_to_few():
    found: dict[str, set[str]] = {network: set() for network in WOVEN_IN}
    for path in FILES:
        for module in imported_modules(path, TREES[path]):
            for network in WOVEN_IN:
                if f"{module}.".startswith(f"hotloop.{network}.") and part_of(path) not in ("nets", GUESTS):
                    found[network].add(part_of(path))
    assert found == WOVEN_IN


def light_files() -> Iterator[tuple[str, Path]]:
    return ((name_of(path), path) for path in FILES if part_of(path) in LIGHT)


def test_light_rooms_import_light_rooms_only():
    found = {name: imported_parts(path) - LIGHT - {"__init__"} for name, path in light_files()}
    assert {name: parts for name, parts in found.items() if parts} == STILL_BELOW


def loaded_at_once(path: Path) -> set[str]:
    """Heavy libraries that a file imports outside of its functions; what only a type checker reads does not count."""
    imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = [module for node in imports for module in imported_modules(path, node)]
    return {module.partition(".")[0] for module in modules} & {*HEAVY, *ALSO_HEAVY}


def test_light_rooms_load_no_heavy_library():
    found = {name: loaded_at_once(path) for name, path in light_files()}
    assert {name: libraries for name, libraries in found.items() if libraries} == LOADED_AT_ONCE


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


def test_nothing_runs_code_that_it_reads():
    for path in FILES:
        tree = TREES[path]
        modules = {module.split(".")[0] for module in imported_modules(path, tree)}
        assert not modules & {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}, name_of(path)
        assert not list(dangerous(tree)), name_of(path)
        keywords = [keyword.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords]
        assert "allow_pickle" not in keywords, name_of(path)


def test_a_package_begins_with_a_table_of_its_files():
    for path in [path for path in FILES if path.name == "__init__.py"][1:]:
        table_names_its_files(path)


def table_names_its_files(path: Path) -> None:
    table = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("Files:\n")[2]
    lines = [line for line in table.splitlines() if line.startswith("    ") and line[4] != " "]
    inner = {file.parent.name for file in path.parent.glob("*/__init__.py")}
    there = inner | {file.name for file in path.parent.glob("*.py")} - {"__init__.py"}
    assert {line.split()[0].rstrip("/") for line in lines} == there, path


WRITES_TO_A_TERMINAL = ("core/terminal.py", "cli/console.py")
NOBODYS_TEXT_BUT_ITS_OWN = ("doctor/recorder/program.py",)
"""A script's last word, which is written as Python would write it."""


def test_text_reaches_a_terminal_through_one_door():
    """Names from elsewhere are shown, not obeyed: `print` and Rich's own console would pass their escapes on."""
    allowed_to = (*WRITES_TO_A_TERMINAL, *NOBODYS_TEXT_BUT_ITS_OWN)
    for path in (path for path in FILES if not name_of(path).startswith(allowed_to)):
        calls = [node.func for node in ast.walk(TREES[path]) if isinstance(node, ast.Call)]
        assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"print", "Console"}, name_of(path)


def test_a_verb_parses_calls_and_prints_in_at_most_eighty_lines():
    sizes = {verb: len((PACKAGE / "cli" / f"{verb.replace('-', '_')}.py").read_text().splitlines()) for verb in VERBS}
    assert not {verb: size for verb, size in sizes.items() if size > 80}


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
    words = "--total-env-steps 12 --learning-starts 8 --env.num-envs 4 --updates-per-env-step 1/4 --network.hidden 8"
    words += " --optimizer.max-grad-norm 10 --learner.lane eager --replay.buffer-size 64 --loss huber --batch-size 4"
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


def test_children_of_our_interpreter_have_one_launcher():
    """Under `python -m` and `python -c` files in the current folder hide Python's own."""
    assert not [name_of(path) for path in FILES if starts_with_the_current_folder(TREES[path])]
    assert {name_of(path) for path in FILES if names_our_interpreter(TREES[path])} == set(MAY_NAME_OUR_INTERPRETER)


def test_the_launcher_test_sees_what_it_is_to_see():
    assert names_our_interpreter(ast.parse("import sys as s\nrun([s.executable])"))
    assert names_our_interpreter(ast.parse("from sys import executable"))
    assert starts_with_the_current_folder(ast.parse("run([python, '-c', code])"))
    assert starts_with_the_current_folder(ast.parse("run((python, '-m', 'hotloop'))"))
    assert not starts_with_the_current_folder(ast.parse("run([python, '-I', '-c', code])"))


def test_temporary_folders_have_one_maker():
    """It removes those of verbs that were killed. A video's parts lie beside the video, in the user's folder."""
    makers = set()
    for path in FILES:
        named = {node.attr for node in ast.walk(TREES[path]) if isinstance(node, ast.Attribute)}
        named |= {node.name for node in ast.walk(TREES[path]) if isinstance(node, ast.alias)}
        if named & {"mkdtemp", "TemporaryDirectory", "mkstemp", "NamedTemporaryFile"}:
            makers.add(name_of(path))
    assert makers == {"core/temporary.py", "viewing/video.py"}


SHARED_CLASS_NAMES: dict[str, int] = {"Arm": 2, "Slice": 2}
"""Name -> number of classes that share it."""


def class_names() -> dict[str, int]:
    """Class name -> in how many places a class of that name is defined."""
    classes = [node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {name: classes.count(name) for name in set(classes) if classes.count(name) > 1}


def test_a_class_name_stands_for_one_class():
    """The list of those that do not may only shrink."""
    assert class_names() == SHARED_CLASS_NAMES
