// Draws /status every two seconds and the day of /history every ten. Text goes in by textContent only, so nothing that
// Sierra or a file name says can become markup. A page that nobody sees asks nothing.
import { ceiling, drawChart, drawTimeline } from "./charts.js";
import * as deeds from "./deeds.js";
import * as gate from "./gate.js";
import { ago, away, brief, clock, count, counted, inTime, size, span, state } from "./words.js";

const $ = (id) => document.getElementById(id);
const DAY = 86400;
const SHOWN = 12;
let samples = [];
let window_points = [];
let last = null;
let skew = 0;

// ---- small helpers -------------------------------------------------------------------------------------------------

function text(node, value) { if (node.textContent !== value) node.textContent = value; }

function make(name, className, content) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (content !== undefined) node.textContent = content;
  return node;
}

function badge(node, name, extra) {
  const [word, tone] = state(name);
  text(node, extra ?? word);
  node.dataset.tone = tone;
}

function note(node, sentence, tone) {
  node.hidden = !sentence;
  node.dataset.tone = tone ?? "";
  if (sentence) sentenceInto(node, sentence);
}

// A sentence with its commands set apart; those of the verdict can be copied.
function sentenceInto(node, sentence, copies = false) {
  if (node.dataset.said === sentence) return;
  node.dataset.said = sentence;
  node.replaceChildren();
  inLocalTime(sentence).split("`").forEach((part, index) => {
    if (index % 2 === 0) { node.append(part); return; }
    node.append(make("code", "", part));
    if (copies && navigator.clipboard) {
      const copy = make("button", "copy", "Copy");
      copy.type = "button";
      copy.setAttribute("aria-label", `Copy ${part}`);
      copy.addEventListener("click", async () => {
        try { await navigator.clipboard.writeText(part); copy.textContent = "Copied"; } catch { copy.textContent = "Select it"; }
        setTimeout(() => { copy.textContent = "Copy"; }, 2000);
      });
      node.append(copy);
    }
  });
}

// Moments inside a sentence, as the reader's clock shows them.
function inLocalTime(sentence) {
  const now = last ? last.now : Date.now() / 1000;
  return sentence.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (stamp) => clock(stamp, now));
}

// The card of `key` in `host`, made by `build` when it is new; those of nobody any more are removed at the end.
function cardsIn(host, names, build) {
  for (const node of [...host.children]) if (!names.includes(node.dataset.name)) node.remove();
  return names.map((name) => {
    let node = [...host.children].find((child) => child.dataset.name === name);
    if (!node) {
      node = build(name);
      node.dataset.name = name;
      host.append(node);
    }
    return node;
  });
}

function card(kind, name) {
  const node = make("article", "card");
  const title = make("div", "title");
  const heading = make("h3", "", name);
  heading.id = `${kind}-${name}`;
  node.setAttribute("aria-labelledby", heading.id);
  node.parts = {
    badge: make("span", "badge"), figure: make("p", "figure"), detail: make("p", "quiet"), progress: make("div", "progress"),
    pause: make("p", "note"), error: make("p", "note"), chart: make("div", "chart"), acts: make("div", "acts"),
  };
  title.append(heading, node.parts.badge);
  const { figure, detail, progress, pause, error, chart, acts } = node.parts;
  progress.hidden = true;
  node.append(title, figure, detail, progress, pause, error, chart, acts);
  return node;
}

function acts(host, key, made) {
  host.hidden = !deeds.areOn();
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  host.replaceChildren(...made());
}

function pauseSentence(pause, now) {
  if (!pause) return "";
  const by = pause.by ? ` by ${pause.by}` : "";
  return `Paused ${ago(pause.since, now)}${by}${pause.reason ? `: ${pause.reason}` : ""}`;
}

const upper = (sentence) => sentence.charAt(0).toUpperCase() + sentence.slice(1);

function errorSentence(error) {
  if (!error) return "";
  return `${upper(error.message)}.${error.hint ? ` ${upper(error.hint)}.` : ""}`;
}

// ---- verdict -------------------------------------------------------------------------------------------------------

