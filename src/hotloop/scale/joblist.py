"""`jobs.jsonl`: the runs of a comparison as one file that any machine can work through, a JSON object on each line.

    {"kind": "jobs", "schema": 1, "jobs": 16, "expects": {...}, "command": "hotloop compare ..."}
    {"kind": "files", "root": "/home/me/envs", "sha256": ..., "files": {"my_env.py": base64}}
    {"kind": "run", "index": 0, "name": "plain, seed 0", "folder": "plain/seed-0", "seed": 0, "settings": {...}, ...}

What is read may come from anybody: it has no say in where on this machine anything is written, code in it runs only
under `--trust`, and settings pass the same strict loader as those of a preset.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError, RunError, SettingsError
from hotloop.core.settings import as_tree, build, flatten
from hotloop.core.values import nearest, shortened
from hotloop.core.vocabulary import upgraded
from hotloop.presets.registry import class_of
from hotloop.runs.files import SCHEMA, canonical_json, parse_strict, read_file, write_file
from hotloop.scale.specs import OF_THIS_MACHINE, Files, digest_of, inner_path, learning_settings, read_folder

MOST_LIST_BYTES = 256 * 2**20
_HINT = "`hotloop compare ... --plan jobs.jsonl` writes such a list"
_FIELDS = {
    "run": {"kind", "index", "name", "folder", "label", "seed", "settings", "roots"},
    "script": {"kind", "index", "name", "folder", "seed", "settings", "script", "arguments", "python", "roots"},
}


@dataclass(frozen=True)
class ListedJob:
    index: int
    name: str
    folder: str
    """Within whatever folder the runs of the list are put into."""
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class JobList:
    jobs: Sequence[ListedJob]
    expects: Mapping[str, Any]
    """`core.arithmetic` of the machine that made it."""
    command: str
    folders: Mapping[str, Files]
    """Folders of the user's own, by where they lie at home."""

    def job(self, index: int) -> ListedJob:
        if not 0 <= index < len(self.jobs):
            raise RunError(f"there is no job {index}", f"the list has jobs 0 to {len(self.jobs) - 1}")
        return self.jobs[index]


def make_list(jobs: Sequence[ListedJob], expects: Mapping[str, Any], command: str) -> JobList:
    """With the content of every folder that a job names."""
    roots = sorted({root for job in jobs for root in job.spec["roots"]})
    return JobList(jobs, expects, command, {root: read_folder(Path(root)) for root in roots})


def encode_list(jobs: JobList) -> bytes:
    head = {"kind": "jobs", "schema": SCHEMA, "jobs": len(jobs.jobs), "expects": jobs.expects, "command": jobs.command}
    lines: list[Mapping[str, Any]] = [head]
    for root, files in jobs.folders.items():
        content = {name: base64.b64encode(data).decode() for name, data in files.items()}
        lines.append({"kind": "files", "root": root, "sha256": digest_of(files), "files": content})
    for job in jobs.jobs:
        lines.append({"index": job.index, "name": job.name, "folder": job.folder, **job.spec})
    return b"".join(canonical_json(line) + b"\n" for line in lines)


def default_out(path: Path) -> Path:
    """Where the runs of a list lie unless told otherwise: beside it. The list itself has no say in it."""
    return path.with_suffix("") if path.suffix else path.with_name(f"{path.name}-runs")


def write_list(jobs: JobList, path: Path) -> None:
    write_file(path, encode_list(jobs))


def read_list(path: Path) -> JobList:
    """RunError or SettingsError names the line that is wrong."""
    return decode_list(read_file(path, MOST_LIST_BYTES), str(path))


