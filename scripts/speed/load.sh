#!/usr/bin/env bash
# Measures a first load as a whole process: `sync` of a library of bibs from the loopback simulator through the durable
# queue into an NDJSON file, beside a Python client that only downloads the same pages and parses them. In turns, on one
# machine in one run; the simulator shares the cores with whoever is measured. Prints both rates, their ratio, peak
# memory, and the processor time that the simulator took of each. Fails when the ratio or the memory misses its target.
#
# A sweep believes that nothing follows when it was told so twice, five seconds apart. That rest does not grow with the
# library, so rates are told without it; the seconds are told with it.
#
# Usage: scripts/speed/load.sh [BIBS [ROUNDS]]      (100000 and 3 by default)
#
# SIERRA_SYNC names a release binary; by default it is built from this tree. Needs jq, python3 and no network.
set -euo pipefail
cd "$(dirname "$0")/../.."

bibs=${1:-100000}
rounds=${2:-3}
command -v jq >/dev/null || { echo "load: jq is missing: apt-get install jq" >&2; exit 1; }
if [ -z "${SIERRA_SYNC:-}" ]; then
  cargo build --release --quiet --bin sierra-sync
  SIERRA_SYNC=${CARGO_TARGET_DIR:-target}/release/sierra-sync
fi
binary=$(realpath "$SIERRA_SYNC")
place=$(mktemp -d)
simulator=
trap '[ -z "$simulator" ] || kill "$simulator" 2>/dev/null || true; rm -rf "$place"' EXIT

"$binary" simulate --bibs "$bibs" --items 0 --patrons 0 --life 0 --json >"$place/simulator.json" 2>/dev/null &
simulator=$!
for _ in $(seq 1200); do
  [ -s "$place/simulator.json" ] && break
  kill -0 "$simulator" 2>/dev/null || { echo "load: the simulator did not start" >&2; exit 1; }
  sleep 0.1
done
base_url=$(jq -r .base_url "$place/simulator.json")
key=$(jq -r .client_key "$place/simulator.json")
secret=$(jq -r .client_secret "$place/simulator.json")

# Quota and memory of the queue are not what is measured here.
cat >"$place/sierra-sync.toml" <<TOML
config_version = 1
[sierra]
base_url = "$base_url"
client_key = "$key"
[state]
path = "$place/state"
[streams.bibs]
page_size = 2000
[quota]
rate = "1000/s"
[sinks.archive]
type = "file"
path = "$place/out"
streams = ["bibs"]
TOML

cat >"$place/measure.py" <<'PYTHON'
# measure.py NAME SIMULATOR-PID COMMAND...: appends "seconds cpu MiB simulator-cpu" to NAME.runs, stdout goes to NAME.out
import os, resource, subprocess, sys, time

name, simulator, command = sys.argv[1], sys.argv[2], sys.argv[3:]

def served():
    fields = open(f"/proc/{simulator}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

before, began = served(), time.monotonic()
with open(name + ".out", "wb") as out, open(name + ".err", "wb") as err:
    status = subprocess.run(command, stdout=out, stderr=err).returncode
seconds, server = time.monotonic() - began, served() - before
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if status != 0:
    sys.exit(f"load: {name} ended with {status}: {open(name + '.err').read()[-2000:]}")
with open(name + ".runs", "a") as runs:
    print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, server, file=runs)
PYTHON
measure() { # measure NAME COMMAND...
  python3 "$place/measure.py" "$place/$1" "$simulator" "${@:2}"
}

export SIERRA_SYNC__SIERRA__CLIENT_SECRET=$secret
for _ in $(seq "$rounds"); do
  rm -rf "$place/state" "$place/out"
  measure ours "$binary" sync --config "$place/sierra-sync.toml" --json
  told=$(tail -n 1 "$place/ours.out" | jq -r '"\(.streams.bibs.changed) \(.streams.bibs.state) \(.sinks.archive.delivered)"')
  [ "$told" = "$bibs caught_up $bibs" ] || { echo "load: expected $bibs bibs, the summary says: $told" >&2; exit 1; }
  measure python python3 scripts/speed/load_client.py "$base_url" "$key" "$secret" 2000 default,fixedFields,varFields,locations
  [ "$(cat "$place/python.out")" = "$bibs" ] || { echo "load: python found $(cat "$place/python.out") bibs" >&2; exit 1; }
done
python3 - "$place" "$bibs" <<'PYTHON'
import os
import statistics
import sys

place, bibs = sys.argv[1], int(sys.argv[2])

def runs(name):
    rows = [[float(word) for word in line.split()] for line in open(f"{place}/{name}.runs")]
    seconds, cpu, memory, server = zip(*rows)
    return statistics.median(seconds), statistics.median(cpu), max(memory), statistics.median(server)

REST = 5.0
ours, python = runs("ours"), runs("python")
working = ours[0] - REST
print(f"{bibs} bibs, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
for name, rest, (seconds, cpu, memory, server) in [("sierra-sync", REST, ours), ("python", 0, python)]:
    print(f"{name:12} {seconds:7.2f} s  {bibs / (seconds - rest):8.0f} bibs/s  {cpu:6.2f} s of processor, "
          f"{server:6.2f} s of the simulator's  {memory:6.1f} MiB")
ratio = python[0] / working
print(f"ratio {ratio:.2f} (must 1.8); memory {ours[2]:.0f} MiB (must 256, aim 128)")
sys.exit(ratio < 1.8 or ours[2] > 256)
PYTHON
