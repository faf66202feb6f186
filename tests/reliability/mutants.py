"""Damages and forges the files of a run, each time in another way that its number decides."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import struct
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w

PLAIN = ("settings.toml", "run.json", "lane.json", "events.jsonl", "result.json", "trace.json", "lock")
JSON_FILES = ("run.json", "lane.json", "result.json", "trace.json")
PROLONG = ("total_env_steps", "total_episodes", "episodes", "max_episode_steps", "n_epochs", "rollout_steps", "every")
"""Settings that may make a run longer, which is no fault of its files."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 255, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**19, 10**40, 10**400,
    0.5, -0.0, 1e308, -1e308, 1e-320, float("inf"), float("-inf"), float("nan"),
    "", "x", "native", "eager", "cartpole", "x" * 5_000, "../../etc/passwd", "\ud800", "\x1b[31m", "[bold]", "1e6",
    "NaN",
    [], [[]], {}, [1, 2, 3], [0] * 2_000, deep(20), deep(900), {"a": {"b": {"c": 1}}}, {"": None}, [None], ["x"], "1/0",
    [25_000, 25_000], [10**12], 25_000, 10**9,
]  # fmt: skip
TOML_TEXTS = [
    ".".join("a" * 30_000) + " = 1\n",
    "a = " + "[" * 20_000 + "]" * 20_000 + "\n",
    "a = " + "{b=" * 5_000 + "1" + "}" * 5_000 + "\n",
    "[" + ".".join("b" * 900) + "]\nx = 1\n",
    "seed = " + "9" * 5_000 + "\n",
    "[env.options]\n" + "".join(f"o{number} = {number}\n" for number in range(3_000)),
    "[[env]]\n" * 2_000,
    "\x00", "=", "[network]\nhidden = [25000, 25000]\n", "# " + "x" * 300_000, "'''", "a = 1979-05-27T07:32:00Z\n",
]  # fmt: skip


