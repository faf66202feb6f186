"""`hotloop train PRESET|FILE.toml [--any.setting VALUE]`."""

from __future__ import annotations

from typing import Any

from hotloop.cli.arguments import VerbParser, print_json, settings_from_argv
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line, say
from hotloop.presets.named import preset_names, presets_by_workload


def run(words: list[str]) -> int:
    parser = VerbParser(
        "train",
        "Train an agent. Every setting can be overridden: `hotloop settings dqn` or `settings ppo` lists them.\n"
        f"presets: {', '.join(preset_names())}",
        "hotloop train cartpole-dqn --seed 3 --env.num-envs 16 --network.hidden 128 128",
        usage="hotloop train PRESET|FILE.toml [--any.setting VALUE ...] [--json] [--quiet]\n"
        "       hotloop train PRESET|FILE.toml [--any.setting VALUE ...] --seeds N [--on PLACE] [--workers N]",
    )
    parser.add_argument("preset", help="a preset's name, or a TOML file with settings")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--seeds", type=int, help="train so many, seeds 0 to SEEDS - 1, and tell their mean")
    parser.add_argument("--on", help="with --seeds, where: `local`, `ray` or HOST:PORT (docs/scale.md)")
    parser.add_argument("--workers", type=int, help="with --seeds, runs at once (default: as many as cores)")
    name, rest = _first_word(words)
    if not name and not {"-h", "--help"} & set(rest):
        raise SettingsError(
            "`hotloop train` needs a preset or a TOML file, and it stands first",
            "`hotloop train cartpole-dqn`, or `hotloop train dqn --env.id YourEnv-v0`; presets: "
            f"{presets_by_workload()}",
        )
    arguments, overrides = parser.parse_known_args([*name, *rest])
    if arguments.seeds is not None:
        from hotloop.cli import compare

        return compare.run(words)  # a comparison with one arm
    if arguments.on is not None or arguments.workers is not None:
        raise SettingsError("`--on` and `--workers` are for several runs", "give `--seeds N` too")
    settings = settings_from_argv(arguments.preset, overrides)  # before PyTorch: a mistake is answered at once
    from hotloop.presets.registry import label_of

    label = label_of(settings, arguments.preset)
    if not arguments.quiet:
        what = f"{settings.algorithm.upper()} on {settings.env.id}, {settings.total_env_steps:,} env steps"
        say(f"{label}: {what}; loading PyTorch")
    from hotloop import api

    return with_progress(arguments, lambda progress: api.train(settings, label=label, progress=progress))


def _first_word(words: list[str]) -> tuple[list[str], list[str]]:
    """The preset stands first; what follows a flag belongs to that flag."""
    return (words[:1], words[1:]) if words and not words[0].startswith("--") else ([], words)


def with_progress(arguments: Any, train: Any) -> int:
    """Run `train` under a progress display and print what came of it."""
    from hotloop.cli.progress import TerminalProgress, print_result, remarks
    from hotloop.loop.running import RunStopped

    try:
        with TerminalProgress(quiet=arguments.quiet) as progress:
            result = train(progress)
    except RunStopped as stopped:
        if arguments.json:
            print_json({"run": str(stopped.run.path), "env_steps": stopped.env_steps, "stopped": True})
        progress.say(str(stopped))
        return 128 + stopped.signal_number
    if arguments.json:
        print_json(result)
    else:
        print_result(result)
        if progress.lost:
            print_line(f"the display on stderr was lost ({progress.lost}); training went on without it")
    for remark in remarks(result):
        progress.say(remark)
    return 0
