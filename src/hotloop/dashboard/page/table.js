// The table of runs: filter, order, groups by arm, choice, and a row that keys move.
import { el, number, one, short, when } from "./elements.js";
import { shade } from "./charts.js";

const COLUMNS = [
  ["label", "run", "left"],
  ["status", "", "left"],
  ["env_steps", "env steps"],
  ["score", "score"],
  ["rate", "env steps/s", "wide-only"],
  ["began", "began", "wide-only"],
];

// `seed=1`, `optimizer.learning_rate<0.001`, `status=running`; any other word is part of a name. `shared`: what all runs have alike.
export function matcher(text, shared = {}) {
  const tests = text.split(/\s+/).filter(Boolean).map((word) => {
    const found = /^([\w.-]+)(<=|>=|!=|=|<|>)(.*)$/.exec(word);
    if (!found) {
      const part = word.toLowerCase();
      return (run) => `${run.label} ${run.name} ${run.env ?? ""} ${run.algorithm ?? ""}`.toLowerCase().includes(part);
    }
    const [, name, sign, wanted] = found;
    return (run) => compare(value(run, name, shared), sign, wanted);
  });
  return (run) => tests.every((test) => test(run));
}

function value(run, name, shared) {
  for (const settings of run.kind === "run" ? [run.settings, shared] : []) {
    if (name in settings) return settings[name];
    const long = Object.keys(settings).find((setting) => setting.endsWith(`.${name}`));
    if (long) return settings[long];
  }
  return ["seed", "status", "env", "algorithm", "score", "env_steps", "rate", "kind", "node"].includes(name) ? run[name] : undefined;
}

