"""What reaches the reader: hostile names are shown and not obeyed, and streams that fail fail in a sentence or not at
all."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

from hotloop.cli.console import answer_console, display_console
from hotloop.cli.main import main
from hotloop.cli.progress import TerminalProgress, print_evaluation
from hotloop.core.terminal import print_line, printable, say
from hotloop.runs.directory import Run
from hotloop.viewing.play import Episode
from hotloop.viewing.screen import FramePace, Key
from hotloop.viewing.terminal import Player

TITLE = "\x1b]0;owned\x07"
HOSTILE = f"{TITLE}\x1b[2J\x9b31m\u202egnp.exe\r[red]x[/red][link=file:///]:skull:"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\r[red]x[/red][link=file:///]:skull:"
RAW = "\x1b\x07\r\x9b\u202e"
TINY = ["--total-env-steps", "400", "--learning-starts", "100", "--evaluation.final-episodes", "2"]


def assert_shown(text: str, times: int = 1) -> None:
    assert not set(text) & set(RAW), repr(text)
    assert "".join(text.split()).count("".join(SHOWN.split())) >= times, text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\n", "a\tb\n"),
        ("\x00\x08\x0b\x1f\x7f\x80\x9f", r"\x00\x08\x0b\x1f\x7f\x80\x9f"),
        ("\u061c\u200e\u200f\u2028\u2029", r"\u061c\u200e\u200f\u2028\u2029"),
        ("\u202a\u202e\u2066\u2069", r"\u202a\u202e\u2066\u2069"),
        (os.fsdecode(b"caf\xe9"), r"caf\udce9"),
        ("café ± █ 🐍 שלום", "café ± █ 🐍 שלום"),
    ],
)  # fmt: skip
def test_control_characters_are_written_out_and_nothing_else(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_names_of_runs_and_envs_in_the_list(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Run.create(
        run_folder / "runs" / HOSTILE.replace("/", ""), "x", {"algorithm": "dqn", "env": {"id": HOSTILE}}
    ).close()
    assert main(["runs"]) == 0
    said = capsys.readouterr().out
    assert not set(said) & set(RAW)
    assert r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\r[red]x[red][link=file:]" in "".join(said.split())


@pytest.mark.parametrize("words", [["report"], ["train"], ["evaluate"], ["envs", "check"], ["tune"], []])
def test_what_was_typed_comes_back_harmless_in_an_error(
    words: list[str], run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--search", "gamma=0.1..0.9", "--trials", "1"] if words == ["tune"] else []
    assert main([*words, HOSTILE, *more]) == 2
    assert not set(capsys.readouterr().err) & set(RAW)


def test_an_env_that_raises_escapes(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("env.py").write_text(
        "import gymnasium\n"
        "class Env(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,))\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        f"        raise ValueError({HOSTILE!r})\n"
    )
    assert main(["train", "cartpole-dqn", "--env.id", "env.py:Env", *TINY]) == 2
    assert_shown(capsys.readouterr().err)


def test_measures_lines_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_evaluation({"episodes": 3, HOSTILE: 1.0})
    print_line(HOSTILE)
    table = Table(HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(printable(HOSTILE)))
    console = answer_console(width=200)
    console.print(table)
    said = capsys.readouterr().out
    assert not set(said) & set(RAW)
    assert said.count("[red]x[/red][link=file:///]:skull:") == 5
    display = display_console()
    display.print(HOSTILE, soft_wrap=True)
    say(HOSTILE)
    said = capsys.readouterr().err
    assert not set(said) & set(RAW)
    assert said.count("[red]x[/red][link=file:///]:skull:") == 2


def test_warnings_and_tracebacks_of_a_program() -> None:
    """A mistake of ours, or of a library, may carry a foreign text too. Gymnasium colors its warnings."""
    program = (
        "import sys, warnings\n"
        "from hotloop.cli import main, settings\n"
        "def run(words):\n"
        f"    warnings.warn('\\x1b[33mWARN: ' + {HOSTILE!r} + '\\x1b[0m')\n"
        f"    raise ValueError({HOSTILE!r})\n"
        "settings.run = run\n"
        "main.main(['settings'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert_shown(done.stderr, times=2)
    assert f"UserWarning: WARN: {SHOWN}" in done.stderr


class HostileScene:
    fps = 10.0
    envs = None

    def measures(self) -> dict[str, float]:
        return {HOSTILE: 3.0}

    def text(self, color: bool) -> str:
        return "picture"


class Screen:
    has_keys = False

    def __init__(self) -> None:
        self.drawn = ""

    def draw(self, text: str) -> None:
        self.drawn += text

    def size(self) -> tuple[int, int]:
        return 400, 50

    def keys(self, timeout: float) -> list[Key]:
        return ["quit"]


def test_measures_under_the_picture_that_is_watched() -> None:
    def moments() -> Generator[Episode, None, None]:
        yield Episode(1, HostileScene())  # type: ignore[arg-type]

    screen = Screen()
    Player(screen, FramePace(10.0, 1.0), "none").show(moments(), 1)
    assert_shown(screen.drawn)


def hotloop(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    variables |= {"PYTHONUNBUFFERED": "1"} if options.pop("unbuffered", False) else {}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([sys.executable, "-m", "hotloop", *words], text=True, env=variables, timeout=250, **streams)


@pytest.fixture(params=["full disk", "reader left"])
def lost(request: pytest.FixtureRequest) -> Iterator[tuple[int, str]]:
    """A descriptor that cannot be written to, and why."""
    if request.param == "full disk":
        if not os.path.exists("/dev/full"):
            pytest.skip("no /dev/full here")
        writer, why = os.open("/dev/full", os.O_WRONLY), "No space left on device"
    else:
        reader, writer = os.pipe()
        os.close(reader)
        why = "Broken pipe"
    yield writer, why
    os.close(writer)


def test_training_goes_on_without_its_display(lost: tuple[int, str], run_folder: Path) -> None:
    done = hotloop("train", "cartpole-dqn", *TINY, "--run-dir", "run", stderr=lost[0])
    assert done.returncode == 0
    assert f"the display on stderr was lost ({lost[1]}); training went on without it" in done.stdout
    assert Run.open("run").finished


@pytest.mark.parametrize("unbuffered", [False, True], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", [["settings", "dqn", "--json"], ["settings", "dqn"], ["runs"]], ids=" ".join)
def test_an_answer_that_cannot_be_written(words: list[str], unbuffered: bool, lost: tuple[int, str]) -> None:
    done = hotloop(*words, stdout=lost[0], unbuffered=unbuffered)
    if lost[1] == "Broken pipe":  # as `| head -1` leaves it
        assert (done.returncode, done.stderr) == (141, "")
    else:
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: the answer could not be written to stdout: {lost[1]}\n\nhint: ")
        assert "Traceback" not in done.stderr


def test_nobody_to_complain_to(lost: tuple[int, str]) -> None:
    assert hotloop("nothing", stderr=lost[0]).returncode == 2
    assert hotloop("runs", stdout=lost[0], stderr=lost[0]).returncode in (2, 141)


def test_a_terminal_that_goes_away_takes_only_the_display_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    terminal = os.fdopen(slave, "w")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        with TerminalProgress() as progress:
            progress.say("there")
            assert not progress.lost
            os.close(master)
            progress.say("not there")
            progress.say("nor there")
    assert progress.lost == "Input/output error"
    with pytest.raises(OSError, match="Input/output"):  # what was not written still waits
        terminal.close()
