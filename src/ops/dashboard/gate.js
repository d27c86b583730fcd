// The token, and every question that is asked with it. It is kept for this tab alone; no cookie is ever set.
const KEY = "sierra-sync-token";
const $ = (id) => document.getElementById(id);

let token = sessionStorage.getItem(KEY);
let opened = () => {};

export class NeedsToken extends Error {}
export class Busy extends Error {}

export async function ask(path, body) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit" });
  if (answer.status === 401) throw new NeedsToken();
  if (answer.status === 429 && !body) throw new Busy();
  if (!answer.ok && !body) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

// A link cannot bear the token: where there is one, the addresses for machines are told and not linked to.
function unlink() {
  $("bearing").hidden = false;
  for (const link of document.querySelectorAll("footer a")) {
    const told = document.createElement("code");
    told.textContent = link.textContent;
    link.replaceWith(told);
  }
}

// Asks for the token; what was given before was wrong, if there was any.
export function close() {
  const wasWrong = token !== null;
  token = null;
  sessionStorage.removeItem(KEY);
  $("forget").hidden = true;
  unlink();
  if (!$("login").hidden && !wasWrong) return;
  $("main").hidden = true;
  $("login").hidden = false;
  $("login-error").textContent = wasWrong ? "That is not the token." : "";
  $("token").value = "";
  $("token").focus();
}

export function isOpen() {
  return $("login").hidden;
}

// Called once: `resume` goes on when a token was given.
export function start(resume) {
  opened = resume;
  $("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token = $("token").value.trim();
    sessionStorage.setItem(KEY, token);
    $("login-error").textContent = "";
    $("login").hidden = true;
    opened();
  });
  $("forget").addEventListener("click", () => { token = null; close(); });
}

export function welcome() {
  $("main").hidden = false;
  $("forget").hidden = token === null;
  if (token) unlink();
}
