"""Pages in a real Chromium: nothing scrolls sideways, on a phone or in a window of 1,200 pixels."""

from __future__ import annotations

import pytest

from hotloop.comparison.jobs import plan_jobs
from hotloop.comparison.page import as_html
from hotloop.comparison.report import Question, collect
from hotloop.doctor.views import page as doctor_page
from hotloop.render.plots import LAST_CENTRED, below_axis
from tests.comparison import synthetic_runs
from tests.dashboard.chromium import BROWSER, chromium
from tests.doctor.sample_trace import FINDINGS, make_trace

SIDEWAYS = """
[document.documentElement.scrollWidth > innerWidth ? "page" : "", ...[...document.querySelectorAll("body *")].filter(
    each => each.clientWidth && each.scrollWidth > each.clientWidth + 1
        && (each.tagName === "SECTION" || ["auto", "scroll"].includes(getComputedStyle(each).overflowX))
).map(each => `${each.tagName}.${each.className} ${each.scrollWidth} in ${each.clientWidth}`)].filter(Boolean)
"""


def test_a_label_at_the_right_end_stays_within_its_plot():
    assert below_axis(50.0) == "left:50%"
    assert below_axis(100.0) == "left:100%;transform:translateX(-100%)"
    assert "transform" not in below_axis(LAST_CENTRED)


def compared(folder):
    """Four arms with long names and numbers."""
    labels = ("as-it-was-in-spring", "with-a-larger-replay", "double-and-n-step", "another-family")
    arms = [synthetic_runs.make_arm(label, total_env_steps=200) for label in labels]
    for place, arm in enumerate(arms):
        for seed in range(3):
            scores = [-1_234.56 * place, 61_234.5 + 10_000 * seed - 1_000 * place]
            synthetic_runs.write_run(folder / arm.folder / f"seed-{seed}", arm, seed, scores)
    question = Question("hotloop compare one other --seeds 3", "mean_return", 50.0, 3, workers=2, cores=4)
    return str(as_html(collect(question, plan_jobs(arms, 3, folder))))


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium here: the pages themselves were not looked at")
def test_no_page_scrolls_sideways(tmp_path):
    pages = {"doctor": str(doctor_page(make_trace(), FINDINGS)), "compare": compared(tmp_path / "runs")}
    with chromium() as browser:
        for name, text in pages.items():
            file = tmp_path / f"{name}.html"
            file.write_text(text)
            for width in (390, 768, 1_200):
                browser.size(width, 900)
                browser.open(file.as_uri())
                browser.wait(f"document.readyState === 'complete' && location.href.endsWith('{name}.html')")
                assert browser.run(SIDEWAYS) == [], (name, width)
