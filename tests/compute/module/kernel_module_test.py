#!/usr/bin/env python3
"""kernel_module_test.py LIBRARY MODULE PROGRAM COMPILER: libtacc_kernels.so is found beside libtacc.so, and nothing else is taken for
it.

PROGRAM convolves by tacc/compute.h. It runs with copies of the library in a folder of their own.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

# Of the module's name, but with numbers that no version has.
FALSE_MODULE = "const unsigned long taccKernelModule[256] = {1};\n"


class KernelModule(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.library = self.folder / f"libtacc.so.{module.suffix[1:]}"
        self.module = self.folder / module.name
        shutil.copy(library, self.library)

    def run_program(self):
        environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        environment["LD_PRELOAD"] = str(self.library)  # the program knows where the build's library is
        return subprocess.run([program], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def test_beside_the_library(self):
        shutil.copy(module, self.module)
        ran = self.run_program()
        self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_beside_what_a_link_leads_to(self):
        shutil.copy(module, self.module)
        target, self.library = self.library, self.folder / "elsewhere" / self.library.name
        self.library.parent.mkdir()
        self.library.symlink_to(target)
        ran = self.run_program()
        self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_not_there(self):
        ran = self.run_program()
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn(f"{module.name} cannot be loaded", ran.stdout)
        self.assertIn("belongs beside libtacc.so", ran.stdout)

    def test_of_another_version(self):
        subprocess.run([*compiler, "-shared", "-fPIC", "-o", self.module, "-x", "c", "-"], input=FALSE_MODULE, text=True, check=True)
        ran = self.run_program()
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn(f"{self.module} is of another version than libtacc.so", ran.stdout)

    def test_something_else(self):
        subprocess.run([*compiler, "-shared", "-fPIC", "-o", self.module, "-x", "c", "-"], input="int x;\n", text=True, check=True)
        ran = self.run_program()
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn(f"{self.module} has no taccKernelModule", ran.stdout)

    def test_no_library_at_all(self):
        self.module.write_text("half a file")
        ran = self.run_program()
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn(f"{self.module} cannot be loaded", ran.stdout)


if __name__ == "__main__":
    library, module, program = (pathlib.Path(one).resolve() for one in sys.argv[1:4])
    compiler = sys.argv[4:]
    unittest.main(argv=sys.argv[:1])
