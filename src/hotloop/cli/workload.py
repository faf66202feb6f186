"""`hotloop WORKLOAD`, `hotloop WORKLOAD VERB ...`: what one problem brings along."""

from __future__ import annotations

import inspect

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line
from hotloop.core.values import nearest
from hotloop.core.workloads import OURS, Workload, import_place, preset_files, workload_named


def run(name: str, words: list[str]) -> int:
    """`words` are those after the workload's name."""
    workload = workload_named(name)
    if workload is None:
        raise SettingsError(f"the workload `{name}` is not installed", "its folder is away: install hotloop again")
    if words and words[0] in workload.verbs:
        return int(import_place(workload.verbs[words[0]])(words[1:]))
    if words and not words[0].startswith("-"):
        near = nearest(words[0], workload.verbs)
        known = ", ".join(f"`{verb}`" for verb in workload.verbs) or "none: `hotloop train`, `watch` and the others do"
        raise SettingsError(
            f"`{words[0]}` is no verb of `hotloop {name}`",
            f"did you mean `hotloop {name} {near}`?" if near else f"it has {known}",
        )
    return _about(workload, words)


def _about(workload: Workload, words: list[str]) -> int:
    verbs = {verb: meaning_of(place) for verb, place in workload.verbs.items()}
    listed = "".join(f"\n  {verb:10} {meaning}" for verb, meaning in verbs.items())
    listed = f"\n\nverbs:{listed}" if listed else ""
    parser = VerbParser(
        workload.name,
        f"{workload.about} Without a verb: what this workload brings along.{listed}",
        f"hotloop {workload.name} {next(iter([f'{verb} --help' for verb in verbs]), '--json')}",
        usage=f"hotloop {workload.name} [VERB ...] [--json]",
    )
    arguments = parser.parse_args(words)
    presets = [file.stem for file in preset_files(workload)]
    if arguments.json:
        about = {"workload": workload.name, "about": workload.about, "envs": [*workload.envs]}
        print_json(about | {"presets": presets, "verbs": verbs})
        return 0
    print_line(workload.about)
    for env_id in workload.envs:
        print_line(f"env      {env_id}")
    for preset in presets:
        print_line(f"preset   {preset}")
    for verb, meaning in verbs.items():
        print_line(f"verb     hotloop {workload.name} {verb}: {meaning}")
    return 0


def meaning_of(place: str) -> str:
    """The first line of a verb's docstring."""
    return (inspect.getdoc(import_place(place)) or "").partition("\n")[0]


def verb_elsewhere(verb: str) -> str:
    """`hotloop durotaxis deploy` for `deploy`; empty where no workload has it. Looks at ours alone, since a mistake is
    answered without loading anybody's code."""
    for name in OURS:
        workload = workload_named(name)
        if workload is not None and verb in workload.verbs:
            return f"hotloop {name} {verb}"
    return ""
