#!/usr/bin/env bash
# Records the log of a storm and runs the filter of rule A13 over it, with jq, as an operator would:
#     jq 'select(.status_code == 429 and .attempt > 3)'
# SIERRA_SYNC names the binary. Exits 0 only if the filter finds the storm and the log holds nothing that it must not.
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=$(realpath "${SIERRA_SYNC:-target/release/sierra-sync}")
place=$(mktemp -d)
simulator=
trap '[ -z "$simulator" ] || kill "$simulator" 2>/dev/null || true; rm -rf "$place"' EXIT

"$binary" simulate --scenario scripts/resilience/storm.toml --json >"$place/simulator.json" 2>/dev/null &
simulator=$!
for _ in $(seq 100); do [ -s "$place/simulator.json" ] && break; sleep 0.1; done
base_url=$(jq -r .base_url "$place/simulator.json")
secret=$(jq -r .client_secret "$place/simulator.json")

cat >"$place/sierra-sync.toml" <<TOML
config_version = 1
[sierra]
base_url = "$base_url"
client_key = "$(jq -r .client_key "$place/simulator.json")"
[state]
path = "$place/state"
min_free = "1MiB"
[streams.bibs]
page_size = 20
[streams.items]
page_size = 20
[streams.patrons]
page_size = 20
[quota]
rate = "1000/s"
[retry]
base = "20ms"
cap = "400ms"
[breaker]
open_for = "300ms"
open_cap = "300ms"
[sinks.archive]
type = "file"
path = "$place/out"
streams = ["bibs", "items", "patrons"]
TOML

for _ in $(seq 20); do
    if SIERRA_SYNC__SIERRA__CLIENT_SECRET="$secret" "$binary" sync --config "$place/sierra-sync.toml" \
        --log trace --log-format json >/dev/null 2>>"$place/log"; then
        over=yes
        break
    fi
done
[ "${over:-no}" = yes ] || { echo "the storm did not end" >&2; tail -5 "$place/log" >&2; exit 1; }

fail() { echo "storm: $1" >&2; exit 1; }
jq -e . "$place/log" >/dev/null || fail "a line is not JSON"
found=$(jq -c 'select(.status_code == 429 and .attempt > 3)' "$place/log")
[ -n "$found" ] || fail "the filter of A13 finds nothing"
jq -s -e 'all((.endpoint == "bibs") and (.delay | type == "number") and (.rate_limit_remaining == 0)
    and (.correlation_id | type == "string"))' <<<"$found" >/dev/null || fail "a fact is missing: $found"
jq -s -e 'map(.event) | contains(["breaker_opened"]) and contains(["retry_reauthenticating"])' "$place/log" >/dev/null ||
    fail "the storm was too mild"
jq -s -e 'map(select(.event == "breaker_opened")) | all(.queued | type == "number")' "$place/log" >/dev/null ||
    fail "the alert does not say how much is queued"
! grep -qE 'canary-of-a-body|Bearer|sim00' "$place/log" || fail "a body or a token is in the log"
! grep -qF "$secret" "$place/log" || fail "the secret is in the log"
! jq -e 'select(.endpoint == "patrons" and ((.path // "") | contains("?")))' "$place/log" | grep -q . ||
    fail "a query about patrons is in the log"
echo "storm: $(wc -l <"$place/log") lines; the filter of A13 finds the retry storm: $(head -1 <<<"$found")"
