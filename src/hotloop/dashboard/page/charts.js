// The one kind of chart that redraws while a run grows: lines with bands, by uPlot. All else comes drawn.
import { el, short } from "./elements.js";

export const COLORS = 7;
const styles = getComputedStyle(document.documentElement);
export const variable = (name) => styles.getPropertyValue(name).trim();
export const color = (place) => variable(`--c${place % COLORS}`);
export const shade = (place) => `var(--c${place % COLORS})`; // for styles, which follow the light by themselves
const dashes = [[], [7, 3], [2, 3]];

export function faded(hex, share) {
  const value = hex.replace("#", "");
  const parts = [0, 2, 4].map((at) => parseInt(value.slice(at, at + 2), 16));
  return `rgba(${parts.join(",")},${share})`;
}

// uPlot wants each x once: points of one env step are set apart by less than any pixel shows.
function apart(xs) {
  const gap = Math.max(1e-12, (xs.at(-1) - xs[0]) * 1e-9);
  const out = Float64Array.from(xs);
  for (let i = 1; i < out.length; i++) if (out[i] <= out[i - 1]) out[i] = out[i - 1] + gap;
  return Array.from(out);
}

function axes(small, xWords) {
  const font = "12px system-ui, sans-serif";
  const shared = { stroke: () => variable("--faint"), font, ticks: { show: false } };
  const grid = { stroke: () => variable("--line"), width: 1 };
  return [
    { ...shared, grid: { show: false }, values: (u, ticks) => ticks.map(short), size: 30, space: 60,
      label: small ? undefined : xWords, labelSize: 18, labelFont: font, labelGap: 0 },
    { ...shared, grid, values: (u, ticks) => ticks.map(short), size: small ? 44 : 52, space: small ? 28 : 36 },
  ];
}