class Mutant:
    """One damaged copy of a run; `done` says how."""

    def __init__(self, run: Path, number: int) -> None:
        self.run = run
        self.draw = random.Random(number)
        self.done: list[str] = []
        kinds: list[tuple[int, Callable[[], None]]] = [
            (4, self.damage_bytes),
            (5, self.change_json),
            (3, self.change_events),
            (5, self.change_settings),
            (1, self.change_settings_text),
            (3, self.change_settings_everywhere),
            (6, self.forge_meta),
            (5, self.forge_values),
            (6, self.forge_tensors),
            (2, self.forge_header),
            (2, self.change_shape_of_folder),
        ]
        for _ in range(self.draw.choice([1, 1, 1, 2, 3])):
            (kind,) = self.draw.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])
            with contextlib.suppress(OSError, LookupError, ValueError, TypeError, AttributeError, struct.error):
                kind()  # an earlier change may have been thorough
            if kind == self.change_shape_of_folder:  # there may be a pipe now, for others to be stalled by
                break

    def told(self, *words: object) -> None:
        self.done.append(" ".join(str(word)[:60] for word in words))

    def damage_bytes(self) -> None:
        files = [path for path in self.run.rglob("*") if path.is_file() and not path.is_symlink()]
        path = self.draw.choice([*files, *(self.run / name for name in PLAIN if (self.run / name).is_file())])
        content, draw = path.read_bytes(), self.draw
        at = draw.randrange(len(content) + 1)
        changed = draw.choice([
            content[:at],
            content[:at] + bytes([draw.randrange(256)]) + content[at + 1 :],
            content[:at] + draw.randbytes(draw.randrange(1, 40)) + content[at:],
            b"", bytes(len(content)), content + content, draw.randbytes(100), b"\xff\xfe" + content, content[at:],
        ])  # fmt: skip
        path.unlink()
        if draw.random() < 0.9:
            path.write_bytes(changed)
        self.told("bytes of", path.name, "from", at)

    def _changed(self, tree: Any, avoid: tuple[str, ...] = ()) -> str:
        """Replace, remove or add something somewhere below `tree`."""
        places = [place for place in _places(tree) if not set(place) & set(avoid)]
        place = self.draw.choice(places)
        for part in place[:-1]:
            tree = tree[part]
        way = self.draw.random()
        value = self.draw.choice(VALUES)
        if way < 0.12:
            del tree[place[-1]]
            return f"{place} removed"
        if way < 0.2 and isinstance(tree, dict):
            tree[str(value)[:50]] = tree.pop(place[-1])
            return f"{place} renamed"
        tree[place[-1]] = value
        return f"{place} is {value!r:.40}"

    def change_json(self) -> None:
        path = self.run / self.draw.choice([name for name in JSON_FILES if (self.run / name).is_file()])
        data = json.loads(path.read_bytes())
        what = self._changed(data)
        path.write_text(json.dumps(data, ensure_ascii=self.draw.random() < 0.9), errors="surrogatepass")
        self.told(path.name, what)

    def change_events(self) -> None:
        path, draw = self.run / "events.jsonl", self.draw
        lines = path.read_bytes().splitlines(keepends=True)
        at = draw.randrange(len(lines))
        row = json.loads(lines[at])
        what = self._changed(row)
        lines[at] = json.dumps(row).encode() + draw.choice([b"\n", b"\n", b"\n", b"", b"\n\n"])
        if draw.random() < 0.2:
            del lines[draw.randrange(len(lines)) :]
        path.write_bytes(b"".join(lines))
        self.told("event", at, what)

    def _settings(self) -> dict[str, Any]:
        text = (self.run / "settings.toml").read_text()
        if len(text) > 10_000:
            raise ValueError("made to stall parsers, ours among them")
        return tomllib.loads(text)

    def change_settings(self) -> None:
        tree = self._settings()
        what = self._changed(tree)
        (self.run / "settings.toml").write_bytes(_toml(tree))
        self.told("settings", what)

    def change_settings_text(self) -> None:
        text = self.draw.choice(TOML_TEXTS)
        path = self.run / "settings.toml"
        before = path.read_text()
        path.write_text(self.draw.choice([text + before, before + text, text]))
        self.told("settings text", repr(text[:30]))

    def change_settings_everywhere(self) -> None:
        """In every checkpoint too, so that nobody can tell that it was changed."""
        tree = self._settings()
        what = self._changed(tree, PROLONG)
        (self.run / "settings.toml").write_bytes(_toml(tree))
        for folder in self._checkpoints():
            self._with_manifest(folder, lambda manifest: manifest["meta"].update(settings=tree))
        self.told("settings everywhere", what)

    def _checkpoints(self) -> list[Path]:
        return sorted(path for path in (self.run / "checkpoints").iterdir() if path.is_dir())

    def _with_manifest(self, folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
        body = json.loads((folder / "manifest.json").read_bytes())
        change(body)
        body.pop("sha256", None)
        body["sha256"] = hashlib.sha256(_canonical(body)).hexdigest()
        (folder / "manifest.json").write_bytes(_canonical(body))

    def _forge(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """In every checkpoint, under manifests that vouch for it."""
        for folder in self._checkpoints():
            path = folder / name
            content = change(path.read_bytes())
            path.unlink()  # it may be a link to another checkpoint's
            path.write_bytes(content)
            record = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            self._with_manifest(folder, lambda manifest, record=record: manifest["files"].update({name: record}))

    def forge_meta(self) -> None:
        state = self.draw.getstate()
        for folder in self._checkpoints():
            self.draw.setstate(state)
            key = self.draw.choice(["meta"] * 6 + ["files", "segments", "schema"])
            part = (key,) if key == "schema" else ()
            self._with_manifest(folder, lambda body, key=key, part=part: self.told(
                "manifest", key, self._changed({"schema": body[key]} if part else body[key]))
            )  # fmt: skip

    def forge_values(self) -> None:
        folder = self._checkpoints()[-1]
        name = self.draw.choice([path.name for path in folder.glob("*.json") if path.name != "manifest.json"])
        state = self.draw.getstate()

        def change(content: bytes) -> bytes:
            self.draw.setstate(state)
            data = json.loads(content)
            if not data:
                return _canonical({"x": self.draw.choice(VALUES)})
            self.told(name, self._changed(data))
            return _canonical(data)

        self._forge(name, change)

    def forge_tensors(self) -> None:
        """Other numbers in an array."""
        folder = self._checkpoints()[-1]
        names = [path.name for path in folder.iterdir() if path.suffix in (".safetensors", ".segment")]
        name, state = self.draw.choice(names), self.draw.getstate()

        def change(content: bytes) -> bytes:
            self.draw.setstate(state)
            draw, begin = self.draw, 8 + struct.unpack("<Q", content[:8])[0]
            body = bytearray(content[begin:])
            for _ in range(draw.choice([1, 4, 50])):
                if len(body) >= 8:
                    at = draw.randrange(len(body) // 8) * 8
                    body[at : at + 8] = draw.choice([
                        draw.randbytes(8), struct.pack("<q", draw.choice([-1, 2**62, 1000, -(2**63), 70])),
                        struct.pack("<d", draw.choice([float("nan"), float("inf"), 1e308, -1.0])),
                        struct.pack("<2f", float("nan"), float("inf")), struct.pack("<2i", 2**31 - 1, -5),
                    ])  # fmt: skip
            return content[:begin] + bytes(body)

        self._forge(name, change)
        self.told("numbers in", name)

    def forge_header(self) -> None:
        """Other names, dtypes and shapes for the same bytes."""
        folder = self._checkpoints()[-1]
        names = [path.name for path in folder.iterdir() if path.suffix in (".safetensors", ".segment")]
        name, state = self.draw.choice(names), self.draw.getstate()

        def change(content: bytes) -> bytes:
            self.draw.setstate(state)
            begin = 8 + struct.unpack("<Q", content[:8])[0]
            header = json.loads(content[8:begin])
            entry = self.draw.choice(list(header.values()))
            way = self.draw.randrange(6)
            if way == 0:
                entry["dtype"] = self.draw.choice(["F32", "I32", "U32", "F64", "I64", "U8", "BOOL", "BF16", "F8_E4M3"])
            elif way == 1:
                entry["shape"] = [*entry["shape"], 1]
            elif way == 2:
                entry["shape"] = [0]
            elif way == 3:
                entry["shape"] = entry["shape"][::-1]
            elif way == 4:
                self.told(self._changed(header))
            else:
                header["other"] = header.pop(self.draw.choice(list(header)))
            text = json.dumps(header).encode()
            return struct.pack("<Q", len(text)) + text + content[begin:]

        self._forge(name, change)
        self.told("header of", name)

    def change_shape_of_folder(self) -> None:
        draw, folder = self.draw, self.run / "checkpoints"
        name = draw.choice(
            [*PLAIN, "checkpoints", "failure", *(f"checkpoints/{path.name}" for path in folder.iterdir())]
        )
        path = self.run / name
        if path.is_dir() and not path.is_symlink():
            path.rename(self.run / "moved")
        elif path.exists():
            path.unlink()
        way = draw.choice(["link", "folder", "pipe", "gone", "renamed"])
        if way == "link":
            path.symlink_to(draw.choice(["..", "moved", "/dev/zero", name, "/nowhere"]))
        elif way == "folder":
            path.mkdir()
        elif way == "pipe":
            os.mkfifo(path)
        elif way == "renamed" and (self.run / "moved").is_dir():
            others = ["000000000009999", "999999999999999999", "000000000000001-7", "notes", "9" * 40]
            shutil.move(self.run / "moved", self.run / "checkpoints" / draw.choice(others))
        self.told(name, "is a", way)


def _places(tree: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else []
    found: list[tuple[Any, ...]] = []
    for name, value in items:
        found += [(*before, name), *_places(value, (*before, name))]
    return found


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _toml(tree: dict[str, Any]) -> bytes:
    try:
        return tomli_w.dumps(tree).encode()
    except (TypeError, ValueError, RecursionError):  # no TOML: said as JSON, which is none either
        return json.dumps(tree).encode()
