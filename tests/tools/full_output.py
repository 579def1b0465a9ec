#!/usr/bin/env python3
"""full_output.py PROGRAM...: a program whose standard output cannot be written ends with an error that says so, whether that is
noticed at once or when it ends, and with none where it can. What is to be written besides is tried before anything is measured or
played, and "-" is no file."""
import os
import subprocess
import sys
import tempfile

TOPOLOGY = """hosts = "n[1-4]"
[[level]]
latency = "2 us"
"""


def commands(folder):
    topology = os.path.join(folder, "topology.toml")
    with open(topology, "w") as file:
        file.write(TOPOLOGY)
    return {
        "tacc_info": [[], ["--json"], ["--version"]],
        "tacc_plan": [["list"], ["--help"]],
        "tacc_topo": [["--file", topology], ["--file", topology, "--json"], ["--sources"], ["--help"]],
        "tacc_bench": [["allreduce", "--size", "8"], ["conv", "--help"], ["--version"]],
        "tacc_sim": [["--help"]],
    }


ONE_RANK = {"RANK": "0", "WORLD_SIZE": "1", "TACC_RENDEZVOUS": "127.0.0.1:29417", "TACC_JOB_SECRET": "of this test"}
BESIDES = {  # what writes a file too, and in which environment
    "tacc_bench": lambda folder: [({}, ["allreduce", "--size", "8"]), (ONE_RANK, ["easgd", "--launched"])],
    "tacc_sim": lambda folder: [({}, ["--topology", os.path.join(folder, "topology.toml"), "--ranks", "4", "--size", "8"])],
}


def run(command, output, variables=None):
    with open(output, "w") as file:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, text=True, timeout=100,
                              env=dict(os.environ, **(variables or {})))
    return done.returncode, done.stderr


def refused(command):
    """How it ends where its complaint cannot be written: on a full file system, and without standard error."""
    with open("/dev/full", "w") as full:
        first = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=full, stderr=full, timeout=100).returncode
    shell = ["sh", "-c", '"$@" <&- >&- 2>&-', "sh"]
    return first, subprocess.run(shell + command, timeout=100).returncode


def main():
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        known = commands(folder)
        for program in sys.argv[1:]:
            name = os.path.basename(program)
            for arguments in known[name]:
                command = [program] + arguments
                written = os.path.join(folder, "written")
                status, error = run(command, written)
                if status != 0 or os.path.getsize(written) == 0:
                    failures.append(f"{name} {arguments}: {status}, {os.path.getsize(written)} bytes, {error}")
                status, error = run(command, "/dev/full")
                if status <= 0 or name not in error or "write" not in error:
                    failures.append(f"{name} {arguments} > /dev/full: {status}, {error!r}")
            for arguments in known[name] + [["--no-such-option"], ["--file", "/no/such/file"]]:
                statuses = refused([program] + arguments)
                if any(status not in (1, 2) for status in statuses):
                    failures.append(f"{name} {arguments}, whose complaint cannot be written: {statuses}")
            for variables, arguments in BESIDES.get(name, lambda folder: [])(folder):
                for file, said in (("/no/such/folder/all", "cannot write /no/such/folder/all"), ("-", "cannot write -: ")):
                    status, error = run([program] + arguments + ["--json", file], written, variables)
                    if status not in (1, 2) or os.path.getsize(written) != 0 or said not in error or os.path.exists("-"):
                        failures.append(f"{name} {arguments} --json {file}: {status}, {os.path.getsize(written)} bytes, {error!r}")
            if name == "tacc_sim":
                status, error = run([program, "--topology", "any", "--ranks", "4", "--inside", "--json", "any"], written)
                if status != 2 or "--json excludes --inside" not in error:
                    failures.append(f"{name} --inside --json: {status}, {error!r}")
    print("\n".join(failures) or "all right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
