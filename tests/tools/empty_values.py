#!/usr/bin/env python3
"""empty_values.py PROGRAM...: every option whose value is empty, as that of a variable which a script has not set, is refused by its
name. Those that may stand without a value are left out: they are those of which --help does not say so."""
import os
import re
import subprocess
import sys

ARGUMENTS = {  # without which a program asks for these
    "tacc_bench": [["allreduce"], ["conv"], ["gemm"]],
    "tacc_plan": [["show", "--collective", "allreduce", "--algorithm", "ring", "--ranks", "4"]],
    "tacc_sim": [["--topology", "none", "--ranks", "4"]],
}
MAY_STAND_ALONE = {("tacc_topo", "--toml")}


def options(program, arguments):
    """The options that take values, and how many."""
    words = arguments[:1] if arguments and not arguments[0].startswith("-") else []
    text = subprocess.run([program, *words, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    for found in re.finditer(r"^  (?:-\w,)?(--[\w-]+) (?:TEXT|INT|UINT|FLOAT|BOOLEAN)\S*( x (\d+))?", text, re.MULTILINE):
        yield found[1], int(found[3] or 1)


def main():
    failures = []
    tried = 0
    for program in sys.argv[1:]:
        name = os.path.basename(program)
        for arguments in ARGUMENTS.get(name, [[]]):
            for option, values in options(program, arguments):
                if (name, option) in MAY_STAND_ALONE:
                    continue
                tried += 1
                command = [program, *arguments, option, *[""] * values]
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      timeout=100)
                if done.returncode != 2 or option not in done.stderr or done.stdout:
                    failures.append(f"{name} {arguments} {option} '': {done.returncode}, {done.stdout[:200]!r}, {done.stderr!r}")
    print("\n".join(failures) or f"all right: {tried} options")
    return 0 if tried and not failures else 1


if __name__ == "__main__":
    sys.exit(main())
