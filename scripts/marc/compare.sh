#!/usr/bin/env bash
# Compares what we write with what other MARC tools make of it, field by field: yaz-marcdump, xmllint, pymarc.
#
# Usage: scripts/marc/compare.sh [COUNT]      (10000 invented records by default, and ../shared/real where it exists)
#
# SIERRA_SYNC names the binary to test; by default it is built from this tree. Nothing is installed here: a tool that is
# missing is named with the package it comes in, and the comparison fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

count=${1:-10000}
missing=0
need() { # need COMMAND PACKAGE
  command -v "$1" >/dev/null || { echo "compare: $1 is missing: apt-get install $2" >&2; missing=1; }
}
need yaz-marcdump yaz
need xmllint libxml2-utils
need python3 python3
python3 -c 'import pymarc' 2>/dev/null || { echo "compare: pymarc is missing: pip install pymarc==5.4.0" >&2; missing=1; }
[ "$missing" = 0 ] || exit 1

if [ -z "${SIERRA_SYNC:-}" ]; then
  cargo build --quiet --bin sierra-sync
  SIERRA_SYNC=${CARGO_TARGET_DIR:-target}/debug/sierra-sync
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
convert() { "$SIERRA_SYNC" convert "$@"; }

echo "== $count invented records"
cargo run --quiet --example marc_corpus -- "$work" "$count" 20260105
convert --from sierra-json --to iso2709 --output "$work/sierra.mrc" "$work/sierra.json"
convert --from sierra-json --to marcxml --output "$work/sierra.xml" "$work/sierra.json"
convert --from iso2709 --to marcxml --output "$work/ours.xml" "$work/corpus.mrc"
convert --from marcxml --to iso2709 --output "$work/ours.mrc" "$work/corpus.xml"
convert --from iso2709 --to marc-json --output "$work/ours.json" "$work/corpus.mrc"
convert --from marc-json --to marcxml --output "$work/back.xml" "$work/ours.json"
xmllint --noout "$work"/*.xml
# yaz converts on its own, from the same ISO 2709.
yaz-marcdump -i marc -o marcxml -f utf-8 -t utf-8 "$work/corpus.mrc" >"$work/yaz.xml"
yaz-marcdump -i marcxml -o marc -f utf-8 -t utf-8 "$work/ours.xml" >"$work/yaz.mrc"
# It warns on stderr about lengths, offsets and anything else that is not as it should be.
for file in sierra.mrc ours.mrc corpus.mrc; do
  yaz-marcdump -n -i marc "$work/$file" >/dev/null 2>"$work/complaints"
  [ ! -s "$work/complaints" ] || { echo "compare: yaz-marcdump on $file:"; head "$work/complaints"; exit 1; } >&2
done
python3 scripts/marc/compare.py "$count" "$work/corpus.mrc" "$work/ours.mrc" "$work/yaz.mrc" "$work/ours.xml" \
  "$work/yaz.xml" "$work/back.xml" "$work/ours.json" "$work/corpus.json"
python3 scripts/marc/compare.py --sorted "$count" "$work/corpus.mrc" "$work/sierra.mrc" "$work/sierra.xml"

real=../shared/real
if [ -d "$real/marc" ]; then
  echo "== real records"
  for file in "$real"/marc/*.dat; do
    name=$work/$(basename "$file" .dat)
    convert --from iso2709 --to marcxml --output "$name.real.xml" "$file"
    convert --from marcxml --to iso2709 --output "$name.real.mrc" "$name.real.xml"
    convert --from iso2709 --to marc-json --output "$name.real.json" "$file"
    xmllint --noout "$name.real.xml"
    yaz-marcdump -i marc -o marcxml -f utf-8 -t utf-8 "$file" >"$name.yaz.xml"
    python3 scripts/marc/compare.py any "$file" "$name.real.xml" "$name.real.mrc" "$name.real.json" "$name.yaz.xml"
  done
  for file in "$real"/marc/*.xml; do
    name=$work/$(basename "$file" .xml)
    convert --from marcxml --to iso2709 --output "$name.real.mrc" "$file"
    convert --from marcxml --to marcxml --output "$name.real.xml" "$file"
    xmllint --noout "$name.real.xml"
    python3 scripts/marc/compare.py any "$file" "$name.real.mrc" "$name.real.xml"
  done
  for file in "$real"/marc/*.json; do
    name=$work/$(basename "$file" .json)
    convert --from marc-json --to marcxml --output "$name.real.xml" "$file"
    xmllint --noout "$name.real.xml"
    python3 scripts/marc/compare.py any "$file" "$name.real.xml"
  done
  for file in "$real"/sierra/bibs-v6-*.json; do
    name=$work/$(basename "$file" .json)
    convert --from sierra-json --to marcxml --output "$name.real.xml" "$file"
    xmllint --noout "$name.real.xml"
    python3 scripts/marc/compare.py --sierra any "$file" "$name.real.xml"
  done
else
  echo "== real records: SKIPPED, $real is not here"
fi
echo "compare: all the same"
