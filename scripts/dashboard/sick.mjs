// A status in which everything is wrong at once, made of a good one.
const hour = (ago) => new Date(Date.now() - ago * 3600e3).toISOString();

export const GAPS = 400;

export function sick(status) {
  const { bibs, items } = status.streams;
  Object.assign(status, { state: "failing", message: "Stopped until you act: bibs (more than half of a page was unusable). Look at `sierra-sync quarantine list`; then `sierra-sync resume --stream bibs` lets it be tried again." });
  bibs.state = "stopped";
  bibs.lag_seconds = 26000;
  bibs.quarantined = status.quarantine.bibs = 1234;
  bibs.last_error = { kind: "stopped", message: "more than half of a page <img src=x onerror=alert(1)> was unusable", endpoint: "bibs", status_code: null, code: null, correlation_id: null, hint: "look at what was set aside" };
  bibs.gaps = Array.from({ length: GAPS }, (_, index) => ({ from: hour(500 - index), to: hour(499 - index), attempts: index % 7, error: index % 3 ? "Sierra answered 503 to a page, five times in a row" : null }));
  items.state = "loading";
  items.lag_seconds = null;
  items.backfill = { id: "load-items", done: 1_284_500, total: 3_100_000, percent: 41.4, eta: hour(-3.5), calls_left: 908, state: "running" };
  Object.assign(status.quota, { limit: 1000, remaining: 12, state: "waiting_quota", resume_at: hour(-0.2), resets_at: hour(-0.2), waited_seconds: 1840, refused: 17 });
  Object.assign(status.breaker, { state: "half_open", reason: "10 failures in a row, the last: no answer within 60 s", since: hour(0.1), next_probe: hour(-0.01), suspended_endpoints: ["items"] });
  status.token = { state: "latched", expires_at: null };
  Object.assign(status.sinks.archive, { state: "open", pending: 48211, oldest_age_seconds: 7300, breaker: "open", since: hour(2), error: { kind: "unavailable", message: "failed to write to /mnt/archive: no space left on device", endpoint: null, status_code: null, code: null, correlation_id: null, hint: "make room there" } });
  Object.assign(status.sinks.marcxml, { state: "needs_reload", gaps: [{ from: hour(30), to: hour(2), attempts: 0, error: "its backlog filled the outbox" }] });
  status.restarted = { "stream bibs": { times: 3, last: hour(0.2) } };
  return status;
}
