#!/usr/bin/env bash
# The dashboard in a real Chromium: runs the service against the simulator and looks at it, in light and dark, wide and
# narrow, by pointer and by keyboard. Installs chromium (apt) when it is missing, and the drivers (npm) into a
# directory that goes away. SIERRA_SYNC names the binary, by default the release build; PICTURES a directory that keeps
# screenshots; ONLY some words of the checks to run.
set -euo pipefail
cd "$(dirname "$0")/../.."

binary=$(realpath "${SIERRA_SYNC:-target/release/sierra-sync}")
if ! command -v chromium >/dev/null; then
    root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo)
    "${root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -y -qq chromium >/dev/null
fi

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cp scripts/dashboard/*.mjs "$work/"
(cd "$work" && npm install --silent --no-audit --no-fund --no-package-lock playwright-core@1.65.1 axe-core@4.14.1)
[ -z "${PICTURES:-}" ] || mkdir -p "$PICTURES"
node "$work/test.mjs" "$binary" "$work" "${PICTURES:+$(realpath "$PICTURES")}"
