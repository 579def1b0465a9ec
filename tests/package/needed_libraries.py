#!/usr/bin/env python3
"""needed_libraries.py READELF LIBRARY [ALSO...]: what the library brings into every program is small.

It needs the C and C++ libraries, hwloc, and ALSO, what this build could not make part of it; all else is loaded when it is used: so a
program starts where that is not installed, and loading takes little time.
"""
import re
import subprocess
import sys

EXPECTED = {"libc", "libdl", "libgcc_s", "libhwloc", "libm", "libstdc++", "ld-linux-x86-64", "ld-linux-aarch64"}
ON_DEMAND = {"libucp", "libucs", "libuct", "libfabric", "libibnetdisc", "libibmad", "libyaml-0", "libopenblas", "libsimgrid", "libpmix",
             "libxml2", "libmpich", "libmpi"}
MOST_SECONDS = 0.1  # libfabric alone takes twice as long
LOADING = """
import ctypes, sys, time
before = time.perf_counter()
ctypes.CDLL(sys.argv[1])
print(time.perf_counter() - before)
print(*sorted({line.split("/")[-1].split(".so")[0] for line in open("/proc/self/maps") if ".so" in line}))
"""


def load(library):
    """In a new process: the seconds that it takes, and all libraries that are there then."""
    command = [sys.executable, "-c", LOADING, library]
    seconds, names = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return float(seconds), set(names.split())


def main():
    readelf, library, *also = sys.argv[1:]
    expected = EXPECTED | set(also)
    output = subprocess.run([readelf, "-d", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*?)\.so", output))
    # A busy machine can only make it slower.
    loads = [load(library) for _ in range(9)]
    least = min(seconds for seconds, _ in loads)
    # OpenBLAS's files are called libopenblas-r0.3.21.so, or with a p for threads.
    loaded = {re.sub(r"p?-r[\d.]+$", "", name) for name in loads[0][1]} & ON_DEMAND
    print(f"needs {', '.join(sorted(needed))}; loading takes {1e3 * least:.1f} ms")
    for name in sorted(needed - expected):
        print(f"{name} is loaded into every program; load it where it is used (core/loaded_library.hpp), or make it part of the library")
    for name in sorted(loaded):
        print(f"{name} is loaded at the start of every program; load it where it is used")
    if least > MOST_SECONDS:
        print(f"loading takes more than {1e3 * MOST_SECONDS:.0f} ms")
    return 1 if not needed or needed - expected or loaded or least > MOST_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
