// State, routes within the page, and the stream of changes.
import { command, downloads, el, get, bytes, number, one, Refused, seldom, words } from "./elements.js";
import { CurveChart, shade } from "./charts.js";
import { RunTable } from "./table.js";
import { RunView } from "./run.js";

const AXES = [["env_steps", "env steps"], ["seconds", "training seconds"], ["clock", "all seconds"]];
const FIRST_ARMS = 5;
const SMALL_MEASURES = 12;

const state = {
  runs: [], arms: [], byId: new Map(), armOf: new Map(), chosen: new Set(), places: new Map(), version: 0, control: false,
  x: sessionStorage.getItem("x") ?? "env_steps", y: sessionStorage.getItem("y") ?? "score", window: null,
  // a color of its own for each arm that is drawn, kept as long as the page is open
  place(key) {
    if (!this.places.has(key)) this.places.set(key, this.places.size);
    return this.places.get(key);
  },
};

const chart = new CurveChart(one("curve"), { height: innerWidth < 640 ? 260 : 340, onZoom: zoom, onFocus: showSeeds });
const table = new RunTable(state, { onChoice: choiceChanged, onOpen: (id) => { location.hash = `#/run/${id}`; }, onHover: showSeeds });
let runView = null;
let seedsOf = null;
const seedCache = new Map();
const smallCharts = new Map();

async function loadTable() {
  const data = await get("/api/table");
  const first = state.runs.length === 0;
  Object.assign(state, { runs: data.runs, version: data.version, control: data.control, measures: data.measures, shared: data.shared });
  takeArms(data.arms);
  state.byId = new Map(data.runs.map((run) => [run.id, run]));
  one("folder").textContent = data.folder;
  document.title = `${data.folder.split("/").at(-1)} · hotloop`;
  scanned(data.scan, data.notes);
  if (first) chooseFirst();
  fillMeasures();
  drawReports(data.reports);
  table.draw();
}

function takeArms(arms) {
  state.arms = arms;
  state.armOf = new Map(arms.map((arm) => [arm.key, arm]));
}

function scanned(scan, notes = []) {
  if (scan && scan.of) banner(`Reading the folder for the first time: ${number(scan.done)} of ${number(scan.of)}.`);
  else if (notes.length) banner(notes.join(" "));
  else banner("");
}

function banner(text) {
  one("banner").textContent = text;
  one("banner").hidden = !text;
}

function chooseFirst() {
  const kept = JSON.parse(sessionStorage.getItem("chosen") ?? "null");
  const there = (kept ?? []).filter((id) => state.byId.has(id));
  // of the newest that has a score, and those of its env: returns of other envs would not fit the axis
  const env = (arm) => state.byId.get(arm.runs[0])?.env ?? null;
  const newest = state.arms.find((arm) => arm.value !== null) ?? state.arms[0];
  const first = state.arms.filter((arm) => newest && env(arm) === env(newest)).slice(0, FIRST_ARMS).flatMap((arm) => arm.runs);
  state.chosen = new Set(kept && there.length ? there : first);
}

function fillMeasures() {
  const select = one("measure");
  const names = ["score", ...(state.measures ?? [])];
  if (select.options.length === names.length) return;
  const label = (name) => (name === "score" ? "return (evaluation, else training)" : `${words(name)} (${name.split(":")[0]})`);
  select.replaceChildren(...names.map((name) => el("option", { value: name }, label(name))));
  select.value = names.includes(state.y) ? state.y : "score";
  state.y = select.value;
}

function drawReports(reports) {
  const rows = reports.map((report) => el("li", {}, el("a", { href: `#/report/${report.id}` }, report.name), " ", el("span", { class: "faint" }, report.verdict)));
  one("reports").replaceChildren(...(rows.length ? [el("h2", {}, "Reports of the doctor"), el("ul", { class: "reports" }, ...rows)] : []));
}

const query = (more = {}) => {
  const given = { runs: [...state.chosen].join(","), x: state.x, y: state.y, width: String(Math.round(chart.size().width)), ...more };
  if (state.window) Object.assign(given, { low: String(state.window[0]), high: String(state.window[1]) });
  return new URLSearchParams(given).toString();
};

export function lines(data) {
  return data.arms.flatMap((arm) => {
    const place = state.place(arm.key);
    if (arm.mean) return [{ key: arm.key, label: arm.label, x: arm.x, y: arm.mean, low: arm.low, high: arm.high, place }];
    return (arm.runs ?? []).map((run) => ({ key: arm.key, label: arm.label, x: run.x, y: run.y, place }));
  });
}

async function drawCurves() {
  if (one("overview").hidden) return;
  const data = await get(`/api/curves?${query()}`);
  chart.show(lines(data), data.x_label, state.window);
  if (!performance.getEntriesByName("drawn").length) performance.mark("drawn");
  drawKeys(data);
  one("curve-files").replaceChildren(...downloads(query(), data.command));
  await Promise.all([drawVerdict(), one("more").open ? drawSmalls() : null]);
}

