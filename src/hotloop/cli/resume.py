"""`hotloop resume RUN`."""

from __future__ import annotations

from typing import Any

from hotloop.cli.arguments import VerbParser
from hotloop.cli.train import with_progress
from hotloop.core.values import Count, convert


def run(words: list[str]) -> int:
    parser = VerbParser(
        "resume",
        "Continue a run from its newest good checkpoint. It ends bit-identical to a run that was never stopped;\n"
        "a finished run prints its result again, or goes on to more env steps.",
        "hotloop resume runs/cartpole-dqn-20260101-120000",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    parser.add_argument(
        "--accept-changes", action="store_true", help="go on although settings.toml was changed since it was saved"
    )
    parser.add_argument(
        "--total-env-steps", metavar="N", help="let the run go on to so many env steps, finished or not: `200k`"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    arguments = parser.parse_args(words)
    total = None
    if arguments.total_env_steps is not None:
        total = convert(arguments.total_env_steps, Count, "total_env_steps")
    from hotloop import api

    def resume(progress: Any) -> dict[str, Any]:
        accept = arguments.accept_changes
        return api.resume(
            arguments.run, total_env_steps=total, trust=arguments.trust, accept_changes=accept, progress=progress
        )

    return with_progress(arguments, resume)