def decode_list(data: bytes, source: str) -> JobList:
    lines = data.splitlines()
    with _line_named(source, 1):
        head = _object(lines[0] if lines else b"")
        if head.get("kind") != "jobs":
            raise ValueError("this is no list of jobs")
        if head.get("schema") != SCHEMA:
            raise ValueError(f"it has schema version {shortened(head.get('schema'))}; this hotloop reads {SCHEMA}")
        expects, command = head.get("expects"), head.get("command")
        if not isinstance(expects, dict) or not isinstance(command, str):
            raise ValueError("`expects` or `command` is missing")
    jobs: list[ListedJob] = []
    folders: dict[str, Files] = {}
    for number, line in enumerate(lines[1:], start=2):
        with _line_named(source, number):
            content = _object(line)
            if content.get("kind") == "files":
                root, files = _files(content)
                folders[root] = files
            else:
                jobs.append(_job(content, len(jobs), folders))
    with _line_named(source, 1):
        if head.get("jobs") != len(jobs):
            raise ValueError(
                f"it tells of {shortened(head.get('jobs'))} jobs and holds {len(jobs)}: it was cut or edited"
            )
    return JobList(jobs, expects, command, folders)


@contextmanager
def _line_named(source: str, number: int) -> Iterator[None]:
    try:
        yield
    except HotloopError as error:
        raise type(error)(f"{source}, line {number}: {error.message}", error.hint) from None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise RunError(f"{source}, line {number}: {error}", _HINT) from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = parse_strict(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    return value


def _files(content: Mapping[str, Any]) -> tuple[str, Files]:
    root, files = content.get("root"), content.get("files")
    if not isinstance(root, str) or not Path(root).is_absolute() or not isinstance(files, dict):
        raise ValueError("`root` is no whole path, or `files` is no table")
    try:
        found = {str(inner_path(name)): base64.b64decode(text, validate=True) for name, text in files.items()}
    except binascii.Error:
        raise ValueError("a file is not in base64") from None
    if digest_of(found) != content.get("sha256"):
        raise ValueError(f"the files of {root} are not those that were put in")
    return root, found


def _job(content: dict[str, Any], index: int, folders: Mapping[str, Files]) -> ListedJob:
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in _FIELDS:
        near = nearest(str(kind)[:80], [*_FIELDS, "files"])
        raise ValueError(f"`kind` is {shortened(kind)}" + (f"; did you mean `{near}`?" if near else ""))
    unknown = sorted(content.keys() - _FIELDS[kind]) + sorted(_FIELDS[kind] - content.keys())
    if unknown:
        raise ValueError(f"`{shortened(unknown[0])}` is missing or no field of a job")
    if content["index"] != index:
        raise ValueError(f"`index` is {shortened(content['index'])}, expected {index}")
    name, folder, seed = content["name"], str(inner_path(content["folder"])), content["seed"]
    if not isinstance(name, str) or type(seed) is not int or not 0 <= seed < 2**63:
        raise ValueError("`name` is no text, or `seed` no number from 0 on")
    roots = content["roots"]
    if not isinstance(roots, list) or not all(root in folders for root in roots):
        raise ValueError("it needs files that stand nowhere before it")
    spec = {key: content[key] for key in content.keys() - {"index", "name", "folder"}}
    return ListedJob(index, name, folder, _checked_run(spec) if kind == "run" else _checked_script(spec))


def _checked_run(spec: dict[str, Any]) -> dict[str, Any]:
    """Settings as this hotloop understands them, all of them."""
    if not isinstance(spec["settings"], dict) or not isinstance(spec["label"], str):
        raise ValueError("`settings` is no table, or `label` no text")
    given = upgraded(spec["settings"], "its settings")
    tree = as_tree(build(class_of(given), {**given, "trust": False}, source="its settings"))
    flat = flatten(tree)
    for name in OF_THIS_MACHINE:
        if flat.get(name):
            raise SettingsError(f"`{name}` is {shortened(flat[name])}, a path on somebody's machine", "leave it out")
    return spec | {"settings": learning_settings(tree)}


def _checked_script(spec: dict[str, Any]) -> dict[str, Any]:
    script, words = spec["script"], spec["arguments"]
    texts = [script, spec["python"], *(words if isinstance(words, list) else [None])]
    if not all(isinstance(text, str) for text in texts) or not isinstance(spec["settings"], dict):
        raise ValueError("`script`, `python` or `arguments` is no text, or `settings` no table")
    if [str(Path(script).parent)] != spec["roots"]:
        raise ValueError("`script` does not lie in the folder that was sent with it")
    return spec
