#!/bin/sh
# installed_test.sh WAY BUILD SOURCE VERSION: installs the library into an empty folder, moves the tree elsewhere, and lets
# programs outside of this repository find it. WAY: files, pkg_config, cmake or programs. Ends with 77 where a program that it
# takes is missing.
set -eu
way=$1 build=$2 source=$3 version=$4
here=$source/tests/package
cc=${CC:-cc} cxx=${CXX:-c++}
warnings='-Wall -Wextra -Wconversion -Werror'

fail() { echo "failed: $*" >&2; exit 1; }
need() { for program; do command -v "$program" >/dev/null || { echo "skipped: there is no $program here"; exit 77; }; done; }

need meson
unset LD_LIBRARY_PATH # Meson's, which would have programs take the library of the build folder
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
meson install -C "$build" --no-rebuild --tags runtime,devel,tools --destdir "$work/staged" >"$work/log" ||
  { cat "$work/log"; fail "meson install"; }
pc=$(find "$work/staged" -name tacc.pc)
[ -n "$pc" ] || fail "no tacc.pc was installed"
prefix=$(meson introspect "$build" --buildoptions | python3 -c '
import json, sys
print(next(option["value"] for option in json.load(sys.stdin) if option["name"] == "prefix"))')
mv "$work/staged$prefix" "$work/moved" # so that nothing finds it at the place for which it was made
tree=$work/moved

# check_program PROGRAM: it runs with the library of the tree, and not with another one.
check_program() {
  ldd "$1" | grep -q "libtacc.so.${version%%.*} => $work/moved/" ||
    { ldd "$1"; fail "$1 does not take the library from $tree"; }
}

case $way in
  files)
    (cd "$source/include" && find tacc -type f | sort) >"$work/wanted"
    (cd "$tree/include" && find tacc -type f | sort) >"$work/found"
    diff "$work/wanted" "$work/found" || fail "include/ of the repository (<) and what was installed (>) differ"
    # Each header is C++, and C if it says so by its name, and needs no other before it; MPI's need MPI.
    for header in $(grep -v '/mpi' "$work/wanted"); do
      printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$work/header.cpp"
      $cxx -std=c++20 $warnings -pedantic -fopenmp -fsyntax-only -I"$tree/include" "$work/header.cpp" || fail "$header as C++"
      case $header in *.hpp) continue ;; esac
      cp "$work/header.cpp" "$work/header.c"
      $cc -std=c11 $warnings -pedantic -fopenmp -fsyntax-only -I"$tree/include" "$work/header.c" || fail "$header as C"
    done
    # What a compiler's flags leave out is the one error, and tacc.h needs it not.
    echo '#include "tacc/tacc.hpp"' >"$work/header.cpp"
    echo '#include "tacc/tacc.h"' >"$work/plain.cpp"
    for flags in -std=c++17 '-std=c++20 -fno-exceptions'; do
      $cxx $flags $warnings -fsyntax-only -I"$tree/include" "$work/plain.cpp" || fail "tacc/tacc.h with $flags"
      ! $cxx $flags -fsyntax-only -I"$tree/include" "$work/header.cpp" 2>"$work/log" || fail "tacc/tacc.hpp with $flags"
      [ "$(grep -c 'error:' "$work/log")" = 1 ] && grep -q 'error:.*include tacc/tacc.h' "$work/log" ||
        { cat "$work/log"; fail "$flags: more than one error, or none that says what to do"; }
    done
    ;;
  pkg_config)
    need pkg-config "$cc"
    export PKG_CONFIG_PATH=$(dirname "$(find "$tree" -name tacc.pc)") PKG_CONFIG_LIBDIR=
    tacc() { pkg-config $moved "$@" tacc; }
    moved= # a build folder that was made without pkgconfig.relocatable has the prefix written out
    grep -q pcfiledir "$PKG_CONFIG_PATH/tacc.pc" || moved=--define-variable=prefix=$tree
    [ "$(tacc --modversion)" = "$version" ] || fail "tacc.pc has version $(tacc --modversion), not $version"
    [ "$(tacc --static --libs-only-l | tr -d ' ')" = -ltacc ] || fail "tacc.pc wants more than -ltacc: $(tacc --static --libs)"
    $cc -std=gnu11 $warnings $(tacc --cflags) "$source/examples/allreduce.c" $(tacc --libs) \
      -Wl,-rpath,"$(tacc --variable=libdir)" -o "$work/allreduce"
    check_program "$work/allreduce"
    "$work/allreduce" 2 | tee "$work/output"
    [ "$(grep -c 'of 2: the sum of all ranks is 1$' "$work/output")" = 2 ] || fail "not 2 ranks with the sum 1"
    ;;
  cmake)
    need cmake make "$cxx"
    cmake -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_CXX_FLAGS="$warnings" \
      -DTACC_VERSION="$version" -DTACC_PACKAGE="$source/src/package" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake"; }
    cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake --build"; }
    check_program "$work/build/consumer"
    "$work/build/consumer" | tee "$work/output"
    [ "$(cat "$work/output")" = 'each of 2 ranks has the sum 3 in all 1000 places' ] || fail "another output was expected"
    find "$tree" -name 'libtacc.so.*' -exec rm {} +
    ! cmake -S "$here/consumer" -B "$work/again" -DCMAKE_PREFIX_PATH="$tree" -DTACC_VERSION="$version" >"$work/log" 2>&1 ||
      fail "cmake finds a library that has been removed"
    tr -s ' \n' ' ' <"$work/log" | grep -q 'libtacc.so.[0-9]*, and there is no such file' ||
      { cat "$work/log"; fail "cmake does not say which file is missing"; }
    ;;
  programs)
    check_program "$tree/bin/tacc_bench"
    "$tree/bin/tacc_bench" allreduce --size 4K --iters 10 --ranks 2 | tee "$work/output"
    grep -q '^# Out of bounds values : 0 OK' "$work/output" || fail "tacc_bench of the tree"
    for program in $(ls "$tree/bin"); do
      "$tree/bin/$program" --help >"$work/help" || fail "$program --help"
      [ -e "$tree/share/bash-completion/completions/$program" ] || fail "bash does not complete $program"
      [ ! -d "$tree/share/man" ] || grep -q '^\.SH NAME' "$tree/share/man/man1/$program.1" || fail "no page on $program"
    done
    ;;
  *) fail "the way is files, pkg_config, cmake or programs, not '$way'" ;;
esac
