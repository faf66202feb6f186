"""The terminal report, at the widths people have."""

import io

import pytest
from rich.console import Console

from hotloop.doctor.trace import Counts, OperatorCost
from hotloop.doctor.views import compare_reports, render_screen, render_text, report_json
from tests.doctor.sample_trace import FINDINGS, NASTY, make_trace, slowed


def shown(renderable, width=80, **options):
    file = io.StringIO()
    Console(file=file, width=width, highlight=False, **options).print(renderable)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_and_says_everything(width):
    text = shown(render_text(make_trace(), FINDINGS), width)
    assert max(map(len, text.splitlines())) <= width
    flat = " ".join(text.split())
    assert "train.py --seed 3 stopped at the doctor's limit after 44.0 s: 20,000 env steps, 5,000 updates" in flat
    assert "50 % of the loop is the update; 2 findings that keep the computation would make it 1.27x faster" in flat
    assert "(predicted, not tried). Beside it, 1.62x that changes learning: ask `hotloop compare`." in flat
    assert "update 20.00 50 % 1,000 4,000" in flat
    assert "backward 9.00 22 % 450 1,800" in flat
    assert "Tensor.item 8 32 train.py:88 store-and-sample" in flat
    assert "no updates 2.05x [1.98, 2.11] changes learning" in flat
    assert "train.py:88 self.memory.push(obs[i], int(action[i].item()), r[i])" in flat
    assert "1.18x faster, 15 % of the loop, identical, not tried" in flat
    assert "after replay.add(obs, action, step)" in flat
    assert "sampled every 2 ms" in flat


def test_a_simple_script_fits_one_screen():
    lines = shown(render_screen(make_trace(), FINDINGS), 100).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    flat = " ".join(" ".join(lines).split())
    assert "update 20.00 50 % 1,000 4,000" in flat
    assert "edit train.py:88 self.memory.push(obs[i], int(action[i].item()), r[i])" in flat
    assert "3. A line is printed after every update 1.08x" in flat
    assert "findings that keep the computation, together: 1.27x faster (predicted, not tried)" in flat  # 1.18 * 1.08
    assert "22 % train.py:101 loss.backward()" in flat
    assert "by function: learn 48 %" in flat


def test_a_screen_says_by_which_clock_and_what_no_rule_explains():
    trace = make_trace(clock="processor", notes=("the machine was busy with other programs",))
    text = " ".join(shown(render_screen(trace, []), 100).split())
    assert "processor time: the machine was busy with others" in text
    assert "unexplained: 22 % of the loop, train.py:101 loss.backward()" in text
    assert "note: the machine was busy with other programs" in text


def test_findings_keep_their_order():
    text = shown(render_text(make_trace(), FINDINGS))
    assert text.index("1. More updates") < text.index("2. Transitions") < text.index("3. A line is printed")


def test_a_clean_loop_says_so():
    assert "no findings: no rule found a cost" in shown(render_text(make_trace(), []))


def test_brackets_in_the_script_are_no_markup():
    assert "[bold]x[/bold]" in shown(render_text(make_trace(notes=("[bold]x[/bold] " + NASTY,)), []))


def test_no_colour_where_none_is_wanted(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(render_text(make_trace(), FINDINGS), force_terminal=True)
    assert "\x1b[3" not in text
    assert "\x1b[9" not in text


def test_an_empty_recording_is_rendered_too():
    trace = make_trace(phases={"start-up": 44.0}, counts=Counts(), growth=(), experiments=(), calls=(), update_parts={})
    assert "there is no loop to judge" in " ".join(shown(render_text(trace, [])).split())


def test_operators_are_shown_where_they_were_recorded():
    operators = (OperatorCost(name="aten::addmm", calls=15_000, seconds=3.5, share=0.42),)
    text = " ".join(shown(render_text(make_trace(operators=operators), [])).split())
    assert "aten::addmm 15,000 3.50 42 %" in text
    assert report_json(make_trace(operators=operators), [])["operators"][0]["calls"] == 15_000


def test_the_comparison_is_rendered_with_its_conclusion():
    old = report_json(make_trace(machine={"torch": "2.7"}), [])
    slow = slowed(1.6, swing=0.0, machine={"torch": "2.8"})
    text = " ".join(shown(compare_reports(old, slow).table(), 100).split())
    assert "loop 2,000 2,600 1.30x" in text
    assert "slower: loop, phase update" in text
    assert "torch was 2.7, is 2.8" in text
    assert "no phase became slower" in shown(compare_reports(old, make_trace()).table())
