"""HTML by construction, and the styles and scripts of every page.

Every string is escaped on its way into an element, so that no source line becomes markup. The doctor's page is in
`page.css` and `page.js`; what only a run's page has, the player of its pictures and the style of a comparison are here.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import resources

_VOID = frozenset({"meta", "br"})


class Html(str):
    """Text that is markup already. A plain string, an f-string over this included, is not."""

    __slots__ = ()


Child = Html | str | None


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """`element("p", "a < b", class_="note")`; attributes that are None or False are left out."""
    words = [tag, *(_attribute(name, value) for name, value in attributes.items() if value not in (None, False))]
    opening = f"<{' '.join(words)}>"
    return Html(opening if tag in _VOID else f"{opening}{join(children)}</{tag}>")


def join(parts: Iterable[Child]) -> Html:
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts if part is not None))


def _attribute(name: str, value: str | float | bool | None) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return name
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f'{name}="{escape(shown)}"'


def prose(words: str) -> Html:
    """A sentence in which `this` is code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:
        return join([words])
    return join(element("code", part) if place % 2 else part for place, part in enumerate(parts))


def section(title: str, *body: Child, note: str = "", **attributes: str) -> Html:
    """A part of the page; nothing at all where it would be empty."""
    if not any(body):
        return Html("")
    heading = element("h2", title)
    about = element("p", note, class_="note") if note else None
    return element("section", heading, about, *body, **attributes)


def table(headings: Iterable[str], rows: Iterable[Iterable[Child]], **attributes: str) -> Html:
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("table", element("thead", head), element("tbody", *body), **attributes)


def phase_class(name: str) -> str:
    """The style of a phase's colour; a name of somebody else's making must not reach into other styles."""
    known = {"act", "env", "store", "sample", "store-and-sample", "update", "log", "evaluate", "checkpoint", "start-up"}
    return f"p-{name}" if name in known else "p-other"


def style() -> str:
    doctor = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return doctor + _OWN


