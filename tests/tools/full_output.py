#!/usr/bin/env python3
"""full_output.py PROGRAM...: a program whose standard output cannot be written ends with an error that says so, whether that is
noticed at once or when it ends, and with none where it can. What is to be written besides is tried before anything is measured or
played, and "-" is no file."""
import os
import socket
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


CANNOT_WRITE = ("cannot write /dev/null/all", "/dev/null/all cannot be written")


def one_rank():
    """Variables of a job of one rank, with a port that nobody has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    return {"RANK": "0", "WORLD_SIZE": "1", "TACC_RENDEZVOUS": place, "TACC_JOB_SECRET": "of this test"}


BESIDES = {  # what writes a file too: in which environment, and by which option
    "tacc_bench": lambda topology: [({}, ["allreduce", "--size", "8"], "--json"), (one_rank(), ["easgd", "--launched"], "--json")],
    "tacc_plan": lambda topology: [({}, ["show", "--collective", "allreduce", "--algorithm", "ring", "--ranks", "4"], "--svg")],
    "tacc_sim": lambda topology: [({}, ["--topology", topology, "--ranks", "4", "--size", "8"], "--json")],
    "tacc_topo": lambda topology: [({}, ["--file", topology], "--svg"), ({}, ["--file", topology], "--toml"),
                                   (one_rank(), ["--probe"], "--toml"), (one_rank(), ["--probe"], "--svg")],
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
            for variables, arguments, option in BESIDES.get(name, lambda topology: [])(os.path.join(folder, "topology.toml")):
                for file, said in (("/dev/null/all", CANNOT_WRITE), ("-", ("cannot write -: ",))):
                    status, error = run([program] + arguments + [option, file], written, variables)
                    told = any(text in error for text in said)
                    if status not in (1, 2) or os.path.getsize(written) != 0 or not told or os.path.exists("-"):
                        failures.append(f"{name} {arguments} {option} {file}: {status}, {os.path.getsize(written)} bytes, {error!r}")
            if name == "tacc_sim":
                status, error = run([program, "--topology", "any", "--ranks", "4", "--inside", "--json", "any"], written)
                if status != 2 or "--json excludes --inside" not in error:
                    failures.append(f"{name} --inside --json: {status}, {error!r}")
    print("\n".join(failures) or "all right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
