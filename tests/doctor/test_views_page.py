"""The page: complete in itself, harmless whatever the script says, readable in both color schemes."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hotloop.doctor.trace import Counts, StackCost, Subject
from hotloop.doctor.views import page
from hotloop.doctor.views.charts import grow_tree, visible
from hotloop.render.html import Html, element, prose, script, style
from tests.doctor.sample_trace import CALLS, EXPERIMENTS, FINDINGS, GROWTH, LINES, NASTY, STACKS, make_trace


class Seen(HTMLParser):
    """Which elements and attributes a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def text():
    return page(make_trace(), FINDINGS)


def test_every_element_is_closed(text):
    assert Seen(text).open == []


def test_nothing_is_fetched(text):
    seen = Seen(text)
    assert not [name for name, _ in seen.attributes if name in ("src", "href", "srcset", "action", "data", "poster")]
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(seen.tags)
    assert not re.findall(r"https?:|//\w|url\(|@import|fetch\(|XMLHttp|import\(", text)
    assert [value for name, value in seen.attributes if name == "content" and value.startswith("default-src 'none';")]


def test_a_hostile_script_stays_text():
    nasty_finding = replace(
        FINDINGS[0], **dict.fromkeys(("title", "evidence", "where", "remedy", "before", "after", "rule", "kind"), NASTY)
    )
    trace = make_trace(
        subject=Subject(kind="script", name=NASTY, arguments=(NASTY,), ending=NASTY, error=NASTY),
        machine={NASTY: NASTY},
        lines=tuple(replace(line, where=NASTY, function=NASTY, source=NASTY, phase=NASTY) for line in LINES),
        stacks=tuple(StackCost(phase=NASTY, frames=(NASTY, NASTY), seconds=1.0) for _ in STACKS),
        calls=tuple(replace(call, name=NASTY, where=NASTY, phase=NASTY) for call in CALLS),
        phases={"start-up": 4.0, NASTY: 40.0},
        update_parts={NASTY: 1.0},
        timeline=tuple(replace(part, phases={NASTY: part.seconds}) for part in make_trace().timeline),
        growth=tuple(replace(growth, over=NASTY, what=NASTY) for growth in GROWTH),
        experiments=tuple(replace(one, name=NASTY, what=NASTY, kind=NASTY) for one in EXPERIMENTS),
        counts=replace(make_trace().counts, optimiser=NASTY),
        notes=(NASTY,),
    )
    seen = Seen(page(trace, [replace(nasty_finding, lines=(NASTY,))]))
    assert seen.tags.count("script") == 1
    assert "img" not in seen.tags
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert NASTY in seen.words
    assert seen.open == []


def test_a_line_that_would_leave_an_attribute_stays_in_it():
    (box,) = [value for name, value in Seen(element("i", title='" onclick="x')).attributes if name == "title"]
    assert box == '" onclick="x'


def test_plain_text_is_escaped_and_markup_is_not_lost():
    assert element("p", "a < b", Html("<br>")) == "<p>a &lt; b<br></p>"
    assert element("p", f"{Html('<br>')}!") == "<p>&lt;br&gt;!</p>"  # an f-string is a plain string again
    assert prose("call `a<b` twice") == "call <code>a&lt;b</code> twice"
    assert prose("a ` alone") == "a ` alone"


def test_the_verdict_findings_sources_and_remedies_are_there(text):
    words = " ".join(Seen(text).words)
    assert "50 % of the loop is the update; 2 findings that keep the computation would make it 1.27x faster" in words
    assert "(predicted, not tried). Beside it, 1.62x that changes learning: ask" in words
    for finding in FINDINGS:
        assert finding.title in words
    assert "self.memory.push(obs[i], int(action[i].item()), r[i])" in words
    assert "replay.add(obs, action, step)" in words


def test_a_clean_loop_says_so():
    assert "No rule found a cost that could be taken out of this loop." in page(make_trace(), [])


@pytest.mark.parametrize(
    "changed",
    [
        {
            "counts": Counts(),
            "timeline": (),
            "stacks": (),
            "lines": (),
            "phases": {"start-up": 44.0},
            "update_parts": {},
        },
        {"growth": (), "experiments": (), "calls": (), "notes": (), "machine": {}, "update_parts": {}},
        {"counts": Counts(updates=10), "timeline": make_trace().timeline[:1]},
        {"counts": Counts(updates=10)},
    ],
)
def test_a_page_without_some_of_its_parts_still_stands(changed):
    seen = Seen(page(make_trace(**changed), []))
    assert seen.open == []
    assert not {"nan", "inf", "None"} & set(re.findall(r"\w+", " ".join(seen.words)))


def test_a_single_hiccup_does_not_flatten_the_timeline():
    parts = list(make_trace().timeline)
    parts[7] = replace(parts[7], seconds=100.0, phases={"env": 100.0})
    assert "1 of 40 slices reach beyond the plot, up to 200,000 us." in page(make_trace(timeline=tuple(parts)), [])


def test_the_flame_graph_shares_boxes_and_keeps_to_its_parents():
    root = grow_tree(STACKS)
    assert root.seconds == 40.0
    assert root.children["update"].seconds == 20.0
    assert root.children["update"].children["main (train.py:140)"].children["learn (train.py:97)"].seconds == 6.0
    for placed in visible(root):
        assert 0 <= placed.left <= placed.left + placed.width <= 1 + 1e-9


def test_a_huge_trace_makes_no_huge_page():
    stacks = tuple(
        StackCost(phase="env", frames=tuple(f"f{number}_{depth} (a.py:1)" for depth in range(20)), seconds=1.0 + number)
        for number in range(500)
    )
    assert len(visible(grow_tree(stacks))) <= 701
    lines = LINES * 300
    assert len(page(make_trace(stacks=stacks, lines=lines, calls=CALLS * 300), FINDINGS)) < 400_000


def colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", css))


def contrast(one: str, other: str) -> float:
    """WCAG 2's ratio of relative luminances."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_stand_out_from_their_ground(scheme):
    found = colours(style().split("prefers-color-scheme: dark")[scheme])
    for ink in ("ink", "faint", "accent", "good", "bad", "learning"):
        for ground in ("page", "card", "code"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
    for phase in ("act", "env", "store", "sample", "update", "log", "evaluate", "checkpoint", "other"):
        assert contrast(found["on-phase"], found[phase]) >= 4.5, phase


def test_script_and_style_cannot_end_their_elements_early():
    for text in (script(), style()):
        assert "</" not in text


def test_long_lines_of_a_remedy_are_folded_and_never_cut_off():
    (pre,) = re.findall(r"^pre \{(.*)\}", style(), re.MULTILINE)
    assert "white-space: pre-wrap" in pre
    assert "overflow" not in pre
    assert "pre code { overflow-wrap: anywhere; }" in style()
