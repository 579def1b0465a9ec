#!/usr/bin/env python3
"""exported_symbols.py NM READELF LIBRARY VERSION FOLDER: the library shows the functions of the folder's headers only.

Also that its name is that of its major version, and that the headers and the build have the same version. Prints a
sentence for everything that is wrong, and ends with 1 if something is.
"""
import pathlib
import re
import subprocess
import sys


def declared(header):
    """Names of the functions that a header's text declares with TACC_API."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header, flags=re.DOTALL)
    text = re.sub(r"^\s*#.*?(?<!\\)$", " ", text, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\bTACC_API\b[^;{(]*?\b(\w+)\s*\(", text))


def header_version(header):
    """MAJOR.MINOR.PATCH of a header's text, or None."""
    numbers = [re.search(rf"^#define TACC_{part} (\d+)\b", header, re.MULTILINE) for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(number[1] for number in numbers) if all(numbers) else None


def exported(nm_output):
    """Names in the output of nm -D --defined-only, without their versions."""
    return {line.split()[-1].split("@")[0] for line in nm_output.splitlines() if line.split()}


def wrong_symbols(declared_names, exported_names):
    return [f"{name} has TACC_API in a header, and the library does not show it; is it defined, with C linkage?"
            for name in sorted(declared_names - exported_names)] + \
           [f"the library shows {name}, which no public header declares with TACC_API; hide it (src/exported.map)"
            for name in sorted(exported_names - declared_names)]


def wrong_version(readelf_output, version, headers):
    wanted = f"libtacc.so.{version.split('.')[0]}"
    name = re.search(r"\(SONAME\).*\[(.*)\]", readelf_output)
    if not name or name[1] != wanted:
        yield f"the library calls itself {name[1] if name else 'nothing'} (SONAME); version {version} would be {wanted}"
    for path, text in headers.items():
        found = header_version(text)
        if found and found != version:
            yield f"{path} says version {found}, meson.build says {version}"
    if not any(map(header_version, headers.values())):
        yield "no header defines TACC_MAJOR, TACC_MINOR and TACC_PATCH"


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    nm, readelf, library, version, folder = sys.argv[1:]
    headers = {path: path.read_text() for path in sorted(pathlib.Path(folder).rglob("*.h*"))}
    names = set().union(*map(declared, headers.values()))
    wrong = wrong_symbols(names, exported(output_of(nm, "-D", "--defined-only", library)))
    wrong += wrong_version(output_of(readelf, "-d", library), version, headers)
    print("\n".join(wrong) or f"{len(names)} functions declared and shown, nothing else")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