const signs = { ok: "M5 12.5l4.5 4.5L19 7.5", warn: "M12 4L2.8 19.5h18.4zM12 10v4.2M12 17v.1", bad: "M8.2 3h7.6L21 8.2v7.6L15.8 21H8.2L3 15.8V8.2zM12 7.5v5.2M12 16.2v.1", quiet: "M12 3a9 9 0 1 0 .1 0M12 8v4.5l3 1.8" };

function verdict(tone, sentence) {
  $("verdict").dataset.tone = tone;
  $("sign").setAttribute("d", signs[tone]);
  sentenceInto($("sentence"), sentence, true);
}

function drawVerdict(status) {
  const tone = { ok: "ok", degraded: "warn", failing: "bad" }[status.state] ?? "quiet";
  verdict(tone, status.message);
  document.title = status.state === "ok" ? "sierra-sync" : `${status.state}: sierra-sync`;
  text($("version"), status.version);
  text($("uptime"), status.started ? `, up ${span(away(status.now, status.started))}` : "");
}

// ---- streams and sinks ---------------------------------------------------------------------------------------------

// What the charts cover: a day, or less while there is less to show.
function reach(now) {
  const first = samples.length ? samples[0].t : now;
  return Math.max(now - DAY, Math.min(first, now - 120));
}

function sparkline(host, pick, now, value, words) {
  const from = reach(now);
  const points = samples.filter((sample) => sample.t >= from).map((sample) => [sample.t, pick(sample)]);
  points.push([now, value, true]);
  const known = points.filter((point) => point[1] !== null && point[1] !== undefined).map((point) => [point[0], point[1], point[2]]);
  host.hidden = known.length === 0;
  if (known.length === 0) return;
  const most = known.reduce((best, point) => (point[1] > best[1] ? point : best), [now, 0]);
  const label = `${words.name} over the last ${span(now - from)}: now ${words.format(value)}, at most ${words.format(most[1])} at ${clock(most[0], now)}`;
  drawChart(host, { label, lines: [{ points: known, kind: "line", area: true }], from, to: now, top: ceiling(most[1], words.least), format: words.format, now });
}

function drawProgress(host, backfill, now) {
  host.hidden = !backfill;
  if (!backfill) return;
  if (!host.firstChild) {
    const track = make("div", "track");
    track.setAttribute("role", "progressbar");
    track.setAttribute("aria-valuemin", "0");
    track.setAttribute("aria-valuemax", "100");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("aria-hidden", "true");
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    bar.setAttribute("height", "100%");
    svg.append(bar);
    track.append(svg);
    host.append(track, make("p", "quiet"));
  }
  const [track, words] = host.children;
  const percent = backfill.percent;
  track.setAttribute("aria-label", `Backfill ${backfill.id}`);
  if (percent === null) track.removeAttribute("aria-valuenow"); else track.setAttribute("aria-valuenow", String(Math.round(percent)));
  track.querySelector("rect").setAttribute("width", `${percent ?? 0}%`);
  const far = backfill.total === null ? `${count(backfill.done)} records so far` : `${count(backfill.done)} of ${count(backfill.total)} records`;
  const share = percent === null ? "" : `${Math.floor(percent)} %, `;
  const left = backfill.calls_left === null ? "" : `, ${counted(backfill.calls_left, "call", "calls")} left`;
  const eta = backfill.eta ? `, done about ${clock(backfill.eta, now)} (${inTime(backfill.eta, now)})` : "";
  const how = { running: "", waiting_quota: "; waits for quota", parked: "; parked, the same command goes on with it" }[backfill.state] ?? "";
  text(words, `Backfill: ${share}${far}${left}${eta}${how}`);
}

