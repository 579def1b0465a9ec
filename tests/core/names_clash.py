#!/usr/bin/env python3
"""Puts what tools/check_names and tools/check_joined refuse into a copy of the sources, one at a time, and expects a sentence that
names it; and what tools/check_joined has to let pass."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import shutil
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent.parent
space = "namespace {\n"
# What is wrong, where, what is added behind what, and what the sentence has to name. In the same library: engine/shm/lowering.cpp,
# engine/shm/executor.cpp and algorithms/tree.cpp.
clashes = [
    ("two types of one name in headers", "src/core/log.hpp", "namespace tacc {\n", "struct PlanRequest {};\n", ("PlanRequest", "plan.hpp")),
    ("a source's own type called as a header's", "src/core/log.cpp", "namespace {\n", "class Plan {\n};\n", ("Plan ", "plan.hpp")),
    ("a default among collectives", "src/algorithms/tree.cpp", space,
     "int number(Collective one) {\n  switch (one) {\n    case Collective::allReduce: return 1;\n    default: return 0;\n  }\n}\n",
     ("tree.cpp", "default")),
    ("a default among the bench's collectives", "bench/contestants/tacc_contestant.cpp", "switch (t.collective->kind) {\n",
     "    default:\n", ("tacc_contestant.cpp", "default")),
    ("a constant of another source", "src/engine/shm/lowering.cpp", space, "constexpr int a = 1 << 2, sourceBounceBytes = 1;\n",
     ("sourceBounceBytes", "executor.cpp")),
    ("a function of another source", "src/engine/shm/lowering.cpp", space, "bool isRemote(\n    const Place& one) noexcept {\n  return true;\n}\n",
     ("isRemote", "executor.cpp")),
    ("a function called as another's constant", "src/engine/shm/lowering.cpp", space, "template <class T>\nvoid copiedTileBytes(T) {}\n",
     ("copiedTileBytes", "executor.cpp")),
    ("a static function of another source", "src/engine/shm/lowering.cpp", "namespace tacc {\n", "static void sourceBounceBytes() {}\n",
     ("sourceBounceBytes", "executor.cpp")),
    ("an alias of another source's type", "src/engine/shm/lowering.cpp", space, "using findBlock = int;\n", ("findBlock", "executor.cpp")),
    ("a constant called as a header's function", "src/algorithms/tree.cpp", space, "constexpr int wordsOf = 1;\n", ("wordsOf", "text_file.hpp")),
    ("a header's function once more", "src/algorithms/tree.cpp", space,
     "std::vector<std::string_view> wordsOf(std::string_view theirs) { return {}; }\n", ("wordsOf", "text_file.hpp")),
    ("a header's function, hidden from others", "src/comm/probe/network_survey.cpp", space,
     "std::string nameOf(const RankIdentity& who) { return who.hostName.data(); }\n", ("nameOf", "types.hpp")),
    ("a macro of another source", "src/core/log.cpp", "#include", "#define TWICE 1\n", ("TWICE", "fork.cpp")),
]
# What two sources of one library may both have.
harmless = [
    ("one alias", "using Short = std::uint32_t;\n", "using Short = std::uint32_t;\n"),
    ("overloads", "int twice(int one) { return one; }\n", "int twice(long other) { return 0; }\n"),
    ("names of functions' insides", "int first() {\n  int inside = 0;\n  return inside;\n}\n", "int second() {\n  int inside = 0;\n  return inside;\n}\n"),
]


def load(tool, reads):
    """The tool's main(), whose function `reads` is asked again only of a file that is another."""
    loader = importlib.machinery.SourceFileLoader(tool.name, str(tool))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(tool.name, loader))
    loader.exec_module(module)
    read, known = getattr(module, reads), {}

    def remembering(path):
        text = path.read_text()
        if known.get(path, (None, None))[0] != text:
            found = read(path)
            known[path] = text, found if isinstance(found, tuple) else list(found)
        return known[path][1]

    setattr(module, reads, remembering)
    return module.main


failed = 0
with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder)
    for path in ("src", "bench", "tools", "plugins"):
        shutil.copytree(root / path, copy / path)

    # In this process, where what was read of a file is kept until the file changes.
    checks = [load(copy / "tools/check_names", "types_of"), load(copy / "tools/check_joined", "read")]

    def check():
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            is_wrong = any([run() != 0 for run in checks])
        return is_wrong, said.getvalue()

    def put(path, behind, added):
        before = (copy / path).read_text()
        after = before.replace(behind, added + behind if added.startswith("#") else behind + added, 1)
        (copy / path).write_text(after)
        return before if after != before else None

    is_wrong, said = check()
    if is_wrong:
        print(f"with nothing put in: {said}")
        failed += 1
    put("src/core/fork.cpp", "#include", "#define TWICE 1\n")
    for what, path, behind, added, wanted in clashes:
        before = put(path, behind, added)
        is_wrong, said = check()
        if before is None or not is_wrong or not any(all(word in line for word in wanted) for line in said.split("\n")):
            print(f"{what}, in {path}{' (nothing was put in)' if before is None else ''}: no sentence names {wanted}:\n{said}")
            failed += 1
        if before is not None:
            (copy / path).write_text(before)
    for what, one, other in harmless:
        before = [put(path, space, added) for path, added in (("src/engine/shm/lowering.cpp", one), ("src/engine/shm/executor.cpp", other))]
        is_wrong, said = check()
        if None in before or is_wrong:
            print(f"{what} of two sources: {said}")
            failed += 1
        for path, text in zip(("src/engine/shm/lowering.cpp", "src/engine/shm/executor.cpp"), before):
            (copy / path).write_text(text)
print(f"{len(clashes) + len(harmless)} put in, {failed} not told as they should be")
sys.exit(1 if failed else 0)