const curvesSeldom = seldom(() => drawCurves().catch(failed), 1000);

function drawKeys(data) {
  one("keys").replaceChildren(...data.arms.map((arm) => el("button", { type: "button", class: "key", color: shade(state.place(arm.key)),
    onmouseenter: () => showSeeds(arm.key), onmouseleave: () => showSeeds(null), onfocus: () => showSeeds(arm.key), onblur: () => showSeeds(null) },
    el("i"), arm.label, el("small", {}, arm.seeds > 1 ? `${arm.seeds} seeds` : ""))));
  const points = data.arms.flatMap((arm) => arm.runs ?? []).reduce((sum, run) => sum + run.points, 0);
  const parts = ["Arms: mean over seeds with its 95 % bootstrap band."];
  if (points) parts.push(`Single runs: of ${number(points)} points the lowest and the highest in each pixel; none is left out by sampling.`);
  parts.push("Drag to look closer, double-click for all of it.");
  one("about-curve").textContent = parts.join(" ");
}

async function drawVerdict() {
  const arms = new Set([...state.chosen].map((id) => state.byId.get(id)?.arm));
  const host = one("verdict");
  const runs = new URLSearchParams({ runs: [...state.chosen].join(",") });
  if (arms.size !== 2) host.replaceChildren();
  else {
    const found = await get(`/api/verdict?${runs}`);
    const kind = { better: "good", worse: "bad", "as good": "good" }[found.learning] ?? "open";
    host.replaceChildren(found.missing
      ? el("p", { class: "missing" }, found.missing)
      : el("div", { class: `verdict ${kind}` }, el("p", { class: "sentence" }, found.sentence), el("ul", {}, ...found.details.map((line) => el("li", {}, line))),
        el("details", {}, el("summary", {}, "the command that says the same"), command(found.command))));
  }
  if (arms.size < 2 || arms.size > 12) one("differences").replaceChildren();
  else drawDifferences(await get(`/api/settings?${runs}`));
}

function drawDifferences({ arms, rows, partial }) {
  const table = (list) => el("div", { class: "wide" }, el("table", { class: "plain-table" },
    el("thead", {}, el("tr", {}, el("th"), ...arms.map((label) => el("th", { scope: "col" }, label)))),
    el("tbody", {}, ...list.map((row) => el("tr", {}, el("th", { scope: "row" }, row.setting), ...row.values.map((value) => el("td", {}, shown(value))))))));
  one("differences").replaceChildren(
    ...(rows.length ? [el("h2", {}, "Settings that differ"), table(rows)] : []),
    ...(partial.length ? [el("details", {}, el("summary", {}, `${number(partial.length)} settings that only some of them have`), table(partial))] : []));
}

export const shown = (value) => (value === null || value === undefined ? "–" : Array.isArray(value) ? value.map(shown).join(", ") : String(value));

async function drawSmalls() {
  const names = (state.measures ?? []).filter((name) => name !== state.y && !/(env_steps_per_second|training_seconds|episodes)$/.test(name)).slice(0, SMALL_MEASURES);
  const host = one("smalls");
  for (const name of names) {
    if (!smallCharts.has(name)) {
      const [place, files] = [el("div", { class: "chart" }), el("div", { class: "files" })];
      host.append(el("figure", {}, el("figcaption", {}, `${words(name)} (${name.split(":")[0]})`), place, files));
      smallCharts.set(name, new CurveChart(place, { height: 150, small: true, sync: "smalls" }));
      smallCharts.get(name).files = files;
    }
    const data = await get(`/api/curves?${query({ y: name, width: "300" })}`);
    smallCharts.get(name).show(lines(data), data.x_label, state.window);
    smallCharts.get(name).files.replaceChildren(...downloads(query({ y: name }), data.command));
  }
}

async function showSeeds(key) {
  seedsOf = key;
  const arm = key && state.armOf.get(key);
  const runs = arm ? arm.runs.filter((id) => state.chosen.has(id)) : [];
  if (runs.length < 2) { chart.showSeeds(0, null); return; }
  const asked = query({ runs: runs.join(","), single: "1" });
  if (!seedCache.has(asked)) {
    if (seedCache.size > 40) seedCache.clear();
    seedCache.set(asked, get(`/api/curves?${asked}`).catch(() => null));
  }
  const data = await seedCache.get(asked);
  if (seedsOf === key && data?.arms[0]) chart.showSeeds(state.place(key), data.arms[0].runs);
}

function zoom(low, high) {
  state.window = low === null ? null : [low, high];
  drawCurves().catch(failed);
}

function choiceChanged() {
  sessionStorage.setItem("chosen", JSON.stringify([...state.chosen]));
  table.draw();
  curvesSeldom();
}

