#!/bin/sh
# run.sh LIBDIR: builds the C tests against the library in LIBDIR and runs each in a directory of its own.
#
# With AddressSanitizer and UndefinedBehaviorSanitizer where the compiler has them, else under valgrind, else plain, and
# says which. The static library is taken where there is one (KIND=shared asks for the shared one), and both headers are
# compiled with warnings as errors. CC and CXX name the compilers.
set -eu
fail() { echo "run.sh: $*" >&2; exit 2; }
[ $# -eq 1 ] || fail "usage: run.sh LIBDIR"
[ -d "$1" ] || fail "no directory $1"
libdir=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
include=$here/../../../include
CC=${CC:-cc}
CXX=${CXX:-c++}
command -v "$CC" >/dev/null || fail "no C compiler ($CC); install gcc or clang, or set CC"
command -v "$CXX" >/dev/null || fail "no C++ compiler ($CXX); install g++ or clang, or set CXX"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings="-Wall -Wextra -Wpedantic -Werror"

echo "header: C11, C++17"
"$CC" -std=c11 $warnings -I"$include" -c "$here/header_c11.c" -o "$work/header_c11.o"
"$CXX" -std=c++17 $warnings -I"$include" -c "$here/header_cpp17.cpp" -o "$work/header_cpp17.o"

# Every function of the header is called by some test.
for name in $(cat "$here/../../symbols.txt"); do
    grep -qE "\b$name\(" "$here/basic.c" "$here/space.c" "$here/misuse.c" "$here/errors.c" || fail "no C test calls $name"
done

kind=${KIND:-static}
if [ "$kind" = static ] && [ ! -f "$libdir/libflexfile.a" ]; then kind=shared; fi
if [ "$kind" = static ]; then
    library=$libdir/libflexfile.a
    link="$library -lgcc_s -lutil -lrt -lpthread -lm -ldl"
else
    library=$libdir/libflexfile.so
    [ -f "$library" ] || fail "neither libflexfile.a nor libflexfile.so in $libdir; cargo build -p flex-capi makes them"
    # The loader looks for the SONAME.
    ln -s "$library" "$work/libflexfile.so.0"
    link="-L$libdir -lflexfile -lpthread -Wl,-rpath,$work"
fi

echo 'int main(void) { return 0; }' >"$work/probe.c"
runner=
if "$CC" -fsanitize=address,undefined "$work/probe.c" -o "$work/probe" 2>/dev/null && "$work/probe"; then
    flags="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
    how="AddressSanitizer and UndefinedBehaviorSanitizer"
elif command -v valgrind >/dev/null; then
    flags=
    runner="valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite"
    how="valgrind (this compiler has no sanitizers)"
else
    flags=
    how="NEITHER sanitizers NOR valgrind: memory errors are not looked for; install libasan or valgrind"
fi
hooks=
if nm "$library" 2>/dev/null | grep -q ' T flexfile_test_panic$'; then
    hooks=-DFLEXFILE_TEST_HOOKS
else
    echo "the library was built without the feature test_hooks: the panic test is left out"
fi
echo "tests: $kind library, $how"

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
export RUST_BACKTRACE=0
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
failed=0
for test in basic space misuse threads errors survive; do
    # shellcheck disable=SC2086 # lists of flags
    "$CC" -std=c11 -D_GNU_SOURCE -g -O1 $warnings $flags $hooks -I"$include" "$here/$test.c" -o "$work/$test" $link
    mkdir "$work/$test.d"
    # A test that hangs is a failure, not a wait for ever.
    # shellcheck disable=SC2086
    if timeout 300 $runner "$work/$test" "$work/$test.d"; then
        echo "ok      $test"
    else
        echo "FAILED  $test"
        failed=1
    fi
done
exit $failed
