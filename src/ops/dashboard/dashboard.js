"use strict";
// Draws /status once a second and /history every ten seconds. Text goes in by textContent only, so nothing that
// Sierra or a file name says can become markup.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function text(id, value) { const node = $(id); if (node.textContent !== value) node.textContent = value; }

function badge(node, word, tone) { node.textContent = word.replaceAll("_", " "); node.className = `badge ${tone}`; }

function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

function clock(stamp) { return stamp ? new Date(stamp).toLocaleTimeString() : "–"; }

function until(stamp, now) { return stamp ? span(Math.max(0, (Date.parse(stamp) - Date.parse(now)) / 1000)) : "–"; }

const tones = {
  ok: "ok", closed: "ok", loading: "warn", behind: "warn", waiting_quota: "warn", suspended: "bad", stopped: "bad",
  open: "bad", half_open: "warn", retrying: "warn", paused: "warn", needs_reload: "bad", refreshing: "warn",
  latched: "bad", none: "",
};

function card(name) {
  const id = `stream-${name}`;
  let node = $(id);
  if (node) return node;
  node = document.createElement("article");
  node.id = id;
  node.className = "card";
  const title = document.createElement("h3");
  title.append(document.createTextNode(name), document.createElement("span"));
  const figure = document.createElement("p");
  figure.className = "figure";
  const detail = document.createElement("p");
  detail.className = "quiet";
  const error = document.createElement("p");
  error.className = "quiet";
  node.append(title, figure, detail, error);
  $("streams").append(node);
  return node;
}

function row(body, cells) {
  const line = document.createElement("tr");
  for (const cell of cells) { const node = document.createElement("td"); node.textContent = cell; line.append(node); }
  body.append(line);
}

function draw(status) {
  text("version", status.version);
  const verdict = $("verdict");
  text("verdict", status.message);
  verdict.className = `verdict ${status.state}`;
  document.title = status.state === "ok" ? "sierra-sync" : `${status.state} – sierra-sync`;
  const gaps = [];
  for (const [name, stream] of Object.entries(status.streams)) {
    const [title, figure, detail, error] = card(name).children;
    badge(title.lastChild, stream.state, tones[stream.state] ?? "");
    figure.textContent = stream.lag_seconds === null ? "loading" : `${span(stream.lag_seconds)} behind`;
    const next = stream.next_run ? `, next pass in ${until(stream.next_run, status.now)}` : "";
    detail.textContent = `captured up to ${clock(stream.watermark)}, deletes to ${clock(stream.deleted_through)}${next}`;
    error.textContent = stream.last_error ? stream.last_error.message : "";
    for (const gap of stream.gaps) gaps.push([name, gap.from, gap.to, String(gap.attempts), gap.error ?? ""]);
    if (stream.quarantined > 0) gaps.push([name, "quarantine", "", String(stream.quarantined), "records set aside"]);
  }
  const quota = status.quota;
  badge($("quota-state"), quota.state, tones[quota.state] ?? "");
  text("quota-figure", quota.remaining === null ? "not told" : `${quota.remaining} of ${quota.limit ?? "?"}`);
  text("quota-detail", quota.resume_at ? `goes on in ${until(quota.resume_at, status.now)}`
    : `${quota.refused} refused, ${span(quota.waited_seconds)} waited` + (quota.resets_at ? `, resets in ${until(quota.resets_at, status.now)}` : ""));
  const breaker = status.breaker;
  badge($("breaker-state"), breaker.state, tones[breaker.state] ?? "");
  text("breaker-figure", breaker.state === "closed" ? "requests pass" : breaker.state === "open" ? "halted" : "probing");
  const suspended = breaker.suspended_endpoints.length ? ` Suspended: ${breaker.suspended_endpoints.join(", ")}.` : "";
  text("breaker-detail", (breaker.reason ?? "") + (breaker.next_probe ? ` Next probe in ${until(breaker.next_probe, status.now)}.` : "") + suspended);
  badge($("token-state"), status.token.state, tones[status.token.state] ?? "");
  text("token-figure", status.token.expires_at ? until(status.token.expires_at, status.now) : "–");
  text("token-detail", status.token.expires_at ? "until it expires; refreshed at 80 % of its life" : "");
  text("outbox-figure", `${status.outbox.entries} waiting`);
  text("outbox-detail", `${(status.outbox.bytes / 1048576).toFixed(1)} MiB on disk`);
  const sinks = $("sinks");
  sinks.replaceChildren();
  for (const [name, sink] of Object.entries(status.sinks)) {
    row(sinks, [name, sink.state.replaceAll("_", " "), String(sink.pending), span(sink.oldest_age_seconds), sink.breaker.replaceAll("_", " "), sink.error ? sink.error.message : ""]);
  }
  const body = $("gaps");
  body.replaceChildren();
  for (const gap of gaps) row(body, gap);
  $("gaps-table").hidden = gaps.length === 0;
  $("gaps-none").hidden = gaps.length > 0;
  text("now", new Date(status.now).toLocaleString());
}

function line(id, values) {
  const picture = $(id);
  picture.replaceChildren();
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return;
  const top = Math.max(...known, 1);
  const points = values
    .map((value, index) => (value === null ? null : `${(index / (values.length - 1)) * 240},${46 - (value / top) * 44}`))
    .filter((point) => point !== null);
  const shape = document.createElementNS(SVG, "polyline");
  shape.setAttribute("points", points.join(" "));
  picture.append(shape);
}

function band(id, states) {
  const picture = $(id);
  picture.replaceChildren();
  const width = 240 / Math.max(states.length, 1);
  states.forEach((state, index) => {
    const shape = document.createElementNS(SVG, "rect");
    shape.setAttribute("class", state);
    shape.setAttribute("x", String(index * width));
    shape.setAttribute("width", String(width));
    shape.setAttribute("height", "16");
    picture.append(shape);
  });
}

async function refresh() {
  try {
    const answer = await fetch("/status");
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    draw(await answer.json());
  } catch (error) {
    text("verdict", "The service does not answer. Is it running? See its log, or run: sierra-sync status");
    $("verdict").className = "verdict failing";
  }
}

async function history() {
  try {
    const answer = await fetch("/history");
    if (!answer.ok) return;
    const samples = await answer.json();
    line("quota-line", samples.map((sample) => sample.quota));
    line("outbox-line", samples.map((sample) => sample.queue));
    band("breaker-line", samples.map((sample) => sample.breaker));
  } catch (error) { /* the next refresh says what is wrong */ }
}

refresh();
history();
setInterval(refresh, 1000);
setInterval(history, 10000);
