// Numbers, times and states as people read them.
const whole = new Intl.NumberFormat("en");
const clockForm = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const preciseForm = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayForm = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));
export const counted = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const value = Math.max(0, seconds);
  if (value < 90) return `${Math.round(value)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 36 * 3600) {
    const minutes = Math.round(value / 60);
    return minutes % 60 === 0 || minutes > 600 ? `${Math.round(minutes / 60)} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }
  return `${Math.round(value / 86400)} days`;
}

// A short while, to tenths where that says something.
export const brief = (seconds) => (seconds < 10 ? `${Math.max(0, seconds).toFixed(1)} s` : span(seconds));

const seconds = (stamp) => (typeof stamp === "number" ? stamp : Date.parse(stamp) / 1000);

// A time of day, with the day where it is not today's.
export function clock(stamp, now, precise = false) {
  if (stamp === null || stamp === undefined) return "–";
  const date = new Date(seconds(stamp) * 1000);
  const today = new Date(seconds(now) * 1000);
  if (date.toDateString() !== today.toDateString()) return dayForm.format(date);
  return (precise ? preciseForm : clockForm).format(date);
}

export const away = (stamp, now) => seconds(stamp) - seconds(now);
export const inTime = (stamp, now) => (away(stamp, now) >= 1 ? `in ${span(away(stamp, now))}` : "now");
export const ago = (stamp, now) => (away(now, stamp) >= 1 ? `${span(away(now, stamp))} ago` : "just now");
export const size = (bytes) => (bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1048576).toFixed(1)} MiB`);

const states = {
  ok: ["fresh", "ok"], loading: ["loading", "warn"], behind: ["behind", "warn"], waiting_quota: ["waits for quota", "warn"],
  suspended: ["suspended", "bad"], stopped: ["stopped", "bad"], paused: ["paused", "warn"], closed: ["closed", "ok"],
  open: ["open", "bad"], half_open: ["half-open", "warn"], retrying: ["retrying", "warn"], needs_reload: ["needs a reload", "bad"],
  caught_up: ["caught up", "ok"], partial: ["partial", "warn"], failed: ["failed", "bad"],
};
export const state = (name) => states[name] ?? [String(name).replaceAll("_", " "), ""];
