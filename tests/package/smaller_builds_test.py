#!/usr/bin/env python3
"""smaller_builds_test.py MESON NINJA SOURCES: what can be left out of a build.

The library alone asks for nothing that only programs take. Without any optional library the files that stand for these compile.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

FEATURES = ["ucx", "ofi", "hwloc", "ibnetdisc", "yaml", "simgrid", "openblas"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ends with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


class SmallerBuilds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = folder.name

    def configure(self, *options):
        run(meson, "setup", self.build, sources, "-Dtools=false", "-Dbench=false", "-Db_pch=false", *options)
        return {one["name"] for one in json.loads(run(meson, "introspect", self.build, "--dependencies"))}

    def test_the_library_alone(self):
        needed = self.configure()
        self.assertFalse(needed & {"CLI11", "nlohmann_json", "gtest", "gmock"}, needed)
        targets = {one["name"] for one in json.loads(run(meson, "introspect", self.build, "--targets"))}
        self.assertIn("tacc", targets)
        self.assertFalse({name for name in targets if name.endswith("_test") or name.startswith("tacc_bench")})

    def test_without_optional_libraries(self):
        self.configure(*(f"-D{feature}=disabled" for feature in FEATURES))
        objects = [line.split(":")[0] for line in run(ninja, "-C", self.build, "-t", "targets", "all").splitlines()
                   if "absent" in line and line.split(":")[0].endswith(".o")]
        self.assertGreaterEqual(len(objects), 3)
        run(ninja, "-C", self.build, *objects)

    def test_with_libraries_beside_it(self):
        self.configure("-Dembedded=false", *(f"-D{feature}=disabled" for feature in FEATURES))
        target = next(one for one in json.loads(run(meson, "introspect", self.build, "--targets")) if one["name"] == "tacc")
        linked = run(ninja, "-C", self.build, "-t", "commands", "-s", os.path.relpath(target["filename"][0], self.build))
        self.assertIn("fmt", linked)
        self.assertIn("sodium", linked)
        self.assertNotIn("sodium.a", linked)
        self.assertNotIn("tacc_fmt", linked)


if __name__ == "__main__":
    meson, ninja, sources = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
