"""How the page looks: the doctor's page, and what only a run has."""

from __future__ import annotations

from importlib import resources


def style() -> str:
    doctor = resources.files("hotloop.doctor.views").joinpath("page.css").read_text(encoding="utf-8")
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
