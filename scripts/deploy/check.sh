#!/usr/bin/env bash
# Checks what stands in deploy/ with the tools that will read it: promtool (rules, their tests, our own /metrics),
# systemd-analyze (units), and a YAML parser (compose).
#
#   SIERRA_SYNC=target/release/sierra-sync bash scripts/deploy/check.sh
set -euo pipefail
binary=$(realpath "${SIERRA_SYNC:-target/release/sierra-sync}")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait; rm -rf "$work"' EXIT

# Debian's package would start a server; only the tool is wanted.
promtool() {
    if type -P promtool >/dev/null; then command promtool "$@"; else "$work/prometheus/usr/bin/promtool" "$@"; fi
}
if ! type -P promtool >/dev/null; then
    (cd "$work" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb prometheus)
fi

promtool check rules deploy/prometheus/sierra-sync.rules.yml
promtool test rules deploy/prometheus/sierra-sync.rules.test.yml
promtool check config --syntax-only deploy/prometheus/prometheus.yml
# The tests of the rules can fail.
mkdir "$work/broken"
cp deploy/prometheus/*.yml "$work/broken/"
sed -i 's/cause="gap"/cause="gaps"/' "$work/broken/sierra-sync.rules.yml"
if promtool test rules "$work/broken/sierra-sync.rules.test.yml" >/dev/null 2>&1; then
    echo "the tests of the rules pass although a rule is broken" >&2
    exit 1
fi

echo "units:"
mkdir "$work/units"
for unit in deploy/systemd/*; do
    sed "s|/usr/local/bin/sierra-sync|$binary|" "$unit" >"$work/units/$(basename "$unit")"
done
if command -v systemd-analyze >/dev/null; then
    systemd-analyze verify --man=no "$work"/units/*
    echo "  systemd-analyze verify: ok"
else
    echo "  skipped: no systemd-analyze"
fi

echo "compose:"
python3 - deploy/container/compose.yaml deploy/grafana/datasource.yml deploy/grafana/provider.yml <<'PYTHON'
import os, sys, yaml
for path in sys.argv[1:]:
    document = yaml.safe_load(open(path))
    for name, service in document.get("services", {}).items() if isinstance(document, dict) else []:
        for volume in service.get("volumes", []):
            source = volume["source"] if isinstance(volume, dict) else volume.split(":")[0]
            if source.startswith("..") and not os.path.exists(os.path.join(os.path.dirname(path), source)):
                sys.exit(f"{path}: {name} mounts {source}, which is not there")
    print(f"  {path}: ok")
PYTHON

echo "metrics of a running service:"
cd "$work"
"$binary" simulate --listen 127.0.0.1:0 --bibs 200 --items 100 >simulate.out 2>simulate.err &
started+=($!)
for _ in $(seq 100); do
    address=$(grep -oE '127\.0\.0\.1:[0-9]+' simulate.out simulate.err | head -n 1 | sed 's/.*://') && [ -n "$address" ] && break
    sleep 0.1
done
cat >sierra-sync.toml <<TOML
config_version = 1
[sierra]
base_url = "http://127.0.0.1:$address/iii/sierra-api/v6"
client_key = "simulator-key"
[streams.bibs]
[streams.items]
[sinks.archive]
type = "file"
path = "./out"
[state]
min_free = "1MiB"
[ops]
listen = "127.0.0.1:0"
TOML
SIERRA_SYNC__SIERRA__CLIENT_SECRET=simulator-secret "$binary" run 2>run.err &
started+=($!)
for _ in $(seq 300); do
    ops=$(grep -oE 'http://127\.0\.0\.1:[0-9]+/' run.err | head -n 1) || true
    if [ -n "${ops:-}" ] && curl -sf "${ops}metrics" >metrics.txt && grep -q sierra_sync_records_total metrics.txt; then break; fi
    sleep 0.1
done
promtool check metrics <metrics.txt
series=$(grep -cv '^#' metrics.txt)
echo "  $series series"
[ "$series" -le 500 ]