export class CurveChart {
  // `onZoom(low, high)` asks for a part of the axis, nulls for all of it; `onFocus(key)` tells which arm is near.
  constructor(host, { height = 340, small = false, sync = null, onZoom = null, onFocus = null } = {}) {
    Object.assign(this, { host, height, small, sync, onZoom, onFocus });
    this.plot = null;
    this.seeds = null;
    this.lines = [];
    this.values = el("div", { class: "values", "aria-hidden": "true" });
    this.empty = el("p", { class: "missing" }, "Nothing is chosen, or what is chosen has no such numbers yet.");
    this.observer = new ResizeObserver(() => this.plot?.setSize(this.size()));
    this.observer.observe(host);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot?.redraw(false));
  }

  size() {
    return { width: Math.max(200, this.host.clientWidth), height: this.height };
  }

  // `lines`: {key, label, x, y, low?, high?, place}; `window`: [low, high] or null
  show(lines, xWords, window = null) {
    this.lines = lines.filter((line) => line.x.length > 0);
    const shape = JSON.stringify([this.lines.map((line) => [line.key, Boolean(line.low), line.place]), xWords]);
    if (!this.lines.length) {
      this.plot?.destroy();
      this.plot = null;
      this.shape = null;
      this.host.replaceChildren(this.empty);
      return;
    }
    const tables = this.lines.map((line) => {
      const x = apart(line.x);
      return line.low ? [x, line.y, line.low, line.high] : [x, line.y];
    });
    const data = tables.length > 1 ? uPlot.join(tables) : tables[0];
    this.window = window;
    if (this.plot && this.shape === shape) this.plot.setData(data);
    else this.build(data, xWords);
    this.shape = shape;
  }

  build(data, xWords) {
    this.plot?.destroy();
    const series = [{}];
    const bands = [];
    for (const line of this.lines) {
      const stroke = () => color(line.place);
      const dash = dashes[Math.floor(line.place / COLORS) % dashes.length];
      const few = line.x.length < 40 && !this.small;
      series.push({ label: line.label, key: line.key, stroke, width: this.small ? 1.5 : 2, dash, spanGaps: true,
        points: { show: line.x.length === 1 || few, size: few ? 4 : 6, fill: stroke } });
      if (line.low) {
        const edge = { stroke: () => "transparent", width: 0, spanGaps: true, points: { show: false }, edge: true };
        series.push({ ...edge }, { ...edge });
        bands.push({ series: [series.length - 1, series.length - 2], fill: () => faded(color(line.place), 0.18) });
      }
    }
    const zooms = this.onZoom !== null;
    const options = {
      ...this.size(), series, bands, axes: axes(this.small, xWords), legend: { show: false },
      scales: { x: { time: false, range: (u, low, high) => this.range(low, high) } },
      padding: [10, 22, 0, 0],
      cursor: {
        drag: { x: zooms, y: false, setScale: false },
        focus: { prox: 24 },
        sync: this.sync ? { key: this.sync, setSeries: false } : undefined,
        points: { size: 7 },
      },
      focus: { alpha: 0.3 },
      hooks: {
        setCursor: [() => this.read()],
        setSeries: [(u, place) => this.focus(place)],
        setSelect: [(u) => this.select(u)],
        draw: [(u) => this.drawSeeds(u)],
        ready: [(u) => u.over.addEventListener("dblclick", () => this.onZoom?.(null, null))],
      },
    };
    this.host.replaceChildren(this.values);
    this.plot = new uPlot(options, data, this.host);
  }

  range(low, high) {
    if (this.window) return this.window;
    if (low === null || high === null) return [0, 1];
    return low === high ? [low - 1, high + 1] : [Math.min(0, low), high];
  }

  select(u) {
    if (u.select.width < 4 || !this.onZoom) return;
    const [low, high] = [u.select.left, u.select.left + u.select.width].map((at) => u.posToVal(at, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.onZoom(low, high);
  }

  read() {
    const { idx } = this.plot?.cursor ?? {};
    if (idx === null || idx === undefined) { this.values.replaceChildren(); return; }
    const x = this.plot.data[0][idx];
    const shown = [el("b", {}, short(x))];
    this.plot.series.forEach((line, at) => {
      if (!at || line.edge) return;
      const value = near(this.plot.data[at], idx);
      if (value !== null) shown.push(el("span", { color: shade(this.lines.find((one) => one.key === line.key)?.place ?? 0) }, short(value)));
    });
    this.values.replaceChildren(...shown.slice(0, 9));
  }

  focus(place) {
    const line = place === null || place === undefined ? null : this.plot?.series[place];
    this.onFocus?.(line?.key ?? null);
  }

  // `runs` of one arm: {x, y} each, drawn thin over its band
  showSeeds(place, runs) {
    this.seeds = runs ? { place, runs } : null;
    this.plot?.redraw(false, false);
  }

  drawSeeds(u) {
    if (!this.seeds) return;
    const context = u.ctx;
    context.save();
    context.beginPath();
    context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    context.clip();
    context.strokeStyle = faded(color(this.seeds.place), 0.75);
    context.lineWidth = devicePixelRatio;
    for (const run of this.seeds.runs) {
      context.beginPath();
      run.x.forEach((x, at) => {
        const place = [u.valToPos(x, "x", true), u.valToPos(run.y[at], "y", true)];
        if (at) context.lineTo(...place);
        else context.moveTo(...place);
      });
      context.stroke();
    }
    context.restore();
  }

  destroy() {
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }
}

function near(values, idx) {
  for (let away = 0; away < values.length && away < 200; away++)
    for (const at of [idx - away, idx + away]) if (values[at] !== null && values[at] !== undefined) return values[at];
  return null;
}

const PHASES = new Set(["act", "env", "store", "sample", "advantage", "update", "log", "evaluate", "checkpoint", "compile", "start-up"]);
const phaseName = (name) => `--${PHASES.has(name) ? name : "other"}`;
export const phaseShade = (name) => `var(${phaseName(name)})`;

// Shares of the phases, one above the other, on the x axis of the curve above it.
export class PhaseChart {
  constructor(host, { height = 130, sync = null } = {}) {
    Object.assign(this, { host, height, sync });
    this.observer = new ResizeObserver(() => this.plot?.setSize({ width: Math.max(200, host.clientWidth), height }));
    this.observer.observe(host);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot?.redraw(false));
  }

  show({ x, names, shares }, window) {
    this.plot?.destroy();
    this.plot = null;
    if (!x.length) {
      this.host.replaceChildren(el("p", { class: "missing" }, "No row says where the time went yet."));
      return;
    }
    const xs = apart([0, ...x]);
    let below = xs.map(() => 0);
    const layers = shares.map((share) => {
      const heights = [share[0], ...share];
      below = below.map((base, at) => base + heights[at]);
      return below;
    });
    const stepped = uPlot.paths.stepped({ align: -1 });
    const series = [{}, { stroke: "transparent", width: 0, paths: stepped, points: { show: false } }];
    const bands = [];
    layers.forEach((layer, at) => {
      series.push({ label: names[at], stroke: "transparent", width: 0, paths: stepped, points: { show: false } });
      bands.push({ series: [at + 2, at + 1], fill: () => variable(phaseName(names[at])) });
    });
    const [across, up] = axes(false, undefined);
    up.values = (u, ticks) => ticks.map((tick) => `${Math.round(100 * tick)} %`);
    this.host.replaceChildren();
    this.plot = new uPlot({
      width: Math.max(200, this.host.clientWidth), height: this.height, series, bands, axes: [across, up],
      legend: { show: false }, padding: [10, 22, 0, 0],
      scales: { x: { time: false, range: (u, low, high) => window ?? [Math.min(0, low), high] }, y: { range: [0, 1] } },
      cursor: { drag: { x: false, y: false }, points: { show: false },
        sync: this.sync ? { key: this.sync, setSeries: false } : undefined },
    }, [xs, xs.map(() => 0), ...layers], this.host);
  }

  destroy() {
    this.observer.disconnect();
    this.plot?.destroy();
  }
}
