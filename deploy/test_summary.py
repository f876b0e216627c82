#!/usr/bin/python3
"""Prints 'N passed, N failed, N skipped' for the test cases of the last `bazel test`.

bazel's own closing lines count targets, cached ones included; this counts the cases in the
test.xml of each target (a cached target's too). A target that left no cases counts as one.
"""
import pathlib
import sys
import xml.etree.ElementTree as ET

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "bazel-testlogs")
passed = failed = skipped = 0
for path in sorted(root.resolve().rglob("test.xml")):
    suites = ET.parse(path).getroot()
    cases = suites.findall(".//testcase")
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            skipped += 1
        else:
            passed += 1
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed else 0)
