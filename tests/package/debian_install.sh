#!/bin/sh
# debian_install.sh WORK SOURCE, in a mount namespace of its own: installs WORK/debs/*.deb, uses them, and removes them, on this
# machine's files with all changes in memory. Ends with 77 where there can be no such copy.
set -eu
work=$1 source=$2
export work source

mkdir "$work/copy"
mount -t tmpfs none "$work/copy" 2>/dev/null || exit 77
cd "$work/copy"
mkdir changes aside root
mount -t overlay overlay -o lowerdir=/,upperdir=changes,workdir=aside root 2>/dev/null || exit 77
mount -t proc none root/proc
mount --rbind /dev root/dev
for file in /etc/resolv.conf /etc/hosts; do cat $file >"root$file"; done # they are mounts of their own in a container

exec chroot root sh -eu <<'END_OF_COPY'
fail() { echo "failed: $*" >&2; exit 1; }
cd "$work"
if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ./debs/*.deb >log 2>&1; then
  tail -n 3 log
  echo "apt-get cannot fetch what the packages depend on: going on without it"
  dpkg --force-depends -i debs/*.deb >log 2>&1 || { cat log; fail "dpkg -i"; }
fi
[ "$(dpkg -S "$(command -v tacc_bench)")" = 'tacc-tools: /usr/bin/tacc_bench' ] || fail "another tacc_bench comes first"
cc "$source/examples/allreduce.c" $(pkg-config --cflags --libs tacc) -o installed
./installed 2 | tee output
[ "$(grep -c 'of 2: the sum of all ranks is 1$' output)" = 2 ] || fail "not 2 ranks with the sum 1"
tacc_bench allreduce --size 64K --iters 20 --ranks 2 | grep '^# Out of bounds values : 0 OK' || fail "tacc_bench"
if command -v cmake >/dev/null && command -v make >/dev/null; then
  mkdir program
  cp "$source/tests/package/consumer/consumer.cpp" program
  printf 'cmake_minimum_required(VERSION 3.13)\nproject(program CXX)\nset(CMAKE_CXX_STANDARD 20)\nfind_package(tacc REQUIRED)\n%s\n%s\n' \
    'add_executable(program consumer.cpp)' 'target_link_libraries(program tacc::tacc)' >program/CMakeLists.txt
  { cmake -S program -B program/build && cmake --build program/build; } >log 2>&1 || { cat log; fail "cmake"; }
  program/build/program
fi
dpkg --purge tacc-mpi tacc-tools libtacc-dev libtacc0 >log 2>&1 || { cat log; fail "dpkg --purge"; }
! ldconfig -p | grep libtacc || fail "the linker still knows the library"
sed 's|^|/|' files | while read -r file; do [ ! -e "$file" ] || fail "$file is still there"; done
END_OF_COPY
