"""A trace and its findings made readable: on a terminal, as JSON, as a page, as a Chrome trace, against an old one.

Files:
    against.py       What became slower since an earlier report, and whether that is more than was allowed
    against_rows.py  Phase by phase and line by line: what two reports say an env step costs, and which differences
                     are beyond doubt
    charts.py        Charts of a trace: growth, timeline, bars, whiskers and the flame graph
    page.py          The diagnosis as one HTML page: complete in itself, nothing is fetched, and nothing from the
                     script can run
    report.py        The diagnosis as JSON: complete enough that a later one can be held against it
    screen.py        The diagnosis on one screen: where the time goes, what to do first, which lines are the most
                     expensive
    summary.py       What every view says about a trace: the phases with their costs, the verdict, the counts that
                     matter
    text.py          The diagnosis on a terminal: what was looked at, where the time goes, what to do about it
"""

from hotloop.doctor.views.against import ReportError, TraceComparison, compare_reports, require_report
from hotloop.doctor.views.page import page
from hotloop.doctor.views.report import chrome_trace, report_json
from hotloop.doctor.views.screen import render_screen
from hotloop.doctor.views.text import render_text

__all__ = [
    "ReportError",
    "TraceComparison",
    "chrome_trace",
    "compare_reports",
    "page",
    "render_screen",
    "render_text",
    "report_json",
    "require_report",
]