function drawStreams(status, now) {
  const names = Object.keys(status.streams);
  cardsIn($("streams"), names, (name) => card("stream", name)).forEach((node, index) => {
    const [name, stream] = [names[index], status.streams[names[index]]];
    const { parts } = node;
    badge(parts.badge, stream.state);
    text(parts.figure, stream.lag_seconds === null ? "first load" : `${span(stream.lag_seconds)} behind`);
    const next = !stream.next_run ? "" : away(stream.next_run, now) < 1 ? "A pass is due. " : `Next pass ${inTime(stream.next_run, now)}. `;
    const readTo = stream.read_to ? `Read up to record ${stream.read_to} so far. ` : "";
    const upTo = stream.watermark ? `Captured up to ${clock(stream.watermark, now, true)}` : "Nothing captured yet";
    const deletions = stream.deleted_through ? `, deletions to ${clock(stream.deleted_through, now, true)}` : "";
    text(parts.detail, `${next}${readTo}${upTo}${deletions}.`);
    drawProgress(parts.progress, stream.backfill, now);
    note(parts.pause, pauseSentence(stream.paused, now), "warn");
    note(parts.error, stream.state === "paused" ? "" : errorSentence(stream.last_error), stream.state === "stopped" ? "bad" : "warn");
    sparkline(parts.chart, (sample) => sample.l[name] ?? null, now, stream.lag_seconds, { name: `Lag of ${name}`, format: span, least: 60 });
    const isPaused = stream.paused !== null;
    acts(parts.acts, `${isPaused}`, () => (isPaused
      ? [deeds.button("Resume", `Resume stream ${name}`, () => deeds.deeds.resume("stream", name))]
      : [deeds.button("Sync now", `Sync now: ${name}`, () => deeds.deeds.sync(name)), deeds.button("Pause", `Pause stream ${name}`, () => deeds.deeds.pause("stream", name))]));
  });
}

function drawSinks(status, now) {
  const names = Object.keys(status.sinks);
  const { entries, bytes } = status.outbox;
  text($("outbox-line"), entries === 0 ? "the durable queue is empty" : `${counted(entries, "change waits", "changes wait")} in the durable queue, ${size(bytes)}`);
  cardsIn($("sinks"), names, (name) => card("sink", name)).forEach((node, index) => {
    const [name, sink] = [names[index], status.sinks[names[index]]];
    const { parts } = node;
    badge(parts.badge, sink.state, sink.state === "ok" ? "delivers" : sink.state === "open" ? "takes nothing" : undefined);
    text(parts.figure, `${count(sink.pending)} waiting`);
    const oldest = sink.pending > 0 && sink.oldest_age_seconds !== null ? `The oldest for ${span(sink.oldest_age_seconds)}. ` : "";
    const since = sink.since ? `Failing for ${span(away(now, sink.since))}. ` : "";
    const published = Object.entries(sink.published).filter(([, at]) => at !== null).map(([stream, at]) => `${stream} to ${clock(at, now, true)}`).join(", ");
    text(parts.detail, `${oldest}${since}Holds ${published || "nothing yet"}.`);
    // What the configuration pauses only the configuration resumes.
    const byConfig = sink.state === "paused" && !sink.paused;
    note(parts.pause, pauseSentence(sink.paused, now) || (byConfig ? "Paused by the configuration" : ""), "warn");
    note(parts.error, errorSentence(sink.error), sink.state === "open" || sink.state === "needs_reload" ? "bad" : "warn");
    sparkline(parts.chart, (sample) => sample.p[name] ?? null, now, sink.pending, { name: `Changes waiting for ${name}`, format: count, least: 10 });
    const isPaused = sink.paused !== null;
    acts(parts.acts, byConfig ? "none" : `${isPaused}`, () => (byConfig ? [] : [isPaused
      ? deeds.button("Resume", `Resume sink ${name}`, () => deeds.deeds.resume("sink", name))
      : deeds.button("Pause", `Pause sink ${name}`, () => deeds.deeds.pause("sink", name))]));
  });
}

// ---- Sierra --------------------------------------------------------------------------------------------------------

// The present window as it was seen: from the samples that end with it, and from this page's own looks.
function windowOf(quota, now) {
  if (!quota.resets_at || quota.limit === null || quota.remaining === null) return null;
  const end = Date.parse(quota.resets_at) / 1000;
  const isOurs = (reset) => reset !== null && Math.abs(reset - end) <= 3;
  const own = window_points.filter((point) => isOurs(point[2]));
  const first = own.length ? own[0][0] : now;
  const seen = samples.filter((sample) => isOurs(sample.q[2]) && sample.q[0] !== null && sample.t < first);
  const points = [...seen.map((sample) => [sample.t, sample.q[0]]), ...own.map((point) => [point[0], point[1], true])];
  const waits = spans(seen.filter((sample) => sample.w).map((sample) => [sample.t - 10, sample.t]));
  return points.length && end > now ? { points, waits, start: points[0][0], end } : null;
}

