// Elements by construction: every text goes in as text, so that no name of a run becomes markup.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name === "color") made.style.setProperty("--color", value);
    else if (name === "share") made.style.setProperty("--share", String(value));
    else if (name in made && name !== "list" && name !== "form") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const one = (id) => document.getElementById(id);

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answer(response) {
  if (response.ok) return response.json();
  const text = await response.text();
  let message = text;
  try {
    const told = JSON.parse(text);
    message = told.hint ? `${told.error} (${told.hint})` : told.error;
  } catch { /* plain words */ }
  throw new Refused(response.status, message);
}

export const get = async (path) => answer(await fetch(path, { cache: "no-store" }));
export const post = async (path, data = {}) =>
  answer(await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(data) }));

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 1000) return whole.format(value);
  return size >= 100 ? value.toFixed(1) : size >= 1 ? value.toFixed(2) : Number(value.toPrecision(3)).toString();
}

export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  for (const [scale, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(value) >= scale) return `${Number((value / scale).toPrecision(4))}${letter}`;
  return `${Number(value.toPrecision(4))}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export const bytes = (size) =>
  size >= 2 ** 30 ? `${(size / 2 ** 30).toFixed(1)} GiB` : `${Math.round(size / 2 ** 20)} MiB`;

export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

export const words = (name) => name.replace(/^[a-z]+:/, "").replaceAll("_", " ");

export function when(run) {
  const time = run.time ? new Date(run.time * 1000) : run.started ? new Date(run.started) : null;
  if (!time || Number.isNaN(time.getTime())) return "";
  const pad = (value) => String(value).padStart(2, "0");
  const year = time.getFullYear() === new Date().getFullYear() ? "" : `${time.getFullYear()}-`;
  return `${year}${pad(time.getMonth() + 1)}-${pad(time.getDate())} ${pad(time.getHours())}:${pad(time.getMinutes())}`;
}

// A line to copy, with a button that does so.
export function command(text) {
  const button = el("button", { class: "plain", type: "button", onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  } }, "copy");
  return el("div", { class: "command" }, el("code", {}, text), button);
}

// The files of a chart, and the line that makes them again without a server.
export const downloads = (query, line, ...more) => [
  ...["svg", "csv"].map((kind) => el("a", { class: "button", href: `/api/curves.${kind}?${query}`, download: "" }, kind.toUpperCase())),
  el("details", {}, el("summary", { title: "the command that makes it again" }, "command"), command(line), ...more)];

// Not more often than every `pause` milliseconds, and once more at the end.
export function seldom(deed, pause) {
  let timer = null;
  let again = false;
  return () => {
    if (timer !== null) { again = true; return; }
    deed();
    timer = setTimeout(() => {
      timer = null;
      if (again) { again = false; deed(); }
    }, pause);
  };
}