function setAxis(x) {
  state.x = x;
  state.window = null;
  sessionStorage.setItem("x", x);
  drawAxis();
  if (one("overview").hidden) runView?.setAxis(x);
  else drawCurves().catch(failed);
}

function drawAxis() {
  one("axis").replaceChildren(...AXES.map(([x, label]) =>
    el("button", { type: "button", "aria-pressed": String(state.x === x), onclick: () => setAxis(x) }, label)));
}

// The stream: rows as they change; where the connection breaks, everything is asked for again.
let stream = null;
let wait = 1000;

function live(kind, text) {
  one("live").className = `live ${kind}`;
  one("live").textContent = text;
}

function listen() {
  stream?.close();
  stream = new EventSource("/api/stream");
  stream.addEventListener("open", () => { wait = 1000; live("on", "live"); });
  stream.addEventListener("rows", (event) => take(JSON.parse(event.data)));
  stream.addEventListener("again", () => start().catch(failed));
  stream.addEventListener("jobs", () => runView?.jobsChanged());
  stream.addEventListener("error", () => { stream.close(); lost(); });
}

function lost() {
  live("off", "not connected");
  banner("The server does not answer. What is shown is as it was; this page tries again by itself.");
  setTimeout(async () => {
    try {
      await start();
      listen();
    } catch (error) {
      wait = Math.min(10000, wait * 1.5);
      if (error instanceof Refused && error.status === 403) banner(error.message);
      else lost();
    }
  }, wait);
}

function take(change) {
  state.version = change.version;
  let fresh = false;
  for (const [id, row] of Object.entries(change.runs)) {
    if (row === null) state.byId.delete(id);
    else {
      fresh ||= !state.byId.has(id);
      if (row.kind !== "doctor") state.byId.set(id, row);
    }
  }
  const gone = Object.values(change.runs).some((row) => row === null);
  if (fresh || gone) { tableSeldom(); return; }
  state.runs = state.runs.map((run) => state.byId.get(run.id) ?? run);
  const newArms = new Map(change.arms.map((arm) => [arm.key, arm]));
  takeArms(state.arms.map((arm) => ({ ...arm, ...newArms.get(arm.key), label: arm.label })));
  scanned(change.scan);
  const ids = Object.keys(change.runs);
  if (!one("overview").hidden) {
    table.draw();
    if (ids.some((id) => state.chosen.has(id))) { seedCache.clear(); curvesSeldom(); }
  }
  if (runView && ids.includes(runView.id)) runView.changed();
}

const tableSeldom = seldom(() => loadTable().then(() => { if (!one("overview").hidden) return drawCurves(); }).catch(failed), 1500);

async function start() {
  await loadTable();
  await route();
}

async function route() {
  const [, kind, id] = location.hash.split("/");
  runView?.destroy();
  runView = null;
  const inner = kind === "run" || kind === "report";
  one("overview").hidden = inner;
  one("run").hidden = !inner;
  if (!inner) { table.draw(); await drawCurves(); return; }
  runView = new RunView(one("run"), id, kind, state);
  await runView.load();
}

function failed(error) {
  if (error instanceof Refused) banner(error.message);
  else console.warn(error);
}

async function showMachine() {
  try {
    const now = await get("/api/machine");
    one("machine").textContent = `load ${now.load ?? "–"} on ${now.cores} core${now.cores === 1 ? "" : "s"} · ${bytes(now.memory_used)} of ${bytes(now.memory)}`;
  } catch { /* the stream notices */ }
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input[type=search], input[type=text], input[type=number], select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const axis = { 1: 0, 2: 1, 3: 2 }[event.key];
  if (event.key === "/") { event.preventDefault(); one("filter").focus(); }
  else if (event.key === "?") one("help").showModal();
  else if (event.key === "Escape" && !one("run").hidden) location.hash = "#/";
  else if (event.key === "g") { one("grouped").checked = !one("grouped").checked; table.draw(); }
  else if (event.key === "p") runView?.toggle();
  else if (axis !== undefined) setAxis(AXES[axis][0]);
  else if (!one("overview").hidden && !event.target.matches("button, summary, a") && table.keys(event)) event.preventDefault();
});

one("filter").addEventListener("input", seldom(() => table.draw(), 80));
one("grouped").addEventListener("change", () => table.draw());
one("choose-none").addEventListener("click", () => { state.chosen.clear(); choiceChanged(); });
one("measure").addEventListener("change", () => {
  state.y = one("measure").value;
  sessionStorage.setItem("y", state.y);
  drawCurves().catch(failed);
});
one("more").addEventListener("toggle", () => { if (one("more").open) drawSmalls().catch(failed); });
one("help-button").addEventListener("click", () => one("help").showModal());
addEventListener("hashchange", () => route().catch(failed));

drawAxis();
start().then(listen, () => lost());
showMachine();
setInterval(() => { if (!document.hidden) showMachine(); }, 5000);
