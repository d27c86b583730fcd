#!/usr/bin/env bash
# Makes docs/dashboard.png: runs the service against a library that lives, under a quota, waits until a scripted outage
# is over, and photographs the dashboard. Needs chromium and a built sierra-sync (SIERRA_SYNC, by
# default the release build); Inter (Debian: fonts-inter) makes the picture nicer. The quota is counted in windows of
# seven minutes that begin by the clock: taken again a few minutes later, the picture shows more of one.
set -euo pipefail
cd "$(dirname "$0")/../.."

binary=$(realpath "${SIERRA_SYNC:-target/release/sierra-sync}")
picture=$PWD/docs/dashboard.png
command -v chromium >/dev/null || { echo "screenshot: chromium is missing (Debian: apt-get install chromium)" >&2; exit 2; }

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cat >"$work/scenario.toml" <<'TOML'
about = "A town library, and a server that is away for a while."
[life]
bib_edits = 900.0
item_edits = 1500.0
loans = 3000.0
acquisitions = 120.0
bib_deletions = 30.0
[[step]]
say = "Sierra goes down for maintenance"
when = { after = "40s" }
do = [{ fault = { what = { html = { status = 503 } }, when = { span = { after = "0s", lasts = "25s" } } } }]
TOML
"$binary" simulate --scenario "$work/scenario.toml" --bibs 2000 --items 3000 --rate-limit 1000/420 --json >"$work/simulator.json" 2>"$work/simulator.log" &
until base=$(sed -n 's/.*"base_url":"\([^"]*\)".*/\1/p' "$work/simulator.json") && [ -n "$base" ]; do sleep 0.1; done
cat >"$work/sierra-sync.toml" <<TOML
config_version = 1
[sierra]
base_url = "$base"
client_key = "simulator-key"
[streams.bibs]
interval = "2s"
deleted_interval = "5s"
settle = "1s"
page_size = 250
[streams.items]
interval = "2s"
deleted_interval = "5s"
settle = "1s"
page_size = 500
[retry]
base = "200ms"
cap = "2s"
total_budget = "20s"
[breaker]
open_for = "2s"
open_cap = "4s"
[sinks.discovery]
type = "file"
path = "./discovery"
format = "marcxml"
streams = ["bibs"]
[sinks.warehouse]
type = "file"
path = "./warehouse"
format = "ndjson"
streams = ["bibs", "items"]
[ops]
listen = "127.0.0.1:0"
TOML
cd "$work"
export SIERRA_SYNC__SIERRA__CLIENT_SECRET=simulator-secret
"$binary" run --log-format json >run.out 2>run.log &
for _ in $(seq 1200); do
    grep -q '"recovered' run.log && break
    sleep 0.1
done
# A sink waits a while, so that its queue is seen to fill and to drain; then a few samples more, ten seconds apart.
"$binary" pause --sink discovery --reason "its disk is changed" >/dev/null 2>&1
sleep "${PHOTO_PAUSE:-25}"
"$binary" resume --sink discovery >/dev/null 2>&1
sleep "${PHOTO_REST:-45}"
address=$(sed -n 's/.*"event":"ops_listening".*"address":"\([^"]*\)".*/\1/p; s/.*"address":"\([^"]*\)".*"event":"ops_listening".*/\1/p' run.log | head -1)
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size=1240,1290 --virtual-time-budget=5000 --screenshot="$picture" "http://$address/" >chromium.log 2>&1
echo "wrote docs/dashboard.png"
