#!/usr/bin/env python3
"""man_page_test.py PROGRAM PAGE: the page has every option that the program lists for --help, and groff has no complaints."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

program, page = sys.argv[1:]
text = pathlib.Path(page).read_text()
plain = text.replace(r"\-", "-").replace(r"\/", "").replace(r"\,", "")
listed = subprocess.run([program, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
options = set(re.findall(r"^ +(?:-\w,)?(--[a-z][\w-]*)", listed, re.MULTILINE))
wrong = [f"{page} has nothing on {option}" for option in sorted(options) if not re.search(rf"{option}\b", plain)]
wrong += [f"{page} has no section {name}" for name in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", '"SEE ALSO"')
          if f".SH {name}\n" not in text]
name = os.path.basename(program)
wrong += [f"{page} does not say \"{name} \\- ...\" under NAME"] if rf"{name} \- " not in text else []
if shutil.which("groff"):
    complaints = subprocess.run(["groff", "-man", "-Tutf8", "-wall", "-z", page], stderr=subprocess.PIPE, text=True).stderr
    wrong += [complaints] if complaints else []
print("\n".join(wrong) or f"{len(options)} options")
sys.exit(1 if wrong or not options else 0)
