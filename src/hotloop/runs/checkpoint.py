"""Checkpoints: one folder of safetensors and JSON files each, complete under its final name or not there at all.

    checkpoints/000000000200000/learner.safetensors learner.json ... manifest.json

A folder is written under a temporary name, every file fsynced, the manifest last; then renamed, and the parent
fsynced. A crash at any point leaves a temporary folder, which is never read, or a complete checkpoint.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hotloop.core.errors import CheckpointError, RunError
from hotloop.runs.files import (
    TEMPORARY,
    FileRecord,
    explained,
    fsync_folder,
    make_folder,
    remove_folder,
    temporary_beside,
    write_chunks,
)
from hotloop.runs.flatten import join, split
from hotloop.runs.manifest import (
    MANIFEST,
    Manifest,
    check_sizes,
    damage_named,
    encode_manifest,
    is_part_name,
    read_manifest,
    read_verified,
    verify_file,
)
from hotloop.runs.plain import MAX_JSON_BYTES, canonical_json, json_safe, parse_json
from hotloop.runs.tensors import decode, encode

State = dict[str, dict[str, Any]]


def checkpoint_name(env_steps: int) -> str:
    """Names that sort by env steps."""
    return f"{env_steps:015d}"


def save(folder: Path, name: str, state: Mapping[str, Mapping[str, Any]], meta: Mapping[str, Any]) -> Path:
    """Write a checkpoint into `folder`; where `name` is taken (saved again after a resume) it becomes `name-1`."""
    if not is_part_name(name) or "-" in name or not all(map(is_part_name, state)):
        raise RunError(f"checkpoint {name!r} with parts {list(state)}: names are letters, digits and `_`")
    pieces = {part: split(content) for part, content in state.items()}
    saved_meta = json_safe(meta, "meta")
    make_folder(folder)
    final = _free_name(folder, name)
    temporary = temporary_beside(final)
    with explained("write checkpoint", final):
        try:
            temporary.mkdir()
            files = _write_parts(temporary, pieces)
            write_chunks(temporary / MANIFEST, [encode_manifest(files, saved_meta)])
            fsync_folder(temporary)
            os.rename(temporary, final)
            fsync_folder(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return final


def load(path: Path) -> tuple[State, dict[str, Any]]:
    """State and meta of a checkpoint, every byte verified; CheckpointError names the file that is wrong."""
    manifest = read_manifest(path)
    check_sizes(path, manifest)
    return {part: _load_part(path, part, manifest) for part in manifest.parts}, manifest.meta


def verify(path: Path) -> None:
    """Raise CheckpointError unless every file is what was saved; holds none of them in memory."""
    manifest = read_manifest(path)
    check_sizes(path, manifest)
    for name, record in manifest.files.items():
        verify_file(path, name, record)


def newest(folder: Path, warn: Callable[[str], None]) -> tuple[Path, State, dict[str, Any]] | None:
    """The newest checkpoint that can be loaded, or None where there is none; damaged ones are told to `warn`."""
    errors: list[CheckpointError] = []
    for path in _newest_first(folder):
        try:
            return path, *load(path)
        except CheckpointError as error:
            errors.append(error)
            warn(f"checkpoint {path.name} cannot be used: {error.message}; trying the one before it")
    if not errors:
        return None
    raise CheckpointError(
        f"none of the {len(errors)} checkpoints in {folder} can be used; the newest: {errors[0].message}",
        errors[0].hint or "restore the folder from a copy, or start the run anew in another directory",
    )


def keep(folder: Path, count: int = 2) -> None:
    """Remove all but the newest `count` verified checkpoints, and what crashes left behind.

    Where not a single one verifies nothing is removed: damaged is better than gone.
    """
    if count < 1:
        raise ValueError(f"at least one checkpoint must be kept, not {count}")
    kept: list[Path] = []
    surplus: list[Path] = []
    for path in _newest_first(folder):
        (kept if len(kept) < count and _verifies(path) else surplus).append(path)
    for path in surplus if kept else []:
        remove_folder(path)
    for path in folder.glob(TEMPORARY + "*"):
        remove_folder(path)


def _write_parts(folder: Path, pieces: Mapping[str, tuple[Any, Any]]) -> dict[str, FileRecord]:
    files = {}
    for part, (arrays, tree) in pieces.items():
        files[f"{part}.safetensors"] = write_chunks(folder / f"{part}.safetensors", encode(arrays))
        files[f"{part}.json"] = write_chunks(folder / f"{part}.json", [_encoded_values(part, tree)])
    return files


def _encoded_values(part: str, tree: dict[str, Any]) -> bytes:
    encoded = canonical_json(tree)
    if len(encoded) > MAX_JSON_BYTES:  # `load` would refuse it
        raise RunError(f"part `{part}` has {len(encoded)} bytes outside arrays", "save long lists as numpy arrays")
    return encoded


def _load_part(folder: Path, part: str, manifest: Manifest) -> dict[str, Any]:
    values, tensors = f"{part}.json", f"{part}.safetensors"
    with damage_named(folder / values):
        if manifest.files[values].size > MAX_JSON_BYTES:
            raise ValueError(f"more than {MAX_JSON_BYTES} bytes of JSON")
        tree = parse_json(read_verified(folder, values, manifest.files[values]), folder / values)
        if not isinstance(tree, dict):
            raise ValueError("an object was expected")
    with damage_named(folder / tensors):
        return join(decode(read_verified(folder, tensors, manifest.files[tensors])), tree)


def _verifies(path: Path) -> bool:
    try:
        verify(path)
    except CheckpointError:
        return False
    return True


def _newest_first(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with explained("read", folder), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and is_part_name(entry.name)]
    return [folder / name for name in sorted(names, key=_order, reverse=True)]


def _order(name: str) -> tuple[str, int]:
    base, _, again = name.partition("-")
    return base, int(again) if again.isdecimal() else 0


def _free_name(folder: Path, name: str) -> Path:
    """`name`, or `name-K` with K above all that exist, so that the latest save sorts last."""
    taken = [_order(path.name)[1] for path in _newest_first(folder) if path.name.partition("-")[0] == name]
    return folder / (f"{name}-{max(taken) + 1}" if taken else name)
