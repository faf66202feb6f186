"""`hotloop export RUN --onnx FILE`."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line

_ENVS = 4


def run(words: list[str]) -> int:
    parser = VerbParser(
        "export",
        "Write a run's best agent as a file for other programs. An ONNX file takes observations as the env shows them\n"
        "and gives actions as the env takes them; it is held against the agent before it gets its name.",
        "hotloop export runs/cartpole-dqn-20260101-120000 --onnx cartpole.onnx",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="the network as ONNX (extra `export`)")
    parser.add_argument(
        "--torch", type=Path, metavar="FILE.safetensors", help="its parameters by name, with the settings as JSON"
    )
    parser.add_argument("--trust", action="store_true", help="allow the run's env to be imported from a file or module")
    arguments = parser.parse_args(words)
    _check(arguments)
    answer, notes = _export(arguments)
    if arguments.json:
        print_json(answer | {"notes": notes})
    else:
        _print(answer, notes)
    return 0


def _check(arguments: Namespace) -> None:
    if arguments.onnx is None and arguments.torch is None:
        raise SettingsError("neither `--onnx` nor `--torch` is given", "`--onnx agent.onnx`")
    for name, suffix in (("onnx", ".onnx"), ("torch", ".safetensors")):
        file = getattr(arguments, name)
        if file is not None and file.suffix != suffix:
            raise SettingsError(f"`--{name}` is {file}, expected a name that ends in {suffix}")


def _export(arguments: Namespace) -> tuple[dict[str, Any], list[str]]:
    from hotloop import api

    agent = api.load(arguments.run, trust=arguments.trust)
    answer: dict[str, Any] = {"run": arguments.run}
    notes: list[str] = []
    if arguments.torch is not None:
        from hotloop.export.about import export_torch

        answer |= {"safetensors": export_torch(agent, arguments.torch)}
    if arguments.onnx is not None:
        from hotloop.export.onnx_file import export_onnx
        from hotloop.loop.agents import require_same_actions

        with ExitStack() as cleanup:
            envs = _envs(agent, arguments.trust, notes)
            if envs is not None:
                cleanup.callback(envs.close)
                require_same_actions(agent, envs, agent.settings.env.id)
            answer |= {"onnx": export_onnx(agent, arguments.onnx, envs).as_data()}
    return answer, notes


def _envs(agent: Any, trust: bool, notes: list[str]) -> Any:
    """The run's env, to be played; None where it is code that is not trusted, or cannot be made here."""
    from hotloop.core.errors import EnvError, MissingExtraError
    from hotloop.core.rng import derive_seeds
    from hotloop.envs.registry import make_envs

    try:
        return make_envs(agent.settings.env, _ENVS, derive_seeds(0, _ENVS, "export"), trust=trust)
    except (EnvError, MissingExtraError) as error:
        notes.append(
            f"checked on random observations only, and without an input for action masks: {error.message}"
            + (f" ({error.hint})" if error.hint else "")
        )
        return None


def _print(answer: dict[str, Any], notes: list[str]) -> None:
    if onnx := answer.get("onnx"):
        parity = onnx["parity"]
        inputs = ", ".join(f"{name} {entry['dtype']} {entry['shape']}" for name, entry in onnx["inputs"].items())
        print_line(f"{onnx['file']}  {onnx['bytes'] / 1e3:,.1f} kB, opset {onnx['opset']}")
        print_line(f"  inputs   {inputs.replace(chr(39), '')}")
        print_line(f"  outputs  {', '.join(onnx['outputs'])}; action: {onnx['action_meaning']}")
        played = "random and played" if parity["played"] else "random"
        print_line(
            f"  parity   largest difference from the agent {parity['largest']:.2g} on {parity['observations']} "
            f"{played} observations (at most {parity['tolerance']:g})"
        )
    if saved := answer.get("safetensors"):
        print_line(f"{saved['file']}  {saved['bytes'] / 1e3:,.1f} kB, {saved['parameters']:,} parameters")
    for note in notes:
        print_line(f"note: {note}")