function spans(parts) {
  const joined = [];
  for (const part of parts) {
    const before = joined.at(-1);
    if (before && part[0] <= before[1] + 90) before[1] = part[1]; else joined.push([...part]);
  }
  return joined;
}

function drawQuota(quota, now) {
  badge($("quota-state"), quota.state, quota.state === "ok" ? "calls may go" : undefined);
  text($("quota-figure"), quota.remaining === null ? "Not told" : count(quota.remaining));
  text($("quota-of"), quota.remaining === null ? "by the server" : quota.limit === null ? "calls left" : `of ${count(quota.limit)} calls left`);
  const seen = windowOf(quota, now);
  const pace = seen && paceOf(seen.points);
  const sentences = [];
  if (quota.resume_at) sentences.push(`Waits, and goes on ${inTime(quota.resume_at, now)}.`);
  if (quota.resets_at) sentences.push(`The window ends ${inTime(quota.resets_at, now)}.`);
  let left = null;
  if (pace !== null && pace !== undefined && quota.state === "ok") {
    left = quota.remaining - pace * (seen.end - now);
    sentences.push(left >= 0 ? `At this pace about ${count(Math.round(left))} will be left.` : `At this pace the rest is used ${inTime(now + quota.remaining / pace, now)}.`);
  }
  sentences.push(`${counted(quota.refused, "refusal", "refusals")}, ${span(quota.waited_seconds)} waited in all.`);
  text($("quota-detail"), sentences.join(" "));
  $("quota-legend").hidden = !seen;
  if (!seen) {
    const from = reach(now);
    const points = samples.filter((sample) => sample.t >= from).map((sample) => [sample.t, sample.q[0]]);
    points.push([now, quota.remaining, true]);
    const known = points.filter((point) => point[1] !== null);
    $("quota-chart").hidden = known.length < 2;
    if (known.length >= 2) drawChart($("quota-chart"), { label: `Calls left over the last ${span(now - from)}`, lines: [{ points: known, kind: "line", area: true }], bands: spans(samples.filter((sample) => sample.w).map((sample) => [sample.t - 60, sample.t])), from, to: now, top: ceiling(Math.max(...known.map((point) => point[1])), 10), format: count, now });
    return;
  }
  $("quota-chart").hidden = false;
  const { points, waits, start, end } = seen;
  const first = points[0][1];
  const lines = [{ points, kind: "line", area: true }, { points: [[start, first], [end, 0, true]], kind: "ideal" }];
  if (left !== null) lines.push({ points: [[now, quota.remaining], left >= 0 ? [end, left, true] : [now + quota.remaining / pace, 0, true]], kind: "dash" });
  const even = first * (1 - (now - start) / Math.max(end - start, 1));
  const against = quota.remaining >= even ? `${count(Math.round(quota.remaining - even))} more than at an even pace` : `${count(Math.round(even - quota.remaining))} fewer than at an even pace`;
  drawChart($("quota-chart"), { label: `Calls left in this window, from ${clock(start, now)} to ${clock(end, now)}: ${count(quota.remaining)} left, ${against}`, lines, bands: waits, from: start, to: end, top: Math.max(quota.limit, ...points.map((point) => point[1])), format: (value) => `${count(Math.round(value))} left`, now });
}

// Calls a second over the later half of what was seen of the window; null when that is too little.
function paceOf(points) {
  const end = points.at(-1);
  const begin = points.find((point) => point[0] >= (points[0][0] + end[0]) / 2) ?? points[0];
  const seconds = end[0] - begin[0];
  return seconds < 5 ? null : Math.max(0, (begin[1] - end[1]) / seconds);
}

