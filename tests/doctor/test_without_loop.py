"""Scripts without an env, without a loop, that fail before or in it; and whose words are whose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotloop.cli import doctor
from hotloop.core.errors import SettingsError
from hotloop.core.verdicts import ExitCode
from hotloop.doctor.finding import findings
from hotloop.doctor.rules import load_rules
from hotloop.doctor.script import ScriptPlan, record_script
from hotloop.doctor.trace import Trace
from hotloop.doctor.views.summary import verdict

ROUNDS_ALONE = Path(__file__).parent / "programs" / "rounds_alone.py"
ENV = """
class Corridor:
    def reset(self):
        return 0
    def step(self, action):
        return 0, 1.0, False, {}
env = Corridor()
env.reset()
"""
WITH_A_CHILD = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "while True: pass"])
"""


def record(path: Path) -> Trace:
    plan = ScriptPlan(seconds=1.0, alone_after=1.0, counting=False, threads=False)
    return record_script(path, (), plan, lambda _: None)


def test_rounds_of_an_optimizer_alone_are_told_with_their_lines() -> None:
    trace = record(ROUNDS_ALONE)
    assert (trace.counts.env_steps, trace.counts.updates > 50) == (0, True)
    assert trace.share("update") > 0.9
    assert {"optimizer.step()", "loss.backward()"} <= {line.source.strip() for line in trace.lines}
    assert verdict(trace, []).startswith("No env step was seen; ")
    told = " ".join(trace.notes)
    assert "the rounds of the optimizers are told as the loop" in told
    assert "child process" not in told
    assert trace.nothing_to_judge == ""
    rules = {one.rule for one in findings(trace, load_rules())}
    assert not rules & {"UPDATE005", "UPDATE006"}, "nothing is known of env steps"


def test_child_processes_are_named_only_where_they_were_seen(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(WITH_A_CHILD + ROUNDS_ALONE.read_text())
    trace = record(script)
    assert any("child processes computed beside this one (1)" in note for note in trace.notes)


ENDS = {
    "fails before its loop": ("raise ValueError('no data')", ExitCode.UNDECIDED, "failed before its loop"),
    "never begins one": ("print('done')", ExitCode.UNDECIDED, "no loop was seen"),
    "fails too early": (ENV + "env.step(0)\nraise ValueError('x')", ExitCode.UNDECIDED, "before enough of its loop"),
    "fails late": (ENV + "for _ in range(5000): env.step(0)\nraise ValueError('x')", ExitCode.YES, ""),
    "finishes": (ENV + "for _ in range(5000): env.step(0)", ExitCode.YES, ""),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_script_without_a_loop_is_not_judged(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, code, reason = ENDS[name]
    script = tmp_path / "train.py"
    script.write_text(text)
    assert doctor.run(["--json", "--quick", "--quiet", "--budget", "1e9", str(script)]) == code
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert reason in report["nothing_to_judge"]
    assert bool(reason) == ("nothing to judge: " in said.err)
    assert ("The program crashed with code 1" in report["verdict"]) == ("fails" in name)


WORDS = "import sys\nprint(sys.argv[1:], file=open('words.txt', 'w'))\n" + ENV + "for _ in range(500): env.step(0)"


def test_an_option_of_ours_behind_the_script_is_told_and_two_dashes_hand_it_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(WORDS)
    with pytest.raises(SettingsError, match="`--html` stands behind train.py") as refused:
        doctor.run(["train.py", "--seed", "1", "--html", "page.html"])
    assert "`hotloop doctor train.py -- --seed 1 --html page.html`" in str(refused.value.hint)
    assert not Path("words.txt").exists(), "nothing was run"
    assert doctor.run(["--quick", "--quiet", "train.py", "--seed", "1", "--", "--html", "x"]) == 0
    assert Path("words.txt").read_text() == "['--seed', '1', '--html', 'x']\n"
    capsys.readouterr()