function compare(have, sign, wanted) {
  if (have === undefined || have === null) return sign === "!=";
  const [a, b] = [Number(have), Number(wanted)];
  const numeric = wanted !== "" && !Number.isNaN(a) && !Number.isNaN(b) && typeof have !== "boolean";
  if (sign === "=") return numeric ? a === b : String(have).toLowerCase().includes(wanted.toLowerCase());
  if (sign === "!=") return numeric ? a !== b : !String(have).toLowerCase().includes(wanted.toLowerCase());
  if (!numeric) return false;
  return { "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b }[sign];
}

export class RunTable {
  constructor(state, { onChoice, onOpen, onHover }) {
    Object.assign(this, { state, onChoice, onOpen, onHover });
    this.order = { by: null, down: true };
    this.unfolded = new Set();
    this.at = -1;
    this.rows = [];
    this.host = one("table");
    this.body = el("tbody");
    this.head = el("tr");
    this.host.append(el("table", {}, el("thead", {}, this.head), this.body));
  }

  visible() {
    const matches = matcher(one("filter").value, this.state.shared);
    return this.state.runs.filter((run) => matches(run));
  }

  // What is shown, in order: arms (with the runs of unfolded ones), or runs.
  entries(runs) {
    if (!one("grouped").checked) return this.sorted(runs.map((run) => ({ run, runs: [run], label: this.name(run) })));
    const there = new Set(runs.map((run) => run.id));
    const arms = this.state.arms.map((arm) => ({ arm, label: arm.label, runs: arm.runs.filter((id) => there.has(id)).map((id) => this.state.byId.get(id)) }));
    const shown = this.sorted(arms.filter((entry) => entry.runs.length));
    return shown.flatMap((entry) => {
      const many = entry.runs.length > 1;
      const inner = many && this.unfolded.has(entry.arm.key) ? entry.runs.map((run) => ({ run, runs: [run], label: this.name(run), inner: true })) : [];
      return [many ? entry : { ...entry, run: entry.runs[0] }, ...inner];
    });
  }

  name(run) {
    const place = run.name.split("/").slice(-2).join("/");
    return run.kind === "run" ? place : `${place}`;
  }

  key(entry, by) {
    const first = entry.run ?? entry.runs[0];
    if (by === "label") return entry.label;
    if (by === "status") return first.status;
    if (by === "score") return this.score(entry).value ?? -Infinity;
    if (by === "began") return Math.max(...entry.runs.map((run) => run.time ?? 0));
    const values = entry.runs.map((run) => run[by]).filter((value) => value !== null && value !== undefined);
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : -Infinity;
  }

  sorted(entries) {
    const { by, down } = this.order;
    if (!by) return entries;
    const keyed = entries.map((entry) => [this.key(entry, by), entry]);
    keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
    return keyed.map(([, entry]) => entry);
  }

  score(entry) {
    if (entry.run) return { value: entry.run.score, interval: null, word: entry.run.scored };
    const whole = entry.runs.length === entry.arm.runs.length;
    return whole ? { ...entry.arm, word: entry.runs.every((run) => run.scored === "fresh") ? "fresh" : "latest" } : this.middle(entry.runs);
  }

  middle(runs) {
    const scores = runs.map((run) => run.score).filter((score) => score !== null);
    return { value: scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : null, interval: null, word: "mean" };
  }

  draw() {
    const runs = this.visible();
    const entries = this.entries(runs);
    this.rows = entries;
    this.at = Math.min(this.at, entries.length - 1);
    this.drawHead();
    this.body.replaceChildren(...entries.slice(0, 2000).map((entry, place) => this.row(entry, place)));
    const running = runs.filter((run) => run.status === "running").length;
    const parts = [`${number(runs.length)} of ${number(this.state.runs.length)} runs`];
    if (running) parts.push(`${running} training now`);
    one("count").textContent = this.state.runs.length ? parts.join(", ") : "There are no runs or logs below this folder yet.";
  }

  drawHead() {
    const cells = COLUMNS.map(([by, words, style]) => {
      const sign = this.order.by === by ? (this.order.down ? " ↓" : " ↑") : "";
      const order = { onclick: () => this.orderBy(by), type: "button", class: "plain" };
      const sorted = this.order.by === by ? (this.order.down ? "descending" : "ascending") : "none";
      return el("th", { class: style ?? "", scope: "col", "aria-sort": sorted }, words ? el("button", order, words + sign) : "");
    });
    this.head.replaceChildren(el("th", { class: "pick" }), ...cells);
  }

  orderBy(by) {
    this.order = this.order.by === by ? { by, down: !this.order.down } : { by, down: by !== "label" };
    this.draw();
  }

  row(entry, place) {
    const ids = entry.runs.map((run) => run.id);
    const picked = ids.filter((id) => this.state.chosen.has(id)).length;
    const key = entry.arm?.key ?? entry.run.arm;
    const box = el("input", { type: "checkbox", checked: picked === ids.length, indeterminate: picked > 0 && picked < ids.length,
      "aria-label": `draw ${entry.label}`, onchange: () => this.choose(entry) });
    const color = picked ? shade(this.state.place(key)) : "transparent";
    const cells = [
      el("td", { class: "pick" }, el("label", { color }, box)),
      el("td", { class: "left name" }, this.title(entry)),
      el("td", { class: "left" }, this.status(entry)),
      el("td", {}, this.progress(entry)),
      el("td", { class: "score" }, ...this.scoreWords(entry)),
      el("td", { class: "wide-only" }, short(this.mean(entry.runs, "rate"))),
      el("td", { class: "wide-only began" }, when(entry.run ?? entry.runs[0])),
    ];
    return el("tr", { class: `${entry.inner ? "inner " : ""}${place === this.at ? "at" : ""}`,
      onmouseenter: () => this.onHover(entry.run ? null : key), onmouseleave: () => this.onHover(null) }, ...cells);
  }

  title(entry) {
    const seeds = entry.runs.length;
    if (entry.run) {
      const about = entry.inner || !one("grouped").checked ? this.about(entry.run) : entry.run.name;
      return el("a", { href: `#/run/${entry.run.id}` }, entry.label, about === entry.label ? null : el("small", {}, about));
    }
    const open = this.unfolded.has(entry.arm.key);
    const unfold = () => { this.toggle(this.unfolded, entry.arm.key); this.draw(); };
    return el("button", { class: "plain unfold", type: "button", "aria-expanded": String(open), onclick: unfold },
      `${open ? "▾" : "▸"} ${entry.label}`, el("small", {}, `${seeds} ${entry.runs[0].kind === "run" ? "seeds" : "logs"}`));
  }

  about(run) {
    const parts = [run.seed === null || run.seed === undefined ? "" : `seed ${run.seed}`, run.env ?? "", run.node ? `on ${run.node}` : ""];
    const kinds = { tensorboard: "TensorBoard", monitor: "monitor of Stable-Baselines3", progress: "progress of Stable-Baselines3", csv: "CSV" };
    return [kinds[run.kind] ?? "", ...parts].filter(Boolean).join(", ");
  }

  status(entry) {
    const count = (status) => entry.runs.filter((run) => run.status === status).length;
    const kinds = ["running", "stopped", "finished", "log"].filter(count);
    return kinds.map((status) => el("span", { class: `badge ${status}` }, entry.run ? status : `${count(status)} ${status}`));
  }

  progress(entry) {
    const steps = this.mean(entry.runs, "env_steps");
    const total = this.mean(entry.runs, "total");
    const bar = total && steps !== null ? el("i", { class: "done", share: Math.min(1, steps / total) }) : null;
    return el("span", { class: "progress" }, short(steps), bar);
  }

  scoreWords(entry) {
    const { value, interval, word } = this.score(entry);
    const meanings = { fresh: "best weights, on fresh episodes", latest: "latest evaluation so far", training: "mean return in training", mean: "mean of the runs shown" };
    const told = el("span", { title: meanings[word] ?? "" }, number(value), word === "fresh" || !word ? "" : el("sup", {}, "~"));
    return interval ? [told, el("small", {}, ` [${number(interval[0])}, ${number(interval[1])}]`)] : [told];
  }

  mean(runs, name) {
    const values = runs.map((run) => run[name]).filter((value) => Number.isFinite(value));
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  }

  toggle(set, value) {
    if (!set.delete(value)) set.add(value);
  }

  choose(entry) {
    const ids = entry.runs.map((run) => run.id);
    const all = ids.every((id) => this.state.chosen.has(id));
    for (const id of ids) all ? this.state.chosen.delete(id) : this.state.chosen.add(id);
    this.onChoice();
  }

  keys(event) {
    const move = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      this.at = Math.max(0, Math.min(this.rows.length - 1, this.at + move));
      this.draw();
      this.body.children[this.at]?.scrollIntoView({ block: "nearest" });
      return true;
    }
    const entry = this.rows[this.at];
    if (!entry) return false;
    if (event.key === "x") { this.choose(entry); return true; }
    if (event.key === "Enter") {
      if (entry.run) this.onOpen(entry.run.id);
      else { this.toggle(this.unfolded, entry.arm.key); this.draw(); }
      return true;
    }
    return false;
  }
}
