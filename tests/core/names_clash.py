#!/usr/bin/env python3
"""Puts what tools/check_names refuses into a copy of the sources, one at a time, and expects a sentence that names it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent.parent
# What is wrong, where, what is added behind what, and what the sentence has to name.
clashes = [
    ("two types of one name in headers", "src/core/log.hpp", "namespace tacc {\n", "struct PlanRequest {};\n", ("PlanRequest", "plan.hpp")),
    ("a source's own type called as a header's", "src/core/log.cpp", "namespace {\n", "class Plan {\n};\n", ("Plan ", "plan.hpp")),
    ("a default among collectives", "src/algorithms/tree.cpp", "switch (request.collective) {\n", "    default:\n",
     ("tree.cpp", "default")),
    ("a default among the bench's collectives", "bench/contestants/tacc_contestant.cpp", "switch (t.collective->kind) {\n",
     "    default:\n", ("tacc_contestant.cpp", "default")),
]

failed = 0
with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder)
    for path in ("src", "bench", "tools", "plugins"):
        shutil.copytree(root / path, copy / path)

    def check():
        return subprocess.run([sys.executable, copy / "tools/check_names"], capture_output=True, text=True, check=False)

    whole = check()
    if whole.returncode != 0:
        print(f"with nothing put in: {whole.stdout}{whole.stderr}")
        failed += 1
    for what, path, behind, added, wanted in clashes:
        before = (copy / path).read_text()
        after = before.replace(behind, behind + added, 1)
        (copy / path).write_text(after)
        said = check()
        (copy / path).write_text(before)
        if after == before or said.returncode == 0 or not any(all(word in line for word in wanted) for line in said.stdout.split("\n")):
            print(f"{what}, in {path}: no sentence names {wanted}:\n{said.stdout}{said.stderr}")
            failed += 1
print(f"{len(clashes)} put in, {failed} not told")
sys.exit(1 if failed else 0)
