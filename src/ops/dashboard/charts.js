// Charts in plain SVG. Each stretches with its box; text stays outside, so that nothing is distorted. Pointer and arrow
// keys read single moments, and the label says in words what the picture shows.
import { clock } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [1000, 100];

function shape(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function frame(host) {
  if (host.chart) return host.chart;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", tabindex: "0" });
  const [top, ends, left, right, reading] = ["span", "div", "span", "span", "div"].map((name) => document.createElement(name));
  top.className = "top";
  ends.className = "ends";
  reading.className = "reading";
  reading.hidden = true;
  for (const node of [top, ends]) node.setAttribute("aria-hidden", "true");
  reading.setAttribute("role", "status");
  ends.append(left, right);
  host.append(svg, top, reading, ends);
  const chart = (host.chart = { svg, top, left, right, reading, at: null, spec: null });
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    read(chart, (event.clientX - box.left) / box.width);
  });
  svg.addEventListener("pointerleave", () => read(chart, null));
  svg.addEventListener("blur", () => read(chart, null));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === "Escape") return read(chart, null);
    if (event.key === "Home") read(chart, 0);
    else if (event.key === "End") read(chart, 1);
    else if (step) readPoint(chart, Math.min(Math.max((chart.at ?? chart.spec.read.length) + step, 0), chart.spec.read.length - 1));
    else return;
    event.preventDefault();
  });
  return chart;
}

function read(chart, share) {
  const points = chart.spec?.read ?? [];
  if (share === null || points.length === 0) {
    chart.at = null;
    chart.reading.hidden = true;
    chart.svg.querySelector(".cursor")?.remove();
    return;
  }
  const moment = chart.spec.from + share * (chart.spec.to - chart.spec.from);
  let best = 0;
  points.forEach((point, index) => { if (Math.abs(point[0] - moment) < Math.abs(points[best][0] - moment)) best = index; });
  readPoint(chart, best);
}

function readPoint(chart, index) {
  const point = chart.spec.read[index];
  if (!point) return;
  chart.at = index;
  const share = Math.min(Math.max((point[0] - chart.spec.from) / (chart.spec.to - chart.spec.from), 0), 1);
  chart.svg.querySelector(".cursor")?.remove();
  chart.svg.append(shape("line", { class: "cursor", x1: share * WIDTH, x2: share * WIDTH, y1: 0, y2: HEIGHT }));
  chart.reading.textContent = `${clock(point[0], chart.spec.now, true)}  ${chart.spec.format(point[1])}`;
  chart.reading.hidden = false;
  chart.reading.style.left = `${Math.min(Math.max(share, 0.14), 0.86) * 100}%`;
}

// The next round number above `value`.
export function ceiling(value, least) {
  const wanted = Math.max(value * 1.05, least);
  const unit = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 2.5, 4, 5, 8, 10].map((step) => step * unit).find((step) => step >= wanted) ?? wanted;
}

// `lines`: [{ points: [[t, value or null]], kind: "line" | "dash" | "ideal", area }]; the first is the one that is read.
export function drawChart(host, { label, lines, bands = [], from, to, top, format, now }) {
  const chart = frame(host);
  const readable = lines[0].points.filter((point) => point[1] !== null);
  chart.spec = { from, to, now, format, read: readable };
  const x = (t) => Math.min(Math.max((t - from) / Math.max(to - from, 1), 0), 1) * WIDTH;
  const y = (value) => HEIGHT - Math.min(Math.max(value / top, 0), 1) * (HEIGHT - 2) - 1;
  const drawn = [shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: 1, y2: 1 }), shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 })];
  for (const band of bands) drawn.push(shape("rect", { class: "band", x: x(band[0]), width: Math.max(x(band[1]) - x(band[0]), 3), y: 0, height: HEIGHT }));
  for (const { points, kind, area } of lines) {
    for (const run of runs(points)) {
      const way = run.map(([t, value]) => `${x(t).toFixed(1)},${y(value).toFixed(2)}`).join(" ");
      if (area && run.length > 1) drawn.push(shape("polygon", { class: "area", points: `${x(run[0][0])},${HEIGHT} ${way} ${x(run.at(-1)[0])},${HEIGHT}` }));
      drawn.push(shape("polyline", { class: kind, points: run.length > 1 ? way : `${way} ${way}` }));
    }
  }
  drawn.push(shape("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }));
  chart.svg.replaceChildren(...drawn);
  chart.svg.setAttribute("aria-label", label);
  chart.top.textContent = format(top);
  chart.left.textContent = clock(from, now);
  chart.right.textContent = to > now + 1 ? clock(to, now) : "now";
  if (chart.at !== null && !chart.reading.hidden) readPoint(chart, Math.min(chart.at, readable.length - 1));
}

// Points with no hole between them: nothing was seen while the service was down.
function runs(points) {
  const all = [];
  let run = [];
  points.forEach((point, index) => {
    const before = points[index - 1];
    const step = index > 1 ? points[index - 1][0] - points[index - 2][0] : 60;
    const isHole = before && point[0] - before[0] > Math.max(step * 4, 200) && !point[2];
    if (point[1] === null || isHole) { if (run.length) all.push(run); run = []; }
    if (point[1] !== null) run.push(point);
  });
  if (run.length) all.push(run);
  return all;
}

// A band over the day: green while calls passed, red while they did not, nothing where nobody looked.
export function drawTimeline(host, { label, seen, halts, from, to, now }) {
  if (!host.svg) {
    host.svg = shape("svg", { viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", role: "img" });
    host.ends = document.createElement("div");
    host.ends.className = "ends";
    host.ends.setAttribute("aria-hidden", "true");
    host.ends.append(document.createElement("span"), document.createElement("span"));
    host.append(host.svg, host.ends);
  }
  const x = (t) => Math.min(Math.max((t - from) / Math.max(to - from, 1), 0), 1) * WIDTH;
  const bar = (name, [start, end], least) => shape("rect", { class: name, x: x(start), width: Math.max(x(end) - x(start), least), y: 0, height: 10 });
  host.svg.replaceChildren(...seen.map((part) => bar("pass", part, 0)), ...halts.map((halt) => bar(halt.part ? "part" : "halt", [halt.from, halt.to], 4)));
  host.svg.setAttribute("aria-label", label);
  host.ends.firstChild.textContent = clock(from, now);
  host.ends.lastChild.textContent = "now";
}
