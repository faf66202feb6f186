// One run: its curve, where its time goes on the same axis, what the doctor says, its agent, its settings.
import { bytes, command, downloads, duration, el, get, number, one, percent, post, seldom, short, words } from "./elements.js";
import { CurveChart, PhaseChart, phaseShade, shade } from "./charts.js";

const NOT_MEASURES = /(env_steps|updates|episodes|seconds|env_steps_per_second|mean_return|training_seconds)$/;

export class RunView {
  constructor(host, id, kind, state) {
    Object.assign(this, { host, id, kind, state });
    this.charts = [];
    this.smalls = new Map();
    this.window = null;
    this.changed = seldom(() => this.refresh().catch((error) => this.fail(error)), 1500);
  }

  destroy() {
    this.gone = true;
    clearInterval(this.timer);
    clearInterval(this.frames);
    for (const chart of [...this.charts, ...this.smalls.values()]) chart.destroy();
  }

  fail(error) {
    if (!this.gone) this.host.replaceChildren(this.back(), el("p", { class: "missing" }, error.message));
  }

  back() {
    return el("p", { class: "back" }, el("a", { href: "#/" }, "← all runs"));
  }

  async load() {
    try {
      const data = await get(`/api/runs/${this.id}`);
      if (this.gone) return;
      if (this.kind === "report") this.report(data);
      else await this.build(data);
    } catch (error) {
      this.fail(error);
    }
  }

  report(data) {
    this.host.replaceChildren(this.back(), el("p", { class: "kicker" }, "report of the doctor"), el("h1", {}, data.verdict || data.name),
      el("p", { class: "subject" }, data.name), ...data.findings.map((finding) => this.finding(finding)));
    if (!data.findings.length) this.host.append(el("p", { class: "clean" }, "No finding."));
  }

  finding(found) {
    const gain = found.expected_gain > 1.005 ? el("div", { class: "gain" }, el("b", {}, `${found.expected_gain.toFixed(2)}x`), el("span", {}, "faster, expected")) : null;
    const sides = found.before && found.after ? el("div", { class: "sides" },
      el("figure", { class: "before" }, el("figcaption", {}, "before"), el("pre", {}, found.before)),
      el("figure", { class: "after" }, el("figcaption", {}, "after"), el("pre", {}, found.after))) : null;
    return el("div", { class: "finding" }, el("div", { class: "top" }, el("div", {}, el("h3", {}, found.title), el("p", { class: "about" }, found.rule)), gain),
      el("p", {}, found.evidence), el("p", {}, found.remedy), sides);
  }

  async build(data) {
    this.data = data;
    this.head = el("div");
    const curve = el("div", { class: "chart" });
    const phases = el("div", { class: "chart" });
    this.strip = el("div", { class: "findings" });
    this.phaseKeys = el("div", { class: "keys still" });
    this.files = el("div", { class: "files" });
    this.phaseFiles = el("div", { class: "files" });
    this.small = el("div", { class: "smalls" });
    this.player = el("div");
    this.more = el("div");
    this.likeness = el("div");
    this.machine = el("div");
    const keys = el("div", { class: "keys still" }, ...[[0, "evaluation (greedy episodes)"], [4, "training (mean of the last 100 episodes)"]].map(([place, label]) => el("span", { class: "key", color: shade(place) }, el("i"), label)));
    this.axis = el("div", { class: "segments", role: "group", "aria-label": "x axis" });
    const left = el("div", { class: "wide-part" }, el("div", { class: "tools" }, el("h2", {}, "Return"), this.axis), curve, keys,
      this.files, el("h2", {}, "Where the time goes"), phases, this.phaseKeys, this.strip, this.phaseFiles,
      el("h2", {}, "Losses and other measures"), this.small);
    const right = el("div", { class: "narrow-part" }, this.player, this.machine, this.likeness, this.more);
    this.host.replaceChildren(this.back(), this.head, el("div", { class: "split run-split" }, left, right));
    this.curve = new CurveChart(curve, { height: 280, sync: "run", onZoom: (low, high) => { this.window = low === null ? null : [low, high]; this.drawCurves(); } });
    this.phases = new PhaseChart(phases, { sync: "run" });
    this.charts = [this.curve, this.phases];
    this.drawAll();
    await this.drawCurves();
    this.drawAlike();
    this.drawMachine();
    this.timer = setInterval(() => { if (!document.hidden) this.drawMachine(); }, 3000);
    await this.jobsChanged();
  }

