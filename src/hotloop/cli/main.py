"""`hotloop VERB ...`: one verb per file; heavy imports wait until a verb runs, so that --help answers at once."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from hotloop.core.errors import HotloopError

VERBS = {
    "train": "train an agent from a preset or a TOML file",
    "resume": "continue a run that was stopped or killed, exactly",
    "evaluate": "play fresh episodes with a run's best agent",
    "runs": "list the runs in a folder",
    "envs": "list environments, or check one against the contract",
    "settings": "show every setting of an algorithm, or the text of a preset",
}

EXAMPLES = """examples:
  hotloop train cartpole-dqn --seed 1
  hotloop train cartpole-dqn --env.id Acrobot-v1 --total-env-steps 200k
  hotloop evaluate runs/cartpole-dqn-20260101-120000
  hotloop settings dqn
"""


def main(words: Sequence[str] | None = None) -> int:
    """Run one verb; user mistakes end with a sentence, a hint and exit code 2."""
    words = list(sys.argv[1:] if words is None else words)
    try:
        return _run(words)
    except HotloopError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped at once; a run resumes from its last checkpoint", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="hotloop",
        description="Train deep-RL agents at the speed of the machine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for name, meaning in VERBS.items():
        verbs.add_parser(name, help=meaning, add_help=False)
    arguments, rest = parser.parse_known_args(words[:1])
    if arguments.version:
        from hotloop.runs.schema import hotloop_version

        print(hotloop_version())
        return 0
    if arguments.verb is None:
        parser.print_help()
        return 0
    verb = importlib.import_module(f"hotloop.cli.{arguments.verb}")
    return int(verb.run(words[1:]))
