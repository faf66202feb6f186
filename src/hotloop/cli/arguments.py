"""How every verb reads its words and prints its answer."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from hotloop.core.errors import SettingsError


class VerbParser(argparse.ArgumentParser):
    """Mistakes become our own errors: one sentence, one hint."""

    def __init__(self, verb: str, description: str, example: str, **options: Any) -> None:
        super().__init__(
            prog=f"hotloop {verb}",
            description=description,
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **options,
        )
        self.add_argument("--json", action="store_true", help="print the answer as JSON on stdout")

    def error(self, message: str) -> Any:
        raise SettingsError(message, f"`{self.prog} --help` explains")


def print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2)
    print()
