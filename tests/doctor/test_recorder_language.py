"""The recorder runs in the user's interpreter: standard library only, and the language of Python 3.8."""

import ast
import subprocess
import sys
from pathlib import Path

import hotloop.doctor.recorder
from hotloop.doctor.recorder.child import NAME

FOLDER = Path(hotloop.doctor.recorder.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
LATER = {
    "cache": "functools, 3.9",
    "removeprefix": "3.9",
    "removesuffix": "3.9",
    "pairwise": "itertools, 3.10",
    "co_lines": "3.10",
    "co_qualname": "3.11",
    "stdlib_module_names": "3.10",
    "orig_argv": "3.10",
    "is_relative_to": "3.9",
    "Match": "ast, 3.10",
    "match_case": "ast, 3.10",
    "with_stem": "3.9",
    "unparse": "ast, 3.9",
    "bit_count": "3.10",
}
"""Names that a reader of today's documentation reaches for."""


def outside_annotations(tree):
    """All nodes but annotations and what stands under `if TYPE_CHECKING`: these are never evaluated."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                found = value if isinstance(value, list) else [value]
                waiting.extend(child for child in found if isinstance(child, ast.AST))


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level == 1 else (node.module or "..").partition(".")[0]


def test_the_recorder_imports_its_own_files_and_the_standard_library_only():
    for path in FILES:
        assert set(imports(ast.parse(path.read_text()))) <= {".", *sys.stdlib_module_names}, path.name


RUN_TIME_KINDS = {"list", "dict", "set", "tuple", "frozenset", "type", "deque"}
RUN_TIME_KINDS |= {"Callable", "Iterator", "Sequence", "Mapping"}


def test_the_recorder_is_written_in_the_language_of_python_3_8():
    for path in FILES:
        require_python_3_8(path.name, ast.parse(path.read_text(), feature_version=(3, 8)))


def require_python_3_8(name, tree):
    for node in outside_annotations(tree):
        line = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            assert node.value.id not in RUN_TIME_KINDS, f"{line}: subscripted at run time, 3.9"
        if isinstance(node, ast.Attribute):
            assert node.attr not in LATER, f"{line}: {node.attr}, {LATER[node.attr]}"
        if isinstance(node, ast.ImportFrom):
            assert not {alias.name for alias in node.names} & set(LATER), line
        if isinstance(node, ast.Call):
            wrong = {keyword.arg for keyword in node.keywords} & {"strict", "kw_only", "slots"}
            assert not wrong, f"{line}: {wrong}, 3.10"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            assert not isinstance(node.left, ast.Dict), f"{line}: 3.9"
            assert not isinstance(node.right, ast.Dict), f"{line}: 3.9"


def test_python_itself_and_the_recorder_see_the_same_package_under_two_names(tmp_path):
    """Started as a file, it neither imports hotloop nor leaves its folder on the path."""
    script = tmp_path / "look.py"
    script.write_text(
        "import sys\n"
        "print('hotloop' in sys.modules, any(p.endswith('recorder') for p in sys.path), sys.path[0], sep='|')\n"
        f"print([name for name in sys.modules if name.startswith({NAME!r})][0])\n"
    )
    order = tmp_path / "order.json"
    fields = f'"script": "{script}", "kind": "timing", "seconds": 1.0, "result": "{tmp_path / "trace.json"}"'
    order.write_text("{" + fields + "}")
    done = subprocess.run([sys.executable, str(FOLDER / "child.py"), str(order)], capture_output=True, text=True)
    assert done.stdout == f"False|False|{tmp_path}\n{NAME}\n", done.stderr
    assert (tmp_path / "trace.json").exists()


def test_a_module_beside_the_script_is_found_before_one_that_only_the_recorder_has_loaded(tmp_path):
    (tmp_path / "dis.py").write_text("mine = True\n")
    script = tmp_path / "look.py"
    script.write_text("import dis\nprint(dis.mine)\n")
    (tmp_path / "order.json").write_text(
        f'{{"script": "{script}", "kind": "timing", "seconds": 1.0, "result": "{tmp_path / "trace.json"}"}}'
    )
    command = [sys.executable, str(FOLDER / "child.py"), str(tmp_path / "order.json")]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "True\n"
