"""Event rows shown elsewhere: each once, live or afterwards, also when a run was stopped and resumed."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.cli.main import main
from hotloop.core.errors import SettingsError
from hotloop.core.program import install_command
from hotloop.export import loggers
from hotloop.export.follow import Once, Tail, rows_until_the_end, scalars_of
from hotloop.export.loggers import log_run
from hotloop.runs.directory import Run
from hotloop.runs.events import EventLog


def row(event: str, env_steps: int, value: float, seconds: float = 1.0) -> dict[str, Any]:
    return {
        "event": event,
        "env_steps": env_steps,
        "mean_return": value,
        "seconds": seconds,
        "env_steps_per_second": 9.0,
        "phases": {"act": 0.5},
    }


ROWS = [
    {"event": "start", "schema": 1, "time": 1000.0, "machine": {}},
    row("progress", 100, 1.0, 10.0),
    row("evaluation", 100, 2.0, 11.0),
    row("progress", 200, 3.0, 20.0),
    row("evaluation", 200, 4.0, 21.0),
]
RESULT = {
    "env_steps": 200,
    "updates": 100,
    "episodes": 20,
    "seconds": 22.0,
    "env_steps_per_second": 10.0,
    "phases": {},
    "run": "mine",
    "lane": "eager",
    "evaluation": {"episodes": 9, "mean_return": 5.0, "std_return": 0.0},
    "final_evaluation": {"episodes": 9, "mean_return": 4.5, "std_return": 0.0},
}


@pytest.fixture
def run(run_folder: Path) -> Run:
    made = Run.create(run_folder / "mine", "mine", {"seed": 3})
    made.close()
    return made


def append(run: Run, rows: list[dict[str, Any]]) -> EventLog:
    log = EventLog(run.events)
    for entry in rows:
        log.append(entry)
    return log


def test_a_row_becomes_named_numbers_and_nothing_is_left_of_null() -> None:
    named = scalars_of({**row("progress", 5, 2.0), "loss": None, "env": "x", "won": True})
    assert named == {
        "progress/mean_return": 2.0,
        "speed/seconds": 1.0,
        "speed/env_steps_per_second": 9.0,
        "phases/act": 0.5,
    }


def test_a_file_that_was_cut_back_and_grew_again_gives_each_row_once(run: Run) -> None:
    tail, once = Tail(run), Once()
    assert list(tail.new_rows()) == []  # not begun yet
    log = append(run, ROWS[:3])
    kept = log.offset
    for entry in ROWS[3:]:
        log.append(entry)
    seen = [entry for entry in tail.new_rows() if once.is_new(entry)]
    assert [entry["env_steps"] for entry in seen] == [100, 100, 200, 200]

    log.truncate(kept)  # resumed from a checkpoint: the rows after it come again, with other times
    for entry in [row("progress", 200, 3.0, 123.456), row("evaluation", 200, 4.0, 123.5), row("progress", 300, 6.0)]:
        log.append(entry)
    log.close()
    again = [entry for entry in tail.new_rows() if once.is_new(entry)]
    assert [(entry["event"], entry["env_steps"]) for entry in again] == [("progress", 300)]
    assert list(tail.new_rows()) == []


def test_half_a_row_waits_for_its_other_half(run: Run) -> None:
    tail = Tail(run)
    text = (json.dumps(ROWS[1]) + "\n").encode()
    with run.events.open("wb", buffering=0) as file:
        file.write(text[:20])
        assert list(tail.new_rows()) == []
        file.write(text[20:])
        assert list(tail.new_rows()) == [ROWS[1]]


def test_following_ends_when_the_run_is_finished_or_nobody_trains_it(run: Run) -> None:
    append(run, ROWS).close()
    lots = list(rows_until_the_end(run, follow=True, patience=3.0, poll=1.0, pause=lambda _: None))
    assert [len(lot) for lot in lots] == [5, 0, 0, 0]

    def finish(_: float) -> None:
        append(run, [row("progress", 300, 1.0)]).close()
        run.write_json("result.json", RESULT)

    lots = list(rows_until_the_end(run, follow=True, patience=99.0, poll=1.0, pause=finish))
    assert [len(lot) for lot in lots] == [5, 1]
    assert [len(lot) for lot in rows_until_the_end(run, follow=False)] == [6]


def test_following_waits_as_long_as_the_run_is_trained(run: Run) -> None:
    append(run, ROWS).close()
    run.lock()
    pauses = []

    def wait(_: float) -> None:
        pauses.append(1)
        if len(pauses) == 20:
            run.close()

    lots = list(rows_until_the_end(run, follow=True, patience=2.0, poll=1.0, pause=wait))
    assert len(lots) >= 20


def read_board(folder: Path) -> list[tuple[str, int, float, float]]:
    """(tag, step, value, wall time) of every scalar in the event files of a folder."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    found = []
    for file in sorted(folder.glob("events.out.tfevents.*")):
        data = file.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = event_pb2.Event.FromString(data[12 : 12 + length])
            data = data[12 + length + 4 :]
            for value in event.summary.value:
                if value.WhichOneof("value") == "simple_value":
                    found.append((value.tag, event.step, value.simple_value, event.wall_time))
    return found


