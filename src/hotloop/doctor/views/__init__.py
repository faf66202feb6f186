"""A trace and its findings made readable: on a terminal, as JSON, as a page, as a Chrome trace, against an old one."""

from hotloop.doctor.views.against import Comparison, ReportError, compare_reports, require_report
from hotloop.doctor.views.page import page
from hotloop.doctor.views.report import chrome_trace, report_json
from hotloop.doctor.views.text import render_text

__all__ = [
    "Comparison",
    "ReportError",
    "chrome_trace",
    "compare_reports",
    "page",
    "render_text",
    "report_json",
    "require_report",
]
