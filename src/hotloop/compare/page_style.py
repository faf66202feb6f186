"""How the page looks: light and dark, wide and narrow."""

from __future__ import annotations

STYLE = """
:root { --page: #f7f7f5; --card: #fff; --ink: #1c2126; --faint: #59636e; --line: #dcdfe3; --code: #eceef0;
  --accent: #b4430a; --good: #00704f; --bad: #b3261e; --open: #8a6d00; }
@media (prefers-color-scheme: dark) { :root { --page: #111418; --card: #191e24; --ink: #e6eaee; --faint: #9ea9b4;
  --line: #2f363e; --code: #232a32; --accent: #ff9a5c; --good: #3dd0a0; --bad: #ff8a80; --open: #d9b93b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); -webkit-text-size-adjust: 100%;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 28px 20px 64px; }
h1 { font-size: clamp(22px, 3.2vw, 34px); line-height: 1.2; margin: 4px 0 6px; letter-spacing: -.015em;
  text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 0 0 8px; line-height: 1.3; }
section { margin-top: 36px; }
.kicker { color: var(--accent); font-weight: 650; margin: 0; }
.note, .faint { color: var(--faint); }
.note { margin: 0; }
ul { margin: 0; padding-left: 20px; }
li { margin: 2px 0; overflow-wrap: anywhere; }
.verdict { background: var(--card); border: 1px solid var(--line); border-left: 5px solid var(--kind);
  border-radius: 10px; padding: 14px 18px; margin-top: 16px; }
.verdict p { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.verdict .faint { font-weight: 400; }
.verdict h2 { color: var(--kind); margin: 2px 0 8px; }
.good { --kind: var(--good); } .bad { --kind: var(--bad); } .open { --kind: var(--open); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 16px; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 10px; overflow: hidden; background: var(--card); }
img { display: block; width: 100%; height: auto; }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 4px 16px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 7px 0 7px 18px; vertical-align: baseline; }
thead th { font-weight: 500; color: var(--faint); font-size: 13px; vertical-align: bottom; }
tbody th, tbody td { border-top: 1px solid var(--line); }
tbody th { font-weight: 600; min-width: 9em; }
td { white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; }
th i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 8px; }
pre { margin: 0; padding: 12px 14px; background: var(--code); border-radius: 8px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
code { font: 14px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
@media (max-width: 760px) {
  main { padding: 18px 14px 40px; }
  section { margin-top: 28px; }
  thead { display: none; }
  table, tbody, tr, th, td { display: block; }
  tbody th { min-width: 0; }
  tr { padding: 8px 0; }
  tr + tr { border-top: 1px solid var(--line); }
  tbody th, tbody td { border: 0; padding: 2px 0; text-align: left; white-space: normal; }
  td { display: flex; justify-content: space-between; gap: 16px; }
  td::before { content: attr(data-label); color: var(--faint); flex: none; max-width: 55%; }
  td { text-align: right; overflow-wrap: anywhere; }
}
"""
