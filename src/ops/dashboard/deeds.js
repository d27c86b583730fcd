// What people may do from here. Each asks first: what it does, why, and who.
import { ask, close, NeedsToken } from "./gate.js";

const $ = (id) => document.getElementById(id);
const NAME = "sierra-sync-name";
let enabled = false;
let pending = null;
let done = () => {};

export const areOn = () => enabled;

export async function learn() {
  const known = await ask("/actions");
  enabled = known.enabled;
  $("acts-off").hidden = enabled;
  $("acts-off").textContent = known.why;
  $("breaker-acts").hidden = !enabled;
}

export function button(text, label, deed) {
  const node = document.createElement("button");
  node.type = "button";
  node.textContent = text;
  node.setAttribute("aria-label", label);
  node.addEventListener("click", () => open(deed()));
  return node;
}

export const deeds = {
  sync: (stream) => ({ path: "sync", body: { streams: [stream] }, title: `Sync ${stream} now`, verb: "Sync now", text: `A pass over ${stream} begins at once, over everything that is owed. If the stream had stopped, it is tried again.` }),
  pause: (what, name) => ({ path: "pause", body: { [what]: name }, title: `Pause ${name}`, verb: "Pause", text: what === "stream" ? `Sierra is not asked for ${name} any more, until somebody resumes it. What happens meanwhile is caught up with.` : `Nothing is delivered to ${name} any more, until somebody resumes it. What it misses waits in the queue.` }),
  resume: (what, name) => ({ path: "resume", body: { [what]: name }, title: `Resume ${name}`, verb: "Resume", text: what === "stream" ? `${name} is followed again, from where it was left.` : `What waits for ${name} is delivered.` }),
  hold: () => ({ path: "breaker", body: { order: "open" }, lasts: true, title: "Hold calls to Sierra", verb: "Hold calls", text: "No call goes to Sierra. What is queued is still delivered." }),
  release: () => ({ path: "breaker", body: { order: "close" }, title: "Let calls go to Sierra", verb: "Let calls go", text: "Calls go again once a health check has passed, whoever stopped them and for whatever reason." }),
  reset: () => ({ path: "breaker", body: { order: "reset" }, title: "Reset the breaker", verb: "Reset", text: "Forgets every outage and suspended endpoint, and presents a refused key again, which may lock its account." }),
  replay: (stream) => ({ path: "replay", body: { stream }, title: `Replay what was set aside of ${stream}`, verb: "Replay", text: `Each record of ${stream} that was set aside is read once more, and offered once more to the sink that refused it. What is refused for the third time is parked. This may take minutes.` }),
  recover: () => ({ path: "recover", body: {}, title: "Recover from a stall", verb: "Recover", text: "Forgets limits and gates, takes a fresh token, and asks one small call at a time until the quota holds. This may take minutes." }),
};

function open(deed) {
  pending = deed;
  $("ask-title").textContent = deed.title;
  $("ask-text").textContent = deed.text;
  $("ask-do").textContent = deed.verb;
  $("ask-do").disabled = false;
  $("ask-lasts").hidden = !deed.lasts;
  $("ask-minutes").value = "";
  $("ask-reason").value = "";
  $("ask-by").value = sessionStorage.getItem(NAME) ?? "";
  $("ask-answer").textContent = "";
  $("ask").showModal();
  $("ask-reason").focus();
}

let fading = 0;
function say(sentence) {
  $("toast").textContent = sentence;
  clearTimeout(fading);
  fading = setTimeout(() => { $("toast").textContent = ""; }, 8000);
}

export function start(refresh) {
  done = refresh;
  const acts = [["Hold calls", deeds.hold], ["Let calls go", deeds.release], ["Reset", deeds.reset], ["Recover", deeds.recover]];
  $("breaker-acts").append(...acts.map(([text, deed]) => button(text, deed().title, deed)));
  $("ask-cancel").addEventListener("click", () => $("ask").close());
  $("ask-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const deed = pending;
    const body = { ...deed.body };
    const [reason, by, minutes] = ["ask-reason", "ask-by", "ask-minutes"].map((id) => $(id).value.trim());
    if (reason) body.reason = reason;
    if (by) { body.by = by; sessionStorage.setItem(NAME, by); }
    if (deed.lasts && minutes) body.minutes = Number(minutes);
    $("ask-do").disabled = true;
    $("ask-answer").textContent = "";
    try {
      const answer = await ask(`/actions/${deed.path}`, body);
      if (!answer.ok) throw new Error(answer.message);
      $("ask").close();
      say(answer.message);
      done();
    } catch (error) {
      if (error instanceof NeedsToken) { $("ask").close(); close(); return; }
      $("ask-answer").textContent = error instanceof SyntaxError ? "Too many requests at once; try again in a moment." : error.message;
    } finally {
      $("ask-do").disabled = false;
    }
  });
}
