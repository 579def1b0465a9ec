#!/usr/bin/env python3
"""Leaves out each place that a registry wants, one at a time, and expects that tools/check_registries says in a sentence what is
missing, and where. The places are those of CONTRIBUTING.md that neither the compiler nor another test notices."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent.parent
read = ("src", "docs", "include", "bench/worker", "tests/comm/launch_test.cpp", "tools/check_registries")


def first(path, pattern):
    return re.search(pattern, (root / path).read_text(), re.MULTILINE)[1]


def rows(path, pattern):
    """Without the lines that match."""
    return path, lambda text: "\n".join(line for line in text.split("\n") if not re.search(pattern, line))


def without(path, pattern, instead=""):
    return path, lambda text: re.sub(pattern, instead, text, flags=re.MULTILINE)


algorithms = "docs/understand/algorithms.md"
# What is left out, where, how, and what the sentence has to name.
omissions = [
    ("an algorithm's section", *rows(algorithms, r"^## swing$"), ("swing", "section")),
    ("an algorithm's line in the catalogue", *rows("src/algorithms/catalogue.hpp", r"^  each\(swing\)"), ("swing", "TACC_ALGORITHMS")),
    ("an algorithm's line in the build", *rows("src/algorithms/meson.build", r"'swing.cpp'"), ("src/algorithms/swing.cpp", "meson.build")),
    ("a collective's row in the bench", *without("bench/worker/collectives.cpp", '"exscan"', "nothing"), ("exscan", "tacc_bench")),
    ("a collective's function", *without("include/tacc/tacc.h", r"\btaccExscan\b", "taccOther"), ("exscan", "function")),
    ("a collective beside MPI's", *without("docs/use/mpi.md", "`taccExscan`", ""), ("exscan", "MPI")),
    ("a transport's row", *rows("docs/understand/transports.md", r"^\| `?tcp`?"), ("tcp", "row")),
    ("a source's row", *rows("docs/understand/topology.md", r"^\| [^|]*\bslurm\b[^|]* \|"), ("slurm", "table of sources")),
    ("a source's word", *without("src/core/topology_sources.hpp", r"row\(slurm\)", ""), ("the source slurm", "the table")),
    ("a transport's row in the table", *without("src/core/transports.hpp", r"row\(mpi,", "other("), ("the transport Mpi", "the table")),
    ("a source's line in the build", *rows("src/topology/meson.build", r"'sources/source_slurm.cpp'"), ("source_slurm.cpp", "meson.build")),
    ("a transport's line in the build", *rows("src/transports/meson.build", r"'tcp/tcp_transport.cpp'"),
     ("tcp_transport.cpp", "meson.build")),
    ("a launcher's case", *without("tests/comm/launch_test.cpp", r"\bTORCHELASTIC_RUN_ID\b|\bSLURM_PROCID\b", "NOTHING"), ("case",)),
    ("a launcher's section", *without("docs/use/running.md", "torchrun", "it"), ("torchrun", "section")),
    ("an instruction set's word", *without("docs/use/environment.md", r"\bavx512_spr\b|\bavx3_spr\b|\bavx512\b|\bavx2\b", "x"),
     ("the instruction set", "TACC_ISA")),
    ("an instruction set's kernels", *rows("src/compute/simd/kernel_sets.hpp", r"^  each\(avx512,"), ("avx512", "kernels")),
    ("an instruction set's flags", *without("src/compute/conv/meson.build", "'avx512': avx512", ""), ("avx512", "flags")),
    ("a convolution algorithm's row", *rows("docs/understand/compute.md", r"^\| [^|]*\bproduct-scatter\b[^|]* \|"),
     ("product-scatter", "table of algorithms")),
    ("a convolution algorithm's line in the build", *rows("src/compute/conv/meson.build", r"'algorithms/product_scatter.cpp'"),
     ("product_scatter.cpp", "meson.build")),
    ("a variable's row", *rows("docs/use/environment.md", r"^\| `TACC_ISA`"), ("TACC_ISA", "row")),
]

failed = 0
with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder)
    for path in read:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (root / path).is_dir() else shutil.copy)(root / path, copy / path)

    def check():
        return subprocess.run([sys.executable, copy / "tools/check_registries"], capture_output=True, text=True, check=False)

    whole = check()
    if whole.returncode != 0:
        print(f"with nothing left out: {whole.stdout}{whole.stderr}")
        failed += 1
    for what, path, change, wanted in omissions:
        before = (copy / path).read_text()
        after = change(before)
        (copy / path).write_text(after)
        said = check()
        (copy / path).write_text(before)
        found = [line for line in said.stdout.split("\n") if all(word in line for word in wanted)]
        if after == before or said.returncode == 0 or not found:
            print(f"{what} was left out of {path}"
                  f"{' (nothing was)' if after == before else ''}, and no sentence names {wanted}:\n{said.stdout}{said.stderr}")
            failed += 1
print(f"{len(omissions)} places left out, {failed} not told")
sys.exit(1 if failed else 0)
