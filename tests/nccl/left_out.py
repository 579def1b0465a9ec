#!/usr/bin/env python3
"""left_out.py INCLUDE DOCUMENT COMPILER...: what the document lists as left out of tacc/nccl.h does not compile.

The list is the code block after the line that says "left out:".
"""
import re
import subprocess
import sys

include, document, *compiler = sys.argv[1:]
listed = re.search(r"left out:\n\n```\n(.*?)```", open(document).read(), re.DOTALL)
if not listed:
    sys.exit(f"{document} has no code block after a line that ends with \"left out:\"")
names = listed[1].split()


def refused(names):
    """Those of the names that nothing declares."""
    source = "#include \"tacc/nccl.h\"\n" + "".join(f"void use{i}(void) {{ (void)sizeof({name}); }}\n"
                                                    for i, name in enumerate(names))
    ran = subprocess.run([*compiler, "-std=c11", "-fsyntax-only", "-I" + include, "-xc", "-"], input=source, text=True,
                         stderr=subprocess.PIPE, env={"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"})
    found = re.findall(r"'(\w+)' undeclared|undeclared identifier '(\w+)'", ran.stderr)
    return {first or second for first, second in found}


known = refused(["ncclAllReduce", "ncclFloat", "ncclNothing"])
if known != {"ncclNothing"}:
    sys.exit(f"the compiler's messages are not understood: {known} are said to be undeclared")
wrong = set(names) - refused(names)
if wrong or not names:
    sys.exit(f"{document} lists as left out what tacc/nccl.h has, or nothing: {' '.join(sorted(wrong))}")
print(f"{len(names)} names are left out and do not compile")