// Everything that let nothing pass, each once, the oldest first.
function spells(status, now) {
  const known = new Map();
  const see = (halt, at, isOpen) => {
    const start = halt.since ?? at;
    const key = [...known.keys()].find((key) => { const spell = known.get(key); return spell.who === halt.who && (spell.since === start || (halt.since === null && at - spell.to < 200)); }) ?? `${halt.who} ${start}`;
    const spell = known.get(key) ?? { who: halt.who, since: start, from: start };
    known.set(key, { ...spell, to: at, why: halt.why ?? spell.why, isOpen });
  };
  for (const sample of samples) for (const halt of sample.o ?? []) see(halt, sample.t, false);
  const { breaker } = status;
  if (breaker.state !== "closed") see({ who: "sierra", since: breaker.since ? Math.floor(Date.parse(breaker.since) / 1000) : null, why: breaker.reason }, now, true);
  for (const endpoint of breaker.suspended_endpoints) see({ who: `endpoint ${endpoint}`, since: null, why: null }, now, true);
  return [...known.values()].sort((one, other) => one.from - other.from);
}

function drawBreaker(status, now) {
  const { breaker, token } = status;
  badge($("breaker-state"), breaker.state);
  text($("breaker-figure"), { closed: "Calls pass", open: "Calls are halted", half_open: "A check is out" }[breaker.state] ?? breaker.state);
  const suspended = breaker.suspended_endpoints.length ? ` Suspended on their own: ${breaker.suspended_endpoints.join(", ")}.` : "";
  const reason = breaker.reason ? `${breaker.reason}. ` : breaker.state === "closed" ? "Nothing is in the way. " : "";
  const probe = breaker.next_probe ? `The next health check is due ${inTime(breaker.next_probe, now)}.` : "";
  text($("breaker-detail"), inLocalTime(`${reason}${probe}${suspended}`));
  const from = reach(now);
  const all = spells(status, now);
  const ours = all.filter((spell) => !spell.who.startsWith("sink ") && spell.to >= from);
  const halts = ours.map((spell) => ({ from: spell.from, to: spell.to, part: spell.who !== "sierra" }));
  const seen = spans([...samples.filter((sample) => sample.t >= from).map((sample) => [sample.t - 60, sample.t]), [now - 10, now]]);
  const halted = ours.filter((spell) => spell.who === "sierra");
  const told = halted.length ? `halted ${counted(halted.length, "time", "times")}, ${span(halted.reduce((sum, spell) => sum + spell.to - Math.max(spell.from, from), 0))} in all` : "calls passed all the time";
  drawTimeline($("breaker-line"), { label: `Breaker over the last ${span(now - from)}: ${told}`, seen, halts, from, to: now, now });
  const list = all.slice(-4).reverse();
  const key = JSON.stringify(list.map((spell) => [spell.who, spell.from, spell.isOpen ? 0 : spell.to, spell.why]));
  if ($("breaker-spells").dataset.key !== key) {
    $("breaker-spells").dataset.key = key;
    $("breaker-spells").replaceChildren(...list.map((spell) => {
      const line = make("li");
      const who = spell.who === "sierra" ? "" : `${spell.who}: `;
      const lasted = spell.isOpen ? "still so" : `for ${span(Math.max(spell.to - spell.from, 1))}`;
      line.append(make("time", "", `${clock(spell.from, now)}, ${lasted}`), make("span", "", who + inLocalTime(spell.why ?? "left alone until it recovers")));
      return line;
    }));
  }
  const words = { none: "No session token was needed yet.", ok: "The session token is good", refreshing: "A new session token is being fetched", latched: "Sierra refuses the credential; no token until it is put right" }[token.state] ?? token.state;
  $("token-line").classList.toggle("refused", token.state === "latched");
  text($("token-line"), token.expires_at ? `${words}; it expires ${inTime(token.expires_at, now)} and is renewed before.` : words);
}

// ---- tables --------------------------------------------------------------------------------------------------------

const grown = new Set();

