#!/bin/sh
# Makes include/flexfile.h anew from flex-capi/src and compares it with the committed one.
#   header.sh            answers 1 and shows the difference when they differ
#   header.sh --write    writes the committed one
set -eu
capi=$(cd "$(dirname "$0")/.." && pwd)
committed=$capi/../include/flexfile.h
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
# A target directory of its own: this is another workspace, and must not wait for a build that runs.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$capi/../target}/header \
    cargo run --quiet --locked --manifest-path "$capi/header/Cargo.toml" -- "$capi" "$fresh"
if [ "${1:-}" = --write ]; then
    cp "$fresh" "$committed"
    echo "written: include/flexfile.h"
elif ! diff -u "$committed" "$fresh"; then
    echo "include/flexfile.h is not what flex-capi/src says: run flex-capi/tests/header.sh --write" >&2
    exit 1
else
    echo "include/flexfile.h is up to date"
fi
