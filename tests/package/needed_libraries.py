#!/usr/bin/env python3
"""needed_libraries.py READELF LIBRARY: what the library brings into every program is small.

It needs these libraries and no others, as all else is loaded when it is used, and loading it takes little time.
"""
import re
import subprocess
import sys

EXPECTED = {"libc", "libdl", "libfmt", "libgcc_s", "libhwloc", "libhwy", "libm", "libsodium", "libstdc++",
            "ld-linux-x86-64", "ld-linux-aarch64"}
MOST_SECONDS = 0.1  # libfabric alone takes twice as long
LOADING = """
import ctypes, sys, time
before = time.perf_counter()
ctypes.CDLL(sys.argv[1])
print(time.perf_counter() - before)
"""


def seconds(library):
    """To load it in a new process."""
    command = [sys.executable, "-c", LOADING, library]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    readelf, library = sys.argv[1:]
    output = subprocess.run([readelf, "-d", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*?)\.so", output))
    # A busy machine can only make it slower.
    least = min(seconds(library) for _ in range(9))
    print(f"needs {', '.join(sorted(needed))}; loading takes {1e3 * least:.1f} ms")
    for name in sorted(needed - EXPECTED):
        print(f"{name} is loaded into every program; load it where it is used (core/loaded_library.hpp)")
    if least > MOST_SECONDS:
        print(f"loading takes more than {1e3 * MOST_SECONDS:.0f} ms")
    return 1 if not needed or needed - EXPECTED or least > MOST_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