// A table that shows its first rows until it is asked for all of them; drawn again only when something changed.
function table(host, caption, columns, rows) {
  const idle = columns.length - 1;
  // The last column says what went wrong: it is not there while nothing did.
  if (rows.length > 0 && rows.every((row) => row[idle] === "")) {
    columns = columns.slice(0, idle);
    rows = rows.map((row) => row.slice(0, idle));
  }
  const key = JSON.stringify([rows, grown.has(host.id)]);
  host.hidden = rows.length === 0;
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  const scroll = make("div", "scroll");
  scroll.classList.toggle("whole", !grown.has(host.id));
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", caption);
  const node = make("table");
  node.append(make("caption", "", caption));
  const head = make("tr");
  for (const [name, kind] of columns) { const cell = make("th", kind, name); cell.scope = "col"; head.append(cell); }
  const [thead, body] = [make("thead"), make("tbody")];
  thead.append(head);
  for (const row of grown.has(host.id) ? rows : rows.slice(0, SHOWN)) {
    const line = make("tr");
    row.forEach((cell, index) => line.append(make("td", columns[index][1], cell)));
    body.append(line);
  }
  node.append(thead, body);
  scroll.append(node);
  const hadFocus = host.contains(document.activeElement) ? document.activeElement.className : null;
  const top = host.querySelector(".scroll")?.scrollTop ?? 0;
  host.replaceChildren(scroll);
  if (rows.length > SHOWN) {
    const isGrown = grown.has(host.id);
    const more = make("button", "more", isGrown ? "Show fewer" : `Show all ${count(rows.length)}`);
    more.type = "button";
    more.setAttribute("aria-expanded", String(isGrown));
    more.addEventListener("click", () => {
      if (isGrown) grown.delete(host.id); else grown.add(host.id);
      table(host, caption, columns, rows);
    });
    host.append(more);
    if (hadFocus === "more") more.focus({ preventScroll: true });
  }
  if (hadFocus?.startsWith("scroll")) scroll.focus({ preventScroll: true });
  scroll.scrollTop = top;
}

const spanEnd = (value, now) => (/^1970-01-01/.test(value) ? "the beginning" : /^\d{4}-\d\d-\d\dT/.test(value) ? clock(value, now, true) : value);

function drawOwed(status, now) {
  const gaps = [];
  const owners = [...Object.entries(status.streams), ...Object.entries(status.sinks).map(([name, sink]) => [`sink ${name}`, sink])];
  for (const [name, owner] of owners) for (const gap of owner.gaps) gaps.push([name, spanEnd(gap.from, now), spanEnd(gap.to, now), count(gap.attempts), inLocalTime(gap.error ?? "")]);
  const aside = Object.entries(status.quarantine).filter(([, number]) => number > 0);
  const restarted = Object.entries(status.restarted);
  $("owed-none").hidden = gaps.length + aside.length + restarted.length > 0;
  const notes = aside.map(([name, number]) => [`${counted(number, "record", "records")} of ${name} set aside: \`sierra-sync quarantine list --stream ${name}\` tells which, and why.`, name]);
  notes.push(...restarted.map(([task, { times, last: at }]) => [`The task ${task} met a defect and was started again, ${counted(times, "time", "times")}, last at ${at}. Please report the place that the log names.`, null]));
  const host = $("aside");
  const key = JSON.stringify([notes, deeds.areOn()]);
  if (host.dataset.key !== key) {
    host.dataset.key = key;
    host.replaceChildren(...notes.map(([sentence, stream]) => {
      const line = make("div", "note");
      const words = make("p");
      note(words, sentence);
      line.dataset.tone = "warn";
      line.append(words);
      if (stream && deeds.areOn()) {
        const acts = make("div", "acts");
        acts.append(deeds.button("Replay", `Replay what was set aside of ${stream}`, () => deeds.deeds.replay(stream)));
        line.append(acts);
      }
      return line;
    }));
  }
  const shares = owners.filter(([, owner]) => owner.gaps.length).map(([name, owner]) => `${name} ${count(owner.gaps.length)}`).join(", ");
  table($("gaps"), `${counted(gaps.length, "window is", "windows are")} owed: ${shares}`, [["Of", "keep"], ["From", "when"], ["To", "when"], ["Tries", "number extra"], ["Why", "free"]], gaps);
}