  async refresh() {
    const data = await get(`/api/runs/${this.id}`);
    if (this.gone) return;
    const ended = data.status !== this.data.status || data.checkpoints[0] !== this.data.checkpoints[0];
    this.data = data;
    this.drawHead();
    this.drawStrip();
    if (ended) { this.drawAgent(); this.drawControl(); this.drawAlike(); }
    await this.drawCurves();
  }

  setAxis(x) {
    this.state.x = x;
    this.window = null;
    this.drawAxis();
    this.drawCurves();
  }

  drawAll() {
    this.drawHead();
    this.drawAxis();
    this.drawStrip();
    this.drawAgent();
    this.drawSettings();
  }

  drawHead() {
    const { data } = this;
    const run = this.state.byId.get(this.id);
    const judged = data.judged.mean_return;
    const figures = [
      judged !== undefined ? ["mean return, best weights", number(judged)] : data.best ? [`best evaluation, at ${short(data.best[0])}`, number(data.best[1])] : ["return in training", number(run?.score)],
      ["env steps", number(data.counts.env_steps)],
      ["updates", number(data.counts.updates)],
      ["episodes", number(data.counts.episodes)],
      ["env steps/s of training", short(run?.rate)],
      ["in all", duration(data.counts.seconds)],
    ];
    this.head.replaceChildren(
      el("h1", {}, data.label, " ", el("span", { class: `badge ${data.status}` }, data.status)),
      el("p", { class: "subject" }, el("code", {}, data.name), data.node ? ` on ${data.node}` : ""),
      el("dl", { class: "figures" }, ...figures.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      ...data.notes.map((note) => el("p", { class: "note small" }, note)));
  }

  drawAxis() {
    const axes = [["env_steps", "env steps"], ["seconds", "training seconds"], ["clock", "all seconds"]];
    this.axis.replaceChildren(...axes.map(([x, label]) => el("button", { type: "button", "aria-pressed": String(this.state.x === x),
      onclick: () => { sessionStorage.setItem("x", x); this.setAxis(x); } }, label)));
  }

  query(more) {
    const given = { runs: this.id, x: this.state.x, width: String(Math.round(this.curve.size().width)), single: "1", ...more };
    if (this.window) Object.assign(given, { low: String(this.window[0]), high: String(this.window[1]) });
    return new URLSearchParams(given).toString();
  }

  async lines(y, width, place, label) {
    const data = await get(`/api/curves?${this.query({ y, width })}`);
    const runs = data.arms[0]?.runs ?? [];
    return { data, lines: runs.map((run) => ({ key: y, label, x: run.x, y: run.y, place })) };
  }

  async drawCurves() {
    const width = String(Math.round(this.curve.size().width));
    const [judged, trained] = await Promise.all([this.lines("evaluation:mean_return", width, 0, "evaluation"), this.lines("progress:mean_return", width, 4, "training")]);
    if (this.gone) return;
    const both = [...trained.lines, ...judged.lines];
    this.curve.show(both, judged.data.x_label, this.window);
    const ends = both.flatMap((line) => line.x.slice(-1));
    const window = this.window ?? (ends.length ? [0, Math.max(...ends)] : null);
    const phases = await get(`/api/runs/${this.id}/phases?x=${this.state.x}`);
    if (this.gone) return;
    this.phases.show(phases, window && window[1] > window[0] ? window : null);
    const made = (y) => judged.data.command.replace("evaluation%3Amean_return", y);
    const report = this.data.kind === "run" ? [command(`hotloop report ${this.data.path}`)] : [];
    this.files.replaceChildren(...downloads(this.query({ y: "score" }), made("score"), ...report));
    this.phaseFiles.replaceChildren(...(phases.x.length ? downloads(this.query({ y: "phases" }), made("phases")) : []));
    await this.drawSmalls();
  }

  async drawSmalls() {
    const names = Object.entries(this.data.last).flatMap(([event, last]) => Object.keys(last).filter((name) => !NOT_MEASURES.test(name) && !name.startsWith("phase/")).map((name) => `${event}:${name}`)).slice(0, 24);
    if (!names.length) this.small.replaceChildren(el("p", { class: "missing" }, "No row has any yet."));
    for (const name of names) {
      const { data, lines } = await this.lines(name, "320", 0, words(name));
      if (this.gone) return;
      if (!this.smalls.has(name)) {
        const [place, files] = [el("div", { class: "chart" }), el("div", { class: "files" })];
        this.small.append(el("figure", {}, el("figcaption", {}, words(name), el("small", {}, ` ${name.split(":")[0]}`)), place, files));
        this.smalls.set(name, new CurveChart(place, { height: 140, small: true, sync: "run" }));
        this.smalls.get(name).files = files;
      }
      this.smalls.get(name).files.replaceChildren(...downloads(this.query({ y: name }), data.command));
      this.smalls.get(name).show(lines, "", this.window);
    }
  }

  drawStrip() {
    this.phaseKeys.replaceChildren(...this.data.phases.filter((phase) => phase.share >= 0.002).map((phase) => el("span", { class: "key", color: phaseShade(phase.name) }, el("i"), phase.name, el("small", {}, percent(phase.share)))));
    const idle = this.idle ? [el("details", { class: "chip" }, el("summary", {}, this.idle), el("p", {}, "Of this machine, while the page looks on; other programs may use it."))] : [];
    const found = this.data.findings.map((finding) => el("details", { class: "chip" }, el("summary", {}, finding.evidence), el("p", {}, finding.remedy), el("p", { class: "faint" }, `${finding.rule}: ${finding.title}`)));
    const none = !found.length && !idle.length && this.data.phases.length ? [el("p", { class: "faint" }, "The doctor's rules find nothing in what the run wrote down.")] : [];
    this.strip.replaceChildren(...found, ...idle, ...none);
  }

  drawAgent() {
    if (this.data.kind !== "run") return;
    const options = this.data.checkpoints.map((name) => el("option", { value: name }, `${number(Number(name.split("-")[0]))} env steps`));
    const select = el("select", { "aria-label": "checkpoint" }, ...options);
    const seed = el("input", { type: "number", value: "0", min: "0", max: "2000000000", "aria-label": "seed of the episode" });
    const play = el("button", { type: "button", onclick: async () => {
      this.stage.replaceChildren(el("p", { class: "missing" }, "The agent plays …"));
      try {
        const job = await post(`/api/runs/${this.id}/play`, { checkpoint: select.value, seed: Number(seed.value) || 0 });
        this.playing = job.id;
        await this.jobsChanged();
      } catch (error) { this.stage.replaceChildren(el("p", { class: "missing" }, error.message)); }
    } }, "play an episode");
    this.stage = el("div", { class: "stage" });
    const none = el("p", { class: "missing" }, "There is no checkpoint yet, so there is no agent to look at.");
    this.player.replaceChildren(el("h2", {}, "The agent"), ...(options.length ? [el("div", { class: "tools" }, el("label", {}, "best up to ", select), el("label", {}, "seed ", seed), play), this.stage] : [none]));
    this.control = el("div");
    this.player.append(this.control);
    this.drawControl();
  }

  drawControl() {
    if (!this.state.control || this.data.kind !== "run" || !this.control) return;
    const total = el("input", { type: "number", min: "1", step: "1", value: String(2 * (this.data.settings.total_env_steps ?? 0)), "aria-label": "env steps to go on to" });
    const ask = (action, data = () => ({})) => async () => {
      try { await post(`/api/runs/${this.id}/${action}`, data()); } catch (error) { this.said.textContent = error.message; }
      await this.jobsChanged();
    };
    const button = (label, action, data) => el("button", { type: "button", onclick: ask(action, data) }, label);
    const running = this.data.status === "running";
    this.said = el("p", { class: "note small" });
    this.jobs = el("ul", { class: "jobs" });
    this.control.replaceChildren(el("h2", {}, "Control"), el("div", { class: "tools" },
      running ? button("stop", "stop") : null,
      this.data.status === "stopped" ? button("resume", "resume") : null,
      running ? null : el("label", {}, "go on to ", total), running ? null : button("extend", "extend", () => ({ total_env_steps: Number(total.value) })),
      this.data.checkpoints.length ? button("evaluate", "evaluate", () => ({ episodes: 100 })) : null), this.said, this.jobs);
    this.jobsChanged();
  }

  async jobsChanged() {
    const jobs = (await get("/api/jobs")).filter((job) => job.run === this.id);
    if (this.gone) return;
    this.jobs?.replaceChildren(...jobs.filter((job) => job.kind !== "play").reverse().map((job) => el("li", {}, el("b", {}, `${job.kind}: ${job.state}`), " ", this.told(job))));
    const job = jobs.find((one) => one.id === this.playing);
    if (!job || job.state === "running") return;
    this.playing = null;
    if (job.state === "failed" || !job.frames) this.stage.replaceChildren(el("p", { class: "missing" }, job.said || "It could not be played."), command(job.said.includes("--trust") ? `hotloop watch ${this.data.path} --trust` : job.command));
    else this.drawFrames(job);
  }

  told(job) {
    const result = job.result;
    if (job.kind === "evaluate" && result && Number.isFinite(result.mean_return)) return `mean return ${number(result.mean_return)} over ${number(result.episodes)} episodes`;
    return job.said;
  }

  drawFrames(job) {
    clearInterval(this.frames);
    const pictures = Array.from({ length: job.frames }, (_, at) => { const picture = new Image(); picture.src = `/api/jobs/${job.id}/frames/${at}`; return picture; });
    const shown = el("img", { alt: "the agent at play", class: "frame-picture" });
    const range = el("input", { type: "range", min: "0", max: String(job.frames - 1), value: "0", "aria-label": "moment of the episode", oninput: () => { this.pause(); show(Number(range.value)); } });
    const button = el("button", { type: "button", onclick: () => this.toggle() }, "pause");
    let at = 0;
    const show = (place) => { at = place; shown.src = pictures[place].src; range.value = String(place); };
    this.pause = () => { clearInterval(this.frames); this.frames = null; button.textContent = "play"; };
    this.toggle = () => {
      if (this.frames) { this.pause(); return; }
      if (at >= job.frames - 1) show(0);
      button.textContent = "pause";
      this.frames = setInterval(() => { if (at < job.frames - 1) show(at + 1); else this.pause(); }, 40);
    };
    const episode = job.result?.episodes?.[0] ?? null;
    const facts = episode ? Object.entries(episode).filter(([name]) => name !== "episode").map(([name, value]) => `${words(name)} ${typeof value === "number" ? number(value) : value}`).join(", ") : "";
    this.stage.replaceChildren(shown, el("div", { class: "controls" }, button, range), el("p", { class: "note small" }, facts), el("details", {}, el("summary", {}, "the command that plays it"), command(job.command)));
    show(0);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.toggle();
    else this.pause();
  }

  toggle() {}

  drawSettings() {
    const { data } = this;
    const runs = this.state.runs.filter((run) => run.kind === "run");
    const differs = (name) => new Set(runs.filter((run) => name in run.settings).map((run) => JSON.stringify(run.settings[name]))).size > 1;
    const varied = new Set(Object.keys(data.settings).filter(differs));
    const row = ([name, value]) => el("tr", { class: varied.has(name) ? "varied" : "" }, el("th", { scope: "row" }, name), el("td", {}, value === null ? "–" : Array.isArray(value) ? value.join(", ") : String(value)));
    const entries = Object.entries(data.settings);
    const first = entries.filter(([name]) => name === "seed" || varied.has(name));
    const table = (rows) => el("table", { class: "plain-table" }, el("tbody", {}, ...rows.map(row)));
    const machine = Object.entries(data.machine ?? {}).map(([name, value]) => [name, String(value)]);
    const facts = [["lane", data.lane ? `${data.lane}${data.lane_reason ? `: ${data.lane_reason}` : ""}` : null], ["digest", data.digest], ["hotloop", data.hotloop], ...machine].filter(([, value]) => value);
    this.more.replaceChildren(
      ...(first.length ? [el("h2", {}, "Settings in which runs here differ"), table(first)] : []),
      ...(entries.length ? [el("details", {}, el("summary", {}, `all ${entries.length} settings`), table(entries))] : []),
      ...(facts.length ? [el("h2", {}, "Machine and versions"), el("dl", { class: "facts" }, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))))] : []));
  }

  async drawAlike() {
    if (this.data.kind !== "run") return;
    const found = await get(`/api/runs/${this.id}/alike`);
    if (this.gone) return;
    this.likeness.replaceChildren(...(found.length ? [el("h2", {}, "The same settings and seed"), el("ul", { class: "alike" }, ...found.map((other) => el("li", {}, el("a", { href: `#/run/${other.id}` }, other.words))))] : []));
  }

  async drawMachine() {
    if (this.data.kind !== "run" || this.data.status !== "running") { this.machine.replaceChildren(); return; }
    const { run, idle } = await get(`/api/runs/${this.id}/machine`);
    if (this.gone) return;
    this.idle = idle ? `this run leaves ${idle}` : "";
    this.drawStrip();
    this.machine.replaceChildren(...(run ? [el("h2", {}, "Its process"), el("dl", { class: "figures" },
      ...[["memory", bytes(run.memory)], ["cores in use", run.cores === null ? "–" : run.cores.toFixed(2)], ["threads", number(run.threads)], ["processes", number(run.processes)]].map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))))] : []));
  }
}
