#!/usr/bin/env bash
# Measures whole processes converting ISO 2709 to MARCXML: ours beside yaz-marcdump (with and without its check of UTF-8)
# and pymarc, in turns, on one machine in one run. Fails when a ratio or the memory misses its target.
#
# Usage: scripts/marc/speed.sh [RECORDS [ROUNDS]]      (100000 and 5 by default; pymarc runs in the first round only)
#
# SIERRA_SYNC names a release binary; by default it is built from this tree. Nothing is installed here: a tool that is
# missing is named with the package it comes in.
set -euo pipefail
cd "$(dirname "$0")/../.."

records=${1:-100000}
rounds=${2:-5}
missing=0
command -v yaz-marcdump >/dev/null || { echo "speed: yaz-marcdump is missing: apt-get install yaz" >&2; missing=1; }
[ -x /usr/bin/time ] || { echo "speed: /usr/bin/time is missing: apt-get install time" >&2; missing=1; }
python3 -c 'import pymarc' 2>/dev/null || { echo "speed: pymarc is missing: pip install pymarc==5.4.0" >&2; missing=1; }
[ "$missing" = 0 ] || exit 1

if [ -z "${SIERRA_SYNC:-}" ]; then
  cargo build --release --quiet --bin sierra-sync
  SIERRA_SYNC=${CARGO_TARGET_DIR:-target}/release/sierra-sync
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo run --release --quiet --example marc_corpus -- "$work" "$records" 7 iso2709
corpus=$work/corpus.mrc
echo "$records records, $(stat -c %s "$corpus") bytes, $(nproc) cores"
cat "$corpus" >/dev/null # Everybody reads from the page cache.

measure() { # measure NAME COMMAND...
  local name=$1
  shift
  /usr/bin/time -f '%e %M' -o "$work/time" "$@" >/dev/null 2>"$work/stderr" || { cat "$work/stderr" >&2; exit 1; }
  cat "$work/time" >>"$work/$name.runs"
}
for round in $(seq "$rounds"); do
  measure ours "$SIERRA_SYNC" convert --from iso2709 --to marcxml "$corpus"
  measure yaz yaz-marcdump -i marc -o marcxml "$corpus"
  measure yaz-utf8 yaz-marcdump -i marc -o marcxml -f utf-8 -t utf-8 "$corpus"
  [ "$round" != 1 ] || measure pymarc python3 scripts/marc/speed_pymarc.py "$corpus"
done
python3 - "$work" "$records" <<'PYTHON'
import statistics
import sys

folder, records = sys.argv[1], int(sys.argv[2])

def runs(name):
    rows = [line.split() for line in open(f"{folder}/{name}.runs")]
    return statistics.median(float(row[0]) for row in rows), max(int(row[1]) for row in rows) / 1024

ours, memory = runs("ours")
print(f"{'ours':10} {ours:7.2f} s  {records / ours:9.0f} records/s  {memory:6.1f} MiB")
failed = memory > 64
for name, must, aim in [("yaz", 3, 4), ("yaz-utf8", 6, 8), ("pymarc", 40, 60)]:
    seconds, peak = runs(name)
    ratio = seconds / ours
    verdict = "aim" if ratio >= aim else "must" if ratio >= must else "MISSED"
    failed |= ratio < must
    print(f"{name:10} {seconds:7.2f} s  {records / seconds:9.0f} records/s  {peak:6.1f} MiB  {ratio:5.1f}x  "
          f"(must {must}, aim {aim}: {verdict})")
print(f"memory: {memory:.1f} MiB of 64")
sys.exit(failed)
PYTHON
