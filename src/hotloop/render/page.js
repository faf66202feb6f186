"use strict";
// Zoom into a box of the flame graph: it takes the whole width, its ancestors span it, all beside it is hidden.
for (const flame of document.querySelectorAll(".flame")) {
  const reset = flame.previousElementSibling;
  const boxes = [...flame.children].map((box) => ({
    box,
    left: parseFloat(box.style.left),
    width: parseFloat(box.style.width),
    top: parseFloat(box.style.top),
  }));
  const slack = 1e-3;

  function show(chosen) {
    reset.hidden = chosen === boxes[0];
    for (const one of boxes) {
      const above = one.top < chosen.top;
      const around = one.left <= chosen.left + slack && one.left + one.width >= chosen.left + chosen.width - slack;
      const inside = one.left >= chosen.left - slack && one.left + one.width <= chosen.left + chosen.width + slack;
      one.box.hidden = above ? !around : !inside;
      one.box.classList.toggle("above", above);
      const left = above ? 0 : ((one.left - chosen.left) / chosen.width) * 100;
      const width = above ? 100 : (one.width / chosen.width) * 100;
      one.box.style.left = `${left}%`;
      one.box.style.width = `${width}%`;
    }
  }

  for (const one of boxes) {
    one.box.addEventListener("click", () => show(one));
  }
  reset.addEventListener("click", () => show(boxes[0]));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(boxes[0]);
  });
}

// Play the pictures of an episode; without this script they are a strip that can be scrolled.
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

// An episode of service chains: a slider moves through its moments, which stand as JSON in #data.
for (const page of document.querySelectorAll(".moment")) {
  const data = JSON.parse(document.getElementById("data").textContent);
  const moments = data.moments;
  const end = Math.max(1e-9, moments.at(-1).ms);
  const colors = ["#6e96dc", "#40be78", "#f0be6e", "#eb4c46", "#b07be0", "#58c7c7", "#c8ccd4"];
  const [taken, waiting, lost] = ["#40be78", "#3c4454", "#eb4c46"];
  const one = (id) => document.getElementById(id);

  function draw(svg, kind, attributes, text) {
    const shape = document.createElementNS(svg.namespaceURI, kind);
    for (const name in attributes) shape.setAttribute(name, attributes[name]);
    if (text !== undefined) shape.textContent = text;
    return svg.appendChild(shape);
  }

  const shade = (load) => (load < 0.5 ? taken : load < 0.85 ? "#f0be6e" : lost);

  function at(place, count) {
    const angle = (2 * Math.PI * place) / count - Math.PI / 2;
    return [200 + 150 * Math.cos(angle), 200 + 150 * Math.sin(angle)];
  }

  function drawMap(moment) {
    const svg = one("map");
    const count = moment.centres.length;
    svg.replaceChildren();
    for (const [from, to, load] of moment.links) {
      const [[x1, y1], [x2, y2]] = [at(from, count), at(to, count)];
      draw(svg, "line", { x1, y1, x2, y2, stroke: load > 0 ? shade(load) : waiting, "stroke-width": 1 + 8 * load });
    }
    moment.centres.forEach(([used, cpu], place) => {
      const [cx, cy] = at(place, count);
      const ring = place === moment.visited ? "#f0be6e" : waiting;
      draw(svg, "circle", { cx, cy, r: 26, fill: "#181c24", stroke: ring, "stroke-width": 3 });
      draw(svg, "circle", { cx, cy, r: 24 * Math.sqrt(used / cpu), fill: shade(used / cpu) });
      draw(svg, "text", { x: cx, y: cy + 44, class: "centre" }, `DC ${place}: ${used}/${cpu}`);
    });
  }

  function drawServices(moment) {
    const table = one("services");
    table.replaceChildren();
    moment.services.forEach((counts, index) => {
      const row = table.insertRow();
      const all = Math.max(1, counts[0] + counts[1] + counts[2]);
      row.insertCell().textContent = data.services[index];
      const bar = row.insertCell().appendChild(document.createElement("div"));
      bar.className = "bar";
      [taken, waiting, lost].forEach((color, which) => {
        const part = bar.appendChild(document.createElement("i"));
        part.style.background = color;
        part.style.width = `${(100 * counts[which]) / all}%`;
      });
      for (const count of counts) row.insertCell().textContent = count;
    });
  }

  function drawLines(id, names, lines) {
    const svg = one(id);
    const { width, height } = svg.viewBox.baseVal;
    const x = (ms) => 40 + (ms / end) * (width - 45);
    const y = (share) => 10 + (1 - share) * (height - 30);
    for (const share of [0, 0.5, 1]) {
      draw(svg, "line", { x1: 40, x2: width - 5, y1: y(share), y2: y(share), class: "rule" });
      draw(svg, "text", { x: 34, y: y(share) + 4 }, `${100 * share} %`);
    }
    draw(svg, "text", { x: width - 5, y: height - 4 }, `${end} ms`);
    lines.forEach((line, index) => {
      const known = line.map((share, place) => [moments[place].ms, share]).filter(([, share]) => share !== null);
      const points = known.map(([ms, share]) => `${x(ms)},${y(share)}`).join(" ");
      draw(svg, "polyline", { points, class: "curve", stroke: colors[index] });
      const key = one(`${id}-keys`).appendChild(document.createElement("span"));
      key.textContent = `\u25a0 ${names[index]}`;
      key.style.color = colors[index];
    });
    const now = draw(svg, "line", { y1: 10, y2: height - 20, class: "now" });
    return (ms) => ["x1", "x2"].forEach((name) => now.setAttribute(name, x(ms)));
  }

  const share = ([satisfied, , dropped]) => (satisfied + dropped ? satisfied / (satisfied + dropped) : null);
  const total = (services) => services.reduce((sum, counts) => sum.map((value, i) => value + counts[i]), [0, 0, 0]);
  const accepted = data.services.map((_, index) => moments.map((moment) => share(moment.services[index])));
  const everybody = moments.map((moment) => share(total(moment.services)));
  const move = [drawLines("acceptance", [...data.services, "all"], [...accepted, everybody])];
  const parts = Object.keys(moments.at(-1).attention || {});
  if (parts.length) {
    const weights = (name) => moments.map((moment) => (moment.attention || {})[name] ?? null);
    move.push(drawLines("attention", parts, parts.map(weights)));
  } else one("attention-over-time").remove();

  function show(index) {
    const moment = moments[index];
    drawMap(moment);
    drawServices(moment);
    const said = (chain) =>
      `${chain.service.padEnd(18)} ${chain.vnf.padEnd(5)}${chain.way.join(" > ")}  for ${chain.goal}`;
    one("chains").textContent = moment.chains.map(said).join("\n");
    one("now").textContent = `${moment.ms.toFixed(2)} ms`;
    for (const mark of move) mark(moment.ms);
  }

  const slider = one("time");
  slider.max = moments.length - 1;
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(0);
}
