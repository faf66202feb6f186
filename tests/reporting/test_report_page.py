"""The page: complete in itself, and harmless whatever the run's files say."""

import json
import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.doctor.views import report_json
from hotloop.render.html import style
from hotloop.reporting.agent import AgentView, Picture, Played
from hotloop.reporting.diagnosis import read_diagnosis
from hotloop.reporting.facts import RunFacts
from hotloop.reporting.make import make_report
from hotloop.reporting.page import page
from hotloop.runs.directory import Run
from tests.doctor.sample_trace import FINDINGS, NASTY, make_trace
from tests.reporting.seen_page import Seen, require_harmless
from tests.reporting.written_runs import rows, write_run

PIECES = [
    NASTY,
    "'\"><svg onload=alert(1)>",
    "]]>",
    "<!--",
    "`<b>`",
    "&lt;",
    "url(https://x.y)",
    "</style>",
    "javascript:",
]
TEXTS = st.one_of(
    st.sampled_from(PIECES), st.text(max_size=12), st.tuples(st.sampled_from(PIECES), st.text()).map("".join)
)
NUMBERS = st.one_of(st.floats(), st.integers(), st.integers(-(10**400), 10**400), st.none(), st.booleans(), TEXTS)
STEPS = st.one_of(st.integers(0, 1_000), NUMBERS)


@st.composite
def hostile_rows(draw):
    phases = st.one_of(st.dictionaries(TEXTS, NUMBERS, max_size=4), NUMBERS)
    kinds = st.sampled_from(["progress", "evaluation", "start"])
    row = {"event": draw(kinds), "env_steps": draw(STEPS), "phases": draw(phases), "machine": draw(phases)}
    named = st.dictionaries(
        st.one_of(TEXTS, st.sampled_from(["loss", "mean_return", "std_return", "seconds", "updates"])), NUMBERS
    )
    return draw(named) | row


@st.composite
def hostile_facts(draw):
    table = st.dictionaries(TEXTS, NUMBERS, max_size=4)
    tree = draw(table) | {"env": draw(st.one_of(table, TEXTS)), "algorithm": draw(st.one_of(st.just("dqn"), TEXTS))}
    tree |= {"total_env_steps": draw(NUMBERS), "seed": draw(NUMBERS)}
    return RunFacts(
        run=Run(Path(draw(TEXTS).replace("\0", "") or "run")),
        label=draw(TEXTS),
        status=draw(st.sampled_from(["finished", "running", "stopped"])),
        settings=tree,
        about=draw(table) | {"hotloop": draw(TEXTS), "started": draw(TEXTS)},
        lane={"lane": draw(TEXTS), "reason": draw(TEXTS)},
        result=draw(table) | {"evaluation": draw(st.one_of(table, TEXTS)), "phases": draw(table)},
        rows=draw(st.lists(hostile_rows(), max_size=8)),
        checkpoints=tuple(draw(st.lists(TEXTS, min_size=1, max_size=2))),
        notes=(draw(TEXTS),),
    )


@settings(max_examples=60)
@given(hostile_facts(), TEXTS)
def test_nothing_a_run_says_becomes_markup(facts, text):
    stats = {text: text, "return": 1.0, "end": text}
    played = Played((Picture(0, 0.0, b"x"), Picture(1, 1.0, b"y")), stats, 30.0, (4, 4))
    for view in (AgentView(played), AgentView(missing=text)):
        seen = require_harmless(page(facts, view, None, facts.notes))
    assert facts.label.strip() == "" or facts.label.replace("\r", "\n") in seen.text.replace("\r", "\n")


def test_a_hostile_diagnosis_stays_text(tmp_path):
    path = write_run(tmp_path / "run", label=NASTY)
    texts = dict.fromkeys(("title", "evidence", "where", "remedy", "before", "after", "rule", "kind"), NASTY)
    finding = texts | {"share": "0.5", "expected_gain": 1e400, "lines": [NASTY, 3, None]}
    (path / "doctor.json").write_text(
        json.dumps({"verdict": NASTY, "findings": [finding], "lines": [{"where": NASTY}, 1]})
    )
    made = make_report(path)
    assert NASTY in require_harmless(made.html).words
    assert made.data["findings"] == 1


def test_half_a_surrogate_pair_can_be_written(tmp_path):
    path = write_run(tmp_path / "run", events='{"event": "progress", "env_steps": 1, "\\ud800": 2}\n')
    require_harmless(make_report(path).html.encode().decode())


def test_a_whole_run_is_told_part_by_part(tmp_path):
    made = make_report(write_run(tmp_path / "run"))
    seen = require_harmless(made.html)
    headings = re.findall("<h2>(.*?)</h2>", made.html)
    assert headings == [
        "Learning curve",
        "Evaluation",
        "The agent",
        "Losses and other statistics",
        "Where the time went",
        "Settings",
        "Continue it, look at it, do it again",
        "Environment",
    ]
    assert "best 30" in seen.words
    assert "DQN on cartpole, seed 0: 300 env steps" in seen.text
    assert "success rate" in seen.words
    assert "28.5" in seen.words
    assert "3.12.3" in seen.words
    assert "native" in seen.words


def test_a_run_that_stopped_says_how_far_it_came(tmp_path):
    made = make_report(write_run(tmp_path / "run", finished=False))
    assert "300 of 400 env steps (75 %)" in Seen(made.html).text
    assert made.sentence == "DQN on cartpole, seed 0: 300 of 400 env steps (75 %)"
    assert made.data["status"] == "stopped"
    assert made.data["best"] == {"env_steps": 200, "mean_return": 30.0}
    assert made.data["evaluation"] is None


def test_shares_of_the_loop_leave_start_up_out(tmp_path):
    seen = Seen(make_report(write_run(tmp_path / "run", finished=False)).html)
    bars = [value for tag, name, value in seen.attributes if name == "aria-label" and "update" in value]
    assert bars[0] == "update 67 %; evaluate 33 %"  # 3 s and 1.5 s; 5 s of start-up stand apart


def test_changed_settings_stand_before_all_of_them(tmp_path):
    html = make_report(write_run(tmp_path / "run", gamma=0.5)).html
    above, folded = html[html.index("<h2>Settings") :].split("<details>")
    assert re.findall("<code>([a-z_.]+)</code></td><td><b>", above) == ["total_env_steps", "gamma"]
    assert "<b>0.5</b></td><td>0.99</td>" in above
    assert "exploration.kind" in folded


def test_the_doctor_is_asked_for_its_findings(tmp_path):
    path, file = write_run(tmp_path / "run"), tmp_path / "found.json"
    file.write_text(json.dumps(report_json(make_trace(), FINDINGS)))
    assert "Findings" not in make_report(path).html
    html = make_report(path, doctor=file).html
    assert FINDINGS[0].title in Seen(html).text
    assert len(read_diagnosis(file).findings) == len(FINDINGS)


def test_a_damaged_doctor_file_in_the_folder_is_told(tmp_path):
    path = write_run(tmp_path / "run")
    (path / "doctor.json").write_text('{"findings": 3}')
    assert "the doctor's findings are left out" in make_report(path).data["notes"][0]


def test_a_long_run_keeps_a_small_page(tmp_path):
    events = "".join(json.dumps(row) + "\n" for row in rows(5_000))
    made = make_report(write_run(tmp_path / "run", events=events))
    assert len(made.html) < 200_000
    require_harmless(made.html)


def test_both_color_schemes_and_small_screens_have_their_rules():
    assert style().count("prefers-color-scheme: dark") == 1
    assert "max-width: 640px" in style()
