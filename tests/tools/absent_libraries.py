#!/usr/bin/env python3
"""absent_libraries.py TACC_INFO: where a library that is loaded when it is needed cannot be, tacc_info says so in that library's line,
and everything else as ever."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def tell(program, folder):
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    return json.loads(subprocess.run([program, "--json"], env=environment, stdout=subprocess.PIPE, check=True, timeout=60).stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        whole = tell(sys.argv[1], folder)
        for file in ("libucp.so.0", "libfabric.so.1"):
            pathlib.Path(folder, file).touch()  # no library
        lacking = tell(sys.argv[1], folder)
    failures = []
    for before, after in zip(whole["transports"], lacking["transports"]):
        if after == before:
            continue
        if before["name"] not in ("ucx", "ofi") or not after["state"].startswith("of no use here: lib"):
            failures.append(f"{before} became {after}")
    differing = [key for key in whole if whole[key] != lacking[key] and key not in ("transports", "environment")]
    built = [kind["name"] for kind in whole["transports"] if kind["built"] and kind["name"] in ("ucx", "ofi")]
    for kind in lacking["transports"]:
        if kind["name"] in built and "cannot be loaded" not in kind["state"]:
            failures.append(f"nothing says that the library is missing: {kind}")
    if not built:
        print("skipped: this build has neither ucx nor ofi")
        return 77
    print("\n".join(failures + differing) or f"all right: {', '.join(built)}")
    return 1 if failures or differing else 0


if __name__ == "__main__":
    sys.exit(main())