_OWN = """
:root { --judged: #0072b2; --trained: #8b6f1d; --best: #c24f00; --compile: #8f98a1; --advantage: #5f7a00; }
@media (prefers-color-scheme: dark) {
  :root { --judged: #56b4e9; --trained: #d9b93b; --best: #ff9a5c; --compile: #77818b; --advantage: #b5d04a; }
}
.p-compile { --phase: var(--compile); } .p-advantage { --phase: var(--advantage); }
h1 { overflow-wrap: anywhere; }
.subject { overflow-wrap: anywhere; }
.badge.finished { color: var(--good); } .badge.running { color: var(--accent); } .badge.stopped { color: var(--bad); }
.missing { color: var(--faint); font-style: italic; overflow-wrap: anywhere; }
.warning { margin-top: 20px; padding: 12px 16px; border: 1px solid var(--line); border-left: 4px solid var(--accent);
  border-radius: 8px; background: var(--card); overflow-wrap: anywhere; }
.figures { grid-template-columns: repeat(auto-fit, minmax(132px, 1fr)); }
.figures dd { overflow-wrap: anywhere; }

.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 20px 32px; }
.plot { min-width: 0; } .y span { white-space: nowrap; }
.line.judged, .dots.judged { stroke: var(--judged); }
.line.trained { stroke: var(--trained); stroke-width: 1.5; }
.dots.judged { stroke-width: 5; } .dots.best { stroke: var(--best); stroke-width: 11; }
.dot { stroke-width: 6; stroke-linecap: round; }
.spread { fill: var(--judged); fill-opacity: 0.13; }
.swatch.judged { background: var(--judged); } .swatch.trained { background: var(--trained); }
.swatch.best { background: var(--best); border-radius: 50%; }
.mark { position: absolute; font-size: 12.5px; font-weight: 600; color: var(--best); white-space: nowrap;
  pointer-events: none; transform: translate(9px, -20px); }
.mark.right { transform: translate(calc(-100% - 9px), -20px); }
.growths { margin-top: 18px; }
.growth { min-width: 0; } .growth h3 { margin-bottom: 0; overflow-wrap: anywhere; }
.through { margin-top: 22px; } .through .frame { height: 200px; } .speed { margin-top: 22px; max-width: 560px; }

.wide { overflow-x: auto; }
.fields td:first-child { color: var(--faint); min-width: 88px; max-width: 320px; overflow-wrap: break-word; }
.settings td, .settings th { text-align: left; overflow-wrap: anywhere; }
.settings td:nth-child(4) { color: var(--faint); font-size: 13.5px; }
.settings td:nth-child(1) { width: 23%; } .settings td:nth-child(2) { width: 14%; }
.settings td:nth-child(3) { width: 14%; color: var(--faint); }
details { margin-top: 14px; } summary { cursor: pointer; font-weight: 600; padding: 4px 0; }

.player { max-width: 560px; }
.strip { display: flex; gap: 4px; overflow-x: auto; background: var(--code); border-radius: 10px; padding: 8px; }
.strip img { height: 200px; width: auto; flex: none; border-radius: 4px; image-rendering: pixelated; }
.ready .strip { overflow: hidden; justify-content: center; }
.ready .strip img { width: 100%; height: auto; max-height: 460px; object-fit: contain; flex: 0 1 auto; }
.controls { display: flex; align-items: center; gap: 12px; margin: 8px 0; flex-wrap: wrap; }
.controls input { flex: 1 1 140px; min-width: 0; accent-color: var(--accent); }
.controls output { font-size: 13px; color: var(--faint); font-variant-numeric: tabular-nums; min-width: 150px;
  text-align: right; }
button { font: inherit; font-weight: 600; min-width: 96px; min-height: 40px; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; cursor: pointer; }
.drawing { overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; background: var(--card); }
.drawing img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.again p { margin: 14px 0 4px; overflow-wrap: anywhere; }
.again pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.verdict { font-size: 17px; font-weight: 600; }

@media (max-width: 640px) {
  .figures { grid-template-columns: repeat(2, 1fr); }
  .growths { grid-template-columns: minmax(0, 1fr); }
  .settings thead { display: none; }
  .settings tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 12px; padding: 7px 0;
    border-top: 1px solid var(--line); }
  .settings td { border: 0; padding: 0; width: auto !important; }
  .settings td:nth-child(2) { text-align: right; }
  .settings td:nth-child(3), .settings td:nth-child(4) { grid-column: 1 / -1; font-size: 13px; }
  .settings td:nth-child(3)::before { content: "default: "; }
  .controls output { min-width: 0; flex: 1 0 100%; text-align: left; }
  .drawing img { max-width: none; width: 760px; }
  .facts div { flex-wrap: wrap; gap: 0 14px; }
  .fields td, .fields th { font-size: 13px; padding-left: 8px; }
  .fields td:first-child { padding-left: 0; }
}
"""


SCRIPT = """
"use strict";
for (const player of document.querySelectorAll(".player")) {
  const pictures = [...player.querySelectorAll("img")];
  const [button, range, words] = ["button", "input", "output"].map((name) => player.querySelector(name));
  let shown = 0;
  let timer = null;

  function show(place) {
    shown = place;
    pictures.forEach((picture, index) => { picture.hidden = index !== place; });
    range.value = place;
    words.textContent = pictures[place].dataset.words;
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    button.textContent = shown === pictures.length - 1 ? "Play again" : "Play";
  }

  function play() {
    if (shown === pictures.length - 1) show(0);
    button.textContent = "Pause";
    timer = setInterval(() => {
      if (shown < pictures.length - 1) show(shown + 1);
      if (shown === pictures.length - 1) pause();
    }, Number(player.dataset.delay));
  }

  player.classList.add("ready");
  player.querySelector(".controls").hidden = false;
  button.addEventListener("click", () => (timer === null ? play() : pause()));
  range.addEventListener("input", () => {
    pause();
    show(Number(range.value));
    pause();
  });
  show(0);
  if (pictures.length > 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches) play();
  else pause();
}
"""


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