def test_tensorboard_shows_each_number_once_however_often_it_is_said(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboardX")
    append(run, ROWS[:3]).close()
    assert main(["log", "mine", "--tensorboard", "board"]) == 0
    assert "2 rows" in capsys.readouterr().out
    append(run, ROWS[3:]).close()
    run.write_json("result.json", RESULT)
    assert main(["log", "mine", "--tensorboard", "board", "--follow", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["rows"] == 3  # two more, and the result
    assert answer["finished"]
    assert main(["log", "mine", "--tensorboard", "board"]) == 0
    assert capsys.readouterr().out.startswith("0 rows")

    board = read_board(Path("board"))
    returns = [entry for entry in sorted(board) if entry[0] == "evaluation/mean_return"]
    assert returns == [("evaluation/mean_return", 100, 2.0, 1011.0), ("evaluation/mean_return", 200, 4.0, 1021.0)]
    assert ("result/best/mean_return", 200, 5.0, 1022.0) in board
    assert len({(tag, step) for tag, step, *_ in board}) == len(board)


def test_from_python_rows_go_to_one_place(run: Run) -> None:
    pytest.importorskip("tensorboardX")
    append(run, ROWS).close()
    made = log_run("mine", tensorboard="board")
    assert (made.rows, made.env_steps, made.finished, made.interrupted) == (4, 200, False, False)
    assert made.as_data().keys() == {"run", "to", "rows", "scalars", "env_steps", "finished"}
    for places in ({}, {"tensorboard": "board", "wandb": "project"}):
        with pytest.raises(SettingsError, match="one place at a time"):
            log_run("mine", **places)  # type: ignore[arg-type]


def test_following_ends_with_ctrl_c_and_tells_how_far_it_came(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboardX")
    append(run, ROWS).close()

    def interrupted(*_: object, **__: object) -> Any:
        yield ROWS[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr(loggers, "rows_until_the_end", interrupted)
    assert main(["log", "mine", "--tensorboard", "board", "--follow", "--json"]) == 130
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rows"] == 1
    assert captured.err == "stopped; the same command adds what is missing\n"


def test_a_disk_that_fills_up_is_one_sentence_and_nothing_is_lost(run: Run) -> None:
    """The library's own writer thread dies of it without a word, and its queue then waits for ever."""
    pytest.importorskip("tensorboardX")
    rows = [row("progress", 100 * number, float(number)) for number in range(1, 400)]
    append(run, [*ROWS[:1], *rows]).close()
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))"  # a disk of 10 kB
    program = f"import sys; from hotloop.cli.main import main; {full}; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", program, "log", "mine", "--tensorboard", "board"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: cannot write board/events\.out\.tfevents\.\S+: File too large\n.*", done.stderr, re.S)
    assert "Traceback" not in done.stderr
    assert main(["log", "mine", "--tensorboard", "board"]) == 0
    whole = max(Path("board").glob("events.out.tfevents.*"), key=lambda path: path.stat().st_size)
    whole.rename(whole.parent / "whole")
    for cut in Path("board").glob("events.out.tfevents.*"):
        cut.unlink()
    (whole.parent / "whole").rename(whole)
    assert {entry[1] for entry in read_board(Path("board"))} == {100 * number for number in range(1, 400)}


def test_a_folder_of_another_run_is_refused(run: Run, run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tensorboardX")
    append(run, ROWS).close()
    assert main(["log", "mine", "--tensorboard", "board"]) == 0
    other = Run.create(run_folder / "other", "other", {"seed": 4})
    other.close()
    append(other, ROWS).close()
    assert main(["log", "other", "--tensorboard", "board"]) == 2
    assert "holds another run" in capsys.readouterr().err


class FakeWandb:
    """As much of the library as is used; no network, and it refuses steps that go back, as the library does."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.finished = 0

    def init(self, **options: Any) -> Any:
        self.started.append(options)
        return SimpleNamespace(define_metric=lambda *_, **__: None, log=self._log, finish=self._finish)

    def _log(self, values: dict[str, float], step: int) -> None:
        assert not self.logged or step >= self.logged[-1][0]
        self.logged.append((step, values))

    def _finish(self) -> None:
        self.finished += 1


def test_weights_and_biases_continue_under_the_same_id(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    append(run, ROWS[:3]).close()
    assert main(["log", "mine", "--wandb", "team/snakes"]) == 0
    append(run, ROWS[3:]).close()
    assert main(["log", "mine", "--wandb", "team/snakes"]) == 0
    assert "2 rows" in capsys.readouterr().out
    first, second = fake.started
    assert first == second
    assert (first["entity"], first["project"], first["config"]) == ("team", "snakes", {"seed": 3})
    assert [step for step, _ in fake.logged] == [100, 100, 200, 200]
    assert fake.logged[-1][1] == {"evaluation/mean_return": 4.0, "env_steps": 200}
    assert fake.finished == 2


def test_a_logger_that_cannot_start_says_how_to_do_without_a_network(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: Any) -> None:
        raise RuntimeError("api_key not configured")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=refuse))
    assert main(["log", "mine", "--wandb", "snakes"]) == 2
    said = capsys.readouterr().err
    assert "api_key not configured" in said
    assert "WANDB_MODE=offline" in said


@pytest.mark.parametrize(
    ("option", "extra", "module"), [("--wandb", "wandb", "wandb"), ("--tensorboard", "tensorboard", "tensorboardX")]
)
def test_a_missing_library_is_told_with_the_line_that_installs_it(
    run: Run, option: str, extra: str, module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["log", "mine", option, "there"]) == 2
    assert install_command(extra) in capsys.readouterr().err
    assert not Path("there").exists()


def test_a_run_is_logged_to_one_place_at_a_time(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "mine"]) == 2
    assert main(["log", "mine", "--wandb", "a", "--tensorboard", "b"]) == 2
