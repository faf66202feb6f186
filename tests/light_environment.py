"""A virtual environment that holds what `pip install hotloop` brings and nothing else: no PyTorch, numba or Gymnasium.

Read from pyproject.toml: the base dependencies (and those of the extras that are asked for), what these need, and links
to where they are installed here. Children and grandchildren see no more either, with `-I` too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]


def declared(*extras: str) -> list[str]:
    """Names of the packages that the base and these extras ask for, as pyproject.toml says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [_name(line) for line in lines]


def closure(names: list[str]) -> list[Distribution]:
    """These packages and everything that they need in turn, extras of theirs aside."""
    found: dict[str, Distribution] = {}
    while names:
        name = names.pop()
        if name not in found and (installed := _installed(name)):
            found[name] = installed
            names += [_name(line) for line in installed.requires or () if "extra ==" not in line]
    return list(found.values())


def _name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match
    return match[0]


def _installed(name: str) -> Distribution | None:
    """None for what only another platform or an older Python needs."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


class LightEnvironment:
    def __init__(self, folder: Path, *extras: str) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin" / "python"
        self.packages = next((folder / "lib").glob("python*")) / "site-packages"
        for package in closure(declared(*extras)):
            self._link(package)
        (self.packages / "hotloop.pth").write_text(f"{ROOT / 'src'}\n")

    def _link(self, package: Distribution) -> None:
        for top in {file.parts[0] for file in package.files or () if file.parts[0] not in ("..", "__pycache__")}:
            place = Path(str(package.locate_file(top)))
            if place.exists() and not (self.packages / top).exists():
                (self.packages / top).symlink_to(place)

    def variables(self) -> dict[str, str]:
        own = {
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(self.python.parents[1]),
        }
        return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | own

    def hotloop(self, *words: str, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-I", "-c", "from hotloop.cli.main import main; raise SystemExit(main())", *words]
        return subprocess.run(
            command, cwd=cwd, env=self.variables(), capture_output=True, text=True, timeout=timeout, check=False
        )


if __name__ == "__main__":  # python tests/light_environment.py FOLDER [EXTRA ...]: one to look around in
    print(LightEnvironment(Path(sys.argv[1]), *sys.argv[2:]).python)
