#!/bin/sh
# debian_test.sh BUILD SOURCE VERSION: makes the Debian packages, looks at what is in them, unpacks them into an empty folder and
# works from there; and where this user may, installs and removes them on a copy of this machine's files that is thrown away.
set -eu
build=$1 source=$2 version=$3
unset LD_LIBRARY_PATH # Meson's, which would have programs take the library of the build folder

fail() { echo "failed: $*" >&2; exit 1; }
for program in dpkg-deb dpkg-shlibdeps pkg-config cc; do
  command -v $program >/dev/null || { echo "skipped: there is no $program here"; exit 77; }
done
meson introspect "$build" --buildoptions | tr '{' '\n' | grep '"pkgconfig.relocatable"' | grep -q true ||
  { echo "skipped: tacc.pc of this build folder cannot be moved (meson configure -Dpkgconfig.relocatable=true)"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DEBFULLNAME='A Tester' DEBEMAIL=tester@example.org "$source/tools/package_debian" --no-rebuild "$build" "$work/debs" >"$work/made"
[ "$(wc -l <"$work/made")" = 4 ] || fail "not 4 packages: $(cat "$work/made")"
deb() { echo "$work/debs/$1_${version}_$(dpkg --print-architecture).deb"; }
field() { dpkg-deb -f "$(deb "$1")" "$2"; }

for package in libtacc0 libtacc-dev tacc-tools tacc-mpi; do
  [ "$(field $package Version)" = "$version" ] || fail "$package has version $(field $package Version)"
  [ "$(field $package Maintainer)" = 'A Tester <tester@example.org>' ] || fail "maintainer of $package"
  dpkg-deb --fsys-tarfile "$(deb $package)" | tar -t | grep -v '/$' >>"$work/files"
  mkdir -p "$work/root" && dpkg-deb -x "$(deb $package)" "$work/root"
  (cd "$work/root" && dpkg-deb --ctrl-tarfile "$(deb $package)" | tar -xO ./md5sums | md5sum --quiet -c) || fail "sums of $package"
done
[ -z "$(sort "$work/files" | uniq -d)" ] || fail "in two packages: $(sort "$work/files" | uniq -d)"
meson introspect "$build" --installed | python3 -c '
import json, os, sys
print("\n".join(sorted(os.path.basename(path) for path in json.load(sys.stdin).values())))' >"$work/wanted"
while read -r name; do
  grep -qE "/$name(\.gz)?\$" "$work/files" || fail "meson installs $name, and no package has it"
done <"$work/wanted"
! dpkg-deb -c "$(deb libtacc0)" | grep -E '/usr/(bin|include|libexec)/.' ||
  fail "libtacc0 has what belongs to another package; give it an install_tag in its meson.build"
for package in libtacc0 tacc-mpi; do
  dpkg-deb --ctrl-tarfile "$(deb $package)" | tar -xO ./triggers | grep -q ldconfig || fail "$package leaves the linker's cache as it was"
  [ "$(field $package Description | head -n 1 | wc -c)" -le 80 ] || fail "the first line on $package is longer than tools show"
done
for dependency in libc6 libstdc++6; do
  field libtacc0 Depends | grep -qF $dependency || fail "libtacc0 does not depend on $dependency: $(field libtacc0 Depends)"
done
# What is part of the library is no dependency; of which version it was made is told.
for library in fmt sodium; do
  field libtacc0 Depends | grep -q "lib$library" || field libtacc0 Built-Using | grep -q "$library.* (= " ||
    fail "libtacc0 neither depends on $library nor says with which it was built: $(field libtacc0 Built-Using)"
done
field tacc-tools Depends | grep -qF "libtacc0 (>= $version)" || fail "tacc-tools depends on $(field tacc-tools Depends)"
for mpi in libmpich libopenmpi; do
  ! field tacc-mpi Depends | grep -q $mpi || fail "tacc-mpi depends on an MPI: $(field tacc-mpi Depends)"
done
! field tacc-tools Depends | grep -q mpi || fail "tacc-tools depends on an MPI: $(field tacc-tools Depends)"
[ "$(field libtacc-dev Depends)" = "libtacc0 (= $version)" ] || fail "libtacc-dev depends on $(field libtacc-dev Depends)"

# use ROOT CC_FLAGS...: a program that is compiled against what is in the root, and the bench.
use() {
  root=$1 && shift
  cc "$source/examples/allreduce.c" "$@" -o "$work/allreduce"
  ldd "$work/allreduce" | grep "libtacc.so" | grep -qF "=> $root/" || fail "another library: $(ldd "$work/allreduce")"
  "$work/allreduce" 2 | tee "$work/output"
  [ "$(grep -c 'of 2: the sum of all ranks is 1$' "$work/output")" = 2 ] || fail "not 2 ranks with the sum 1"
  ldd "$root/usr/bin/tacc_bench" | grep "libtacc.so" | grep -qF "$root/" || fail "tacc_bench takes another library"
  "$root/usr/bin/tacc_bench" allreduce --size 64K --iters 20 --ranks 2 | tee "$work/output"
  grep -q '^# Out of bounds values : 0 OK' "$work/output" || fail "tacc_bench of $root"
}

export PKG_CONFIG_PATH="$(dirname "$(find "$work/root" -name tacc.pc)")"
echo "== unpacked into an empty folder"
use "$work/root" $(pkg-config --cflags --libs tacc) -Wl,-rpath,"$(pkg-config --variable=libdir tacc)"
gzip -dc "$work/root/usr/share/man/man1/tacc_bench.1.gz" | grep -q minbytes || fail "no page on tacc_bench"
unset PKG_CONFIG_PATH

echo "== installed on a copy of this machine"
status=77
# The copy is without what is mounted over this machine's files, and the source may be.
for file in examples/allreduce.c tests/package/consumer/consumer.cpp; do
  mkdir -p "$work/source/$(dirname $file)" && cp "$source/$file" "$work/source/$file"
done
if unshare --mount true 2>/dev/null; then
  status=0
  unshare --mount "$source/tests/package/debian_install.sh" "$work" "$work/source" || status=$?
fi
case $status in
  0) ;;
  77) echo "left out: $(id -un) can have no copy here" ;;
  *) fail "debian_install.sh ended with $status" ;;
esac
