#!/bin/sh
# symbols.sh LIBDIR: what LIBDIR/libflexfile.so exports is the committed list, flex-capi/symbols.txt, and each function
# of the header is in it.
#   symbols.sh LIBDIR --write    writes the committed list
set -eu
if [ $# -lt 1 ] || [ ! -f "$1/libflexfile.so" ]; then
    echo "usage: symbols.sh LIBDIR [--write]; LIBDIR holds libflexfile.so (cargo build --release -p flex-capi)" >&2
    exit 2
fi
command -v nm >/dev/null || { echo "symbols.sh: nm is missing; install binutils" >&2; exit 2; }
export LC_ALL=C
capi=$(cd "$(dirname "$0")/.." && pwd)
library=$1/libflexfile.so
list=$capi/symbols.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '{print $NF}' | sort >"$work/exported"
if [ "${2:-}" = --write ]; then
    cp "$work/exported" "$list"
fi
if ! diff -u "$list" "$work/exported"; then
    echo "symbols.sh: $library does not export what flex-capi/symbols.txt lists" >&2
    grep -qx flexfile_test_panic "$work/exported" && echo "(it was built with the feature test_hooks)" >&2
    exit 1
fi
if grep -vE '^flex(file|space|db)_[a-z0-9_]+$' "$list"; then
    echo "symbols.sh: only flexfile_*, flexspace_* and flexdb_* may be exported" >&2
    exit 1
fi
grep -oE '^[a-z].*\bflex(file|space|db)_[a-z0-9_]+\(' "$capi/../include/flexfile.h" |
    grep -v '^typedef' | grep -oE 'flex(file|space|db)_[a-z0-9_]+\($' | tr -d '(' | sort >"$work/declared"
if ! diff -u "$list" "$work/declared"; then
    echo "symbols.sh: the header declares other functions than the library exports" >&2
    exit 1
fi
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\].*/\1/p')
if [ "$soname" != libflexfile.so.0 ]; then
    echo "symbols.sh: SONAME is '$soname', not libflexfile.so.0" >&2
    exit 1
fi
echo "$(wc -l <"$list") exported functions, as listed"
