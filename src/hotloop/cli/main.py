"""`hotloop VERB ...`: one verb per file; heavy imports wait until a verb runs, so that --help answers at once."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import traceback
from collections.abc import Callable, Sequence

from hotloop.cli.arguments import print_error
from hotloop.core.errors import EnvError, HotloopError, SettingsError
from hotloop.core.extras import explained_imports
from hotloop.core.interrupts import own_interrupts, stop_code
from hotloop.core.program import hotloop_version, is_debugging, program, take_options, wants_json
from hotloop.core.temporary import remove_leftovers
from hotloop.core.terminal import (
    AnswerLostError,
    answer_stream,
    drop_unwritten,
    say,
    show_tracebacks_and_warnings_printable,
)
from hotloop.core.values import nearest
from hotloop.core.verdicts import ExitCode
from hotloop.core.workloads import workload_places

VERBS = {
    "train": "train an agent from a preset or a TOML file",
    "resume": "continue a run that was stopped or killed, exactly",
    "debug-nan": "repeat the update at which a run's numbers became NaN or infinite",
    "evaluate": "play fresh episodes with a run's best agent",
    "watch": "watch a run's best agent play: terminal, video or pictures",
    "compare": "train arms x seeds in parallel and say what a change did to learning",
    "doctor": "say why a training loop is slow, ours or any script, and what to do",
    "prove": "hold a fast program equal to a plain one, then time both",
    "report": "write one HTML page that shows a run",
    "dashboard": "show the runs of a folder as a live page in the browser",
    "tune": "search for better settings, with pruning",
    "export": "write a run's best agent as ONNX or safetensors",
    "log": "show a run's event rows in TensorBoard or Weights & Biases",
    "job": "do one run of a list that compare planned, on any machine",
    "runs": "list the runs in a folder",
    "envs": "list environments, or check one against the contract",
    "settings": "show every setting of an algorithm, or the text of a preset",
}

GROUPS = {
    "Train": ("train", "resume", "evaluate", "tune", "envs", "settings"),
    "Look": ("dashboard", "report", "watch", "runs"),
    "Diagnose, prove, compare": ("doctor", "prove", "compare"),
    "Share": ("export", "log"),
    "Elsewhere": ("job",),
}
"""The first screen of help. Verbs that stand in no group are those that few need: `hotloop help --all`."""

FORMER = {"replay": "debug-nan"}
"""Verbs by the names they had; they still work."""

EXAMPLES = """examples:
  hotloop train cartpole-dqn --seed 1
  hotloop train cartpole-dqn --env.id Acrobot-v1 --total-env-steps 200k
  hotloop dashboard
  hotloop doctor train.py
  hotloop prove --script old.py --against new.py
"""


def main(words: Sequence[str] | None = None) -> int:
    return run_command(_run, words)


def run_command(run: Callable[[list[str]], int], words: Sequence[str] | None = None) -> int:
    """Without `words`, the whole process is this. User mistakes end with a sentence, a hint and exit code 2."""
    show_tracebacks_and_warnings_printable()
    given = list(sys.argv[1:] if words is None else words)
    with program(whole=words is None), own_interrupts(whole=words is None):
        try:
            try:
                return run(given)
            finally:
                answer_stream().flush()  # found out here, not when the interpreter ends
        except HotloopError as error:
            if is_debugging():
                say("".join(traceback.format_exception(error)).rstrip("\n"))
            is_shortened = (
                isinstance(error, EnvError) and error.hint and "\n" in error.message
            )  # frames of the env's own code
            say(f"error: {error}{'; `--debug` shows the whole traceback' if is_shortened else ''}")
            if wants_json(given):
                print_error(error)
            return ExitCode.MISTAKE
        except KeyboardInterrupt as stop:
            say(str(stop) or "stopped at once; a run resumes from its last checkpoint")
            return stop_code()
        except AnswerLostError as lost:
            if lost.reader_left:  # as `head` does: it has what it wanted
                return 128 + signal.SIGPIPE
            say(f"error: the answer could not be written to stdout: {lost}")
            say("\nhint: write it where there is room; what was trained is in its run directory")
            return 2
        finally:
            drop_unwritten()


def _run(words: list[str]) -> int:
    if words[:1] == ["--debug"]:
        take_options(json=False, debug=True)
        words = words[1:]
    if words and words[0] in FORMER:
        say(f"hint: `hotloop {words[0]}` is now `hotloop {FORMER[words[0]]}`")
        words = [FORMER[words[0]], *words[1:]]
    if words[:1] == ["help"]:  # `hotloop help train`
        words = [*words[1:2], "--help"]  # `hotloop help --all` too
    if words and words[0] in VERBS:
        remove_leftovers()
        verb = importlib.import_module(f"hotloop.cli.{words[0].replace('-', '_')}")
        with explained_imports(f"`hotloop {words[0]}`"):
            return int(verb.run(words[1:]))
    if words and not words[0].startswith("-"):
        from hotloop.cli import workload

        if words[0] in workload_places():
            remove_leftovers()
            return workload.run(words[0], words[1:])
        near = workload.verb_elsewhere(words[0]) or nearest(words[0], [*VERBS, *workload_places()])
        raise SettingsError(
            f"`{words[0]}` is no verb of hotloop", f"did you mean `{near}`?" if near else f"one of {', '.join(VERBS)}"
        )
    _parser(with_all="--all" in words).parse_args(words if {*words} - {"--all"} else ["--help"])
    return 0


def _verbs(with_all: bool) -> str:
    """All groups with what their verbs do."""
    shown = {name for names in GROUPS.values() for name in names}
    groups = GROUPS | ({"More": tuple(name for name in VERBS if name not in shown)} if with_all else {})
    lines = [
        f"{title}:\n" + "".join(f"  {name:10} {VERBS[name]}\n" for name in names) for title, names in groups.items()
    ]
    lines += [f"Workloads, each with verbs of its own:\n  {', '.join(workload_places())}\n"]
    return "\n".join(lines) + ("" if with_all else "\n`hotloop help --all` lists the verbs that few need, too.\n")


def _parser(with_all: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hotloop",
        description="Train deep-RL agents fast; say why a training loop is slow; prove that a faster one is the same.",
        epilog=f"{_verbs(with_all)}\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="hotloop VERB ... (`hotloop VERB --help` explains each)",
    )
    parser.add_argument("--all", action="store_true", help="with --help: the verbs that few need, too")
    parser.add_argument("--debug", action="store_true", help="with any verb: show the whole traceback of an error")
    parser.add_argument("--version", action="version", version=hotloop_version())
    return parser
