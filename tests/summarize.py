#!/usr/bin/env python3
"""Prints `N passed, N failed[, N skipped]` for the last `meson test` of each build directory named, as the last line.

GoogleTest programs count case by case, from the XML that each leaves in the build directory; other tests count as one.
A program that died, or ran out of time, before it could report counts as one failure, and so does a file race.PROCESS in
which ThreadSanitizer reports something, and a directory in which nothing ran. That the sanitizer itself had no memory is no report:
tests take it away. Ends with 1 when anything failed.
"""
import collections
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def count(build):
    total = collections.Counter()
    log = build / "meson-logs" / "testlog.json"
    for line in log.read_text().splitlines() if log.exists() else []:
        test = json.loads(line)
        name = test["name"].split(" / ")[-1]
        report = build / f"{name}.xml"
        cases = collections.Counter()
        if report.exists():
            cases.update(outcome(case) for case in ElementTree.parse(report).iter("testcase"))
        result = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(test["result"], "failed")
        if not cases or (result == "failed" and not cases["failed"]):
            cases[result] += 1
        if cases["failed"]:
            print(f"failed: {name}" + (f" in {build}" if len(sys.argv) > 2 else ""))
        total += cases
    for report in sorted(build.glob("race.*")):
        if "WARNING: ThreadSanitizer" not in report.read_text(errors="replace"):
            continue
        print(f"failed: a race, see {report}")
        total["failed"] += 1
    if not total:
        print(f"failed: nothing ran in {build}")
        total["failed"] += 1
    return total


def main():
    total = sum((count(pathlib.Path(build)) for build in sys.argv[1:]), collections.Counter())
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
