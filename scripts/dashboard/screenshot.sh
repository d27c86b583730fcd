#!/usr/bin/env bash
# Makes docs/dashboard.png: runs the demo, waits until its scripted outage is over, and photographs the dashboard.
# Needs chromium and a built sierra-sync (SIERRA_SYNC, by default the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

binary=$(realpath "${SIERRA_SYNC:-target/release/sierra-sync}")
picture=$PWD/docs/dashboard.png
command -v chromium >/dev/null || { echo "screenshot: chromium is missing (Debian: apt-get install chromium)" >&2; exit 2; }

work=$(mktemp -d)
trap 'kill "${demo:-0}" 2>/dev/null || true; rm -rf "$work"' EXIT
(cd "$work" && exec "$binary" demo --for "${DEMO_FOR:-75s}" >demo.out 2>demo.log) &
demo=$!
for _ in $(seq 600); do
    grep -q 'script is played' "$work/demo.log" && break
    kill -0 "$demo" || { cat "$work/demo.log" >&2; exit 1; }
    sleep 0.1
done
# Two history samples, ten seconds apart, so that the lines are drawn.
sleep 12
address=$(sed -n 's/^Dashboard: //p' "$work/demo.log")
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --hide-scrollbars --user-data-dir="$work/profile" \
    --window-size=1100,1000 --virtual-time-budget=4000 --screenshot="$picture" "$address" >"$work/chromium.log" 2>&1
wait "$demo"
echo "wrote docs/dashboard.png"