function drawPast(past, now) {
  const rows = [...past.runs].reverse().map((run) => {
    const [word] = state(run.outcome);
    const times = run.times > 1 ? `${count(run.times)} × ` : "";
    const found = run.changed + run.deleted + run.quarantined === 0 ? "nothing new" : [run.changed && `${count(run.changed)} changed`, run.deleted && `${count(run.deleted)} deleted`, run.quarantined && `${count(run.quarantined)} set aside`].filter(Boolean).join(", ");
    const lasted = run.times > 1 ? `since ${clock(run.began, now)}` : brief(away(run.ended, run.began));
    return [clock(run.ended, now, true), run.stream, found, word, `${times}${run.kind}`, count(run.calls), lasted, inLocalTime(run.error ?? "")];
  });
  $("runs-none").hidden = rows.length > 0;
  table($("runs"), `The last ${counted(rows.length, "entry", "entries")}, the newest first`, [["Ended", "when"], ["Stream", "keep"], ["Found", ""], ["How", "keep"], ["What", "keep extra"], ["Calls", "number extra"], ["Took", "keep extra"], ["Why not more", "free"]], rows);
  const recent = past.actions.slice(-8).reverse();
  $("deeds-none").hidden = recent.length > 0;
  const key = JSON.stringify(recent);
  if ($("deeds").dataset.key === key) return;
  $("deeds").dataset.key = key;
  $("deeds").replaceChildren(...recent.map((deed) => {
    const line = make("li");
    const words = make("span");
    words.append(make("code", "", deed.command), ` by ${deed.by ?? "somebody"}${deed.reason ? `: ${deed.reason}` : ""}. ${deed.outcome}`);
    line.append(make("time", "", clock(deed.at, now)), words);
    return line;
  }));
}

// ---- asking --------------------------------------------------------------------------------------------------------

function draw(status) {
  const now = Date.parse(status.now) / 1000;
  last = status;
  skew = now - Date.now() / 1000;
  if (status.quota.remaining !== null && status.quota.resets_at) {
    window_points.push([now, status.quota.remaining, Math.round(Date.parse(status.quota.resets_at) / 1000)]);
    window_points = window_points.slice(-1800);
  }
  gate.welcome();
  drawVerdict(status);
  drawStreams(status, now);
  drawQuota(status.quota, now);
  drawBreaker(status, now);
  drawSinks(status, now);
  drawOwed(status, now);
}

function live(isLive, words) {
  const pulse = $("pulse");
  pulse.toggleAttribute("data-live", isLive);
  pulse.toggleAttribute("data-lost", !isLive);
  document.body.toggleAttribute("data-lost", !isLive);
  text($("pulse-text"), words);
}

function shut() {
  gate.close();
  verdict("quiet", "What this page shows is for those who have the token.");
  live(false, "Not open");
}

async function refresh() {
  try {
    const status = await gate.ask("/status");
    draw(status);
    live(true, `Live, ${clock(status.now, status.now, true)}`);
  } catch (error) {
    if (error instanceof gate.NeedsToken) {
      shut();
    } else if (!(error instanceof gate.Busy)) {
      const seen = last ? ` What stands below was so ${ago(last.now, Date.now() / 1000 + skew)}.` : "";
      verdict("bad", `The service does not answer. See whether it runs: \`systemctl status sierra-sync\`, or its log.${seen}`);
      live(false, "No answer");
      document.title = "no answer: sierra-sync";
      if (!(error instanceof TypeError)) console.warn(`sierra-sync: ${error.message}`);
    }
  }
}

async function remember() {
  try {
    const after = samples.length ? `?after=${samples.at(-1).t}` : "";
    const past = await gate.ask(`/history${after}`);
    samples = [...samples, ...past.samples].filter((sample) => sample.t > Date.now() / 1000 + skew - DAY - 120);
    if (samples.length > 3000) samples = [];
    drawPast(past, last ? Date.parse(last.now) / 1000 : Date.now() / 1000);
    if (last) draw(last);
  } catch { /* The status says what is wrong. */ }
}

async function begin() {
  try {
    if (!(await gate.ask("/gate")).open) { shut(); return; }
  } catch { /* The next question says what is wrong. */ }
  await refresh();
  if (!gate.isOpen() || !last) return;
  try { await deeds.learn(); } catch { /* Actions are for another time then. */ }
  await remember();
}

async function beat(ask, every) {
  if (!document.hidden && gate.isOpen()) await ask();
  setTimeout(beat, every, ask, every);
}

gate.start(begin);
deeds.start(() => { refresh(); remember(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && gate.isOpen()) begin(); });
begin().then(() => {
  setTimeout(beat, 2000, refresh, 2000);
  setTimeout(beat, 10000, remember, 10000);
});
