"""What `hotloop compare` can be told beside its arms and their settings."""

from __future__ import annotations

from typing import Any

from hotloop.cli.arguments import VerbParser

OPTIONS: dict[str, dict[str, Any]] = {
    "--seeds": {"type": int, "help": "runs to train of each arm: seeds 0 to SEEDS - 1"},
    "--out": {"help": "folder for runs and results (default: runs/compare-..., by arms and settings)"},
    "--threshold": {
        "type": float,
        "help": "score whose first reaching is timed (default: 0.9 of what the first arm learned)",
    },
    "--margin": {"type": float, "help": "difference that counts as none (default: 1/20 of what the first arm learned)"},
    "--measure": {"default": "mean_return", "help": "field of the evaluations (default mean_return)"},
    "--scores": {"metavar": "FILE:COLUMN", "help": "where commands write their scores, with {seed} and {arm} in it"},
    "--workers": {"type": int, "default": 0, "help": "runs at once (default: as many as there are cores)"},
    "--on": {"default": "local", "help": "where to train: `local`, `ray` (a cluster on this machine) or HOST:PORT"},
    "--plan": {
        "metavar": "FILE.jsonl",
        "help": "train nothing here: write a list for `hotloop job run` (docs/scale.md)",
    },
    "--fail-if": {
        "choices": ("worse", "unsure"),
        "help": "for scripts: exit code 1 where an arm is worse, 3 where seeds are too few to judge; "
        "with `unsure` also 3 where no difference was seen and none was ruled out",
    },
    "--html": {"metavar": "FILE", "help": "write one page with verdicts, figures, tables and settings"},
    "--markdown": {"metavar": "FILE.md[#NAME]", "help": "put tables and figures into a Markdown page, between marks"},
}
SWITCHES = ("--json", "--quiet", "--debug", "--until-sure", "--trust", "--mixed")


def compare_parser() -> VerbParser:
    parser = VerbParser(
        "compare",
        "Say what a change did to learning and to speed. An arm is a preset, a TOML file, a folder of finished runs,\n"
        "or a command: your own script, with `{seed}` where its seed goes. Overrides follow a preset (or stand\n"
        "in the same quotes, with a label in front), those of all arms follow `--`. What is missing is trained;\n"
        "finished runs are reused, and the same command continues what was stopped. Every arm is judged against the\n"
        "first: docs/compare.md has the rule. Exit code 1: a run failed, or --fail-if asks for it.",
        "hotloop compare cartpole-dqn cartpole-dqn --double false --seeds 8 --threshold 475\n"
        '  hotloop compare "plain=cartpole-dqn" "rainbow=cartpole-rainbow" --seeds 8 -- --total-env-steps 30k\n'
        "  hotloop compare runs/family/cartpole-dqn runs/family/cartpole-rainbow --html family.html\n"
        '  hotloop compare "old=old.py --seed {seed}" "new=new.py --seed {seed}" --seeds 20 --until-sure',
        usage="hotloop compare ARM [--any.setting VALUE ...] [ARM ...] --seeds N [options] [-- --setting VALUE ...]",
    )
    for name, about in OPTIONS.items():
        parser.add_argument(name, **about)
    parser.add_argument("--until-sure", action="store_true", help="add seeds until it is decided, SEEDS at most")
    parser.add_argument("--trust", action="store_true", help="send your own envs and scripts to the cluster of `--on`")
    parser.add_argument("--mixed", action="store_true", help="train on machines that round in another way, too")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser
