"""`hotloop export RUN --onnx FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line


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
    from hotloop.export.agent_files import export_agent

    written = export_agent(arguments.run, onnx=arguments.onnx, torch=arguments.torch, trust=arguments.trust)
    if arguments.json:
        print_json(written)
    else:
        _print(written)
    return 0


def _print(written: dict[str, Any]) -> None:
    if onnx := written.get("onnx"):
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
    if saved := written.get("safetensors"):
        print_line(f"{saved['file']}  {saved['bytes'] / 1e3:,.1f} kB, {saved['parameters']:,} parameters")
    for note in written["notes"]:
        print_line(f"note: {note}")
