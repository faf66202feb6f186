"""Whose code a file is, and how a report names it."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType

import hotloop.doctor

OURS = str(Path(hotloop.doctor.__file__).parent) + os.sep
LIBRARIES = tuple(
    {str(Path(path).resolve()) + os.sep for name, path in sysconfig.get_paths().items() if name.endswith("lib")}
)
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
USER, LIBRARY, DOCTOR = "user", "library", "doctor"


class Places:
    def __init__(self, script: str) -> None:
        self.folder = str(Path(script).resolve().parent) + os.sep
        self.kind = cache(self._kind)
        self.name = cache(self._name)
        self.whose = cache(lambda code: self.kind(code.co_filename))

    def _kind(self, file: str) -> str:
        """The user's own is what is neither installed, nor of the standard library, nor ours."""
        if file.startswith(OURS):
            return DOCTOR
        if file.startswith("<") or any(part in file for part in PACKAGES):
            return LIBRARY
        full = str(Path(file).resolve()) if os.path.exists(file) else file
        if full.startswith(self.folder) and not any(part in full for part in PACKAGES):
            return USER
        return LIBRARY if full.startswith(LIBRARIES) or not os.path.exists(file) else USER

    def _name(self, file: str) -> str:
        """Relative to the script's folder, or to where it is installed; no path of this machine."""
        if file.startswith("<"):
            return file
        full = str(Path(file).resolve())
        roots = [self.folder, *(path.rstrip(os.sep) + os.sep for path in sys.path if path), *LIBRARIES]
        inside = [full[len(root) :] for root in roots if full.startswith(root)]
        if inside and full.startswith(self.folder) and not any(part in full for part in PACKAGES):
            return full[len(self.folder) :]
        return min(inside, key=len) if inside else os.path.basename(full)

    def where(self, file: str, line: int) -> str:
        return f"{self.name(file)}:{line}"

    def frame(self, code: CodeType, instruction: int) -> str:
        return f"{code.co_qualname} ({self.where(code.co_filename, line_of(code, instruction))})"


@cache
def line_of(code: CodeType, instruction: int) -> int:
    if instruction < 0:
        return code.co_firstlineno
    lines = [line for start, end, line in code.co_lines() if start <= instruction < end and line is not None]
    return lines[0] if lines else code.co_firstlineno
