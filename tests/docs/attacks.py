#!/usr/bin/python3
"""Checks the tests that docs/attacks.md names: each row has one, and each exists.

usage: attacks.py WORKSPACE

A row's last cell names labels in backticks, `//rpc:tls_test`, and after a label the cases in it,
`TlsTest.EachRoleHasItsCalls`. A label is a target of the folder's BUILD.bazel. A case is a TEST,
TEST_F or TEST_P of one of the folder's sources that the target has.

Prints PAGE:LINE and what is missing; exit status 1 then.
"""
import pathlib
import re
import sys

PAGE = "docs/attacks.md"
CODE = re.compile(r"`([^`]+)`")
LABEL = re.compile(r"//([\w/]*):(\w+)")
CASE = re.compile(r"(\w+)\.(\w+)")


def target(build, name):
    """The text of a target in a BUILD file; None if there is none."""
    match = re.search(rf"^\w+\(\n(?:    .*\n)*?    name = \"{name}\",\n(?:    .*\n)*?\)", build, re.MULTILINE)
    return match and match[0]


def sources(folder, name, text):
    """The texts of the target's sources. kiln_test has NAME.cc unless it says otherwise."""
    files = re.findall(r'"([\w/.]+\.cc)"', text) or [f"{name}.cc"]
    return [path.read_text() for path in (folder / file for file in files) if path.exists()]


def missing_in_cell(root, cell):
    """What a cell names that does not exist."""
    found = None
    for word in CODE.findall(cell):
        label, case = LABEL.fullmatch(word), CASE.fullmatch(word)
        if label:
            folder = root / label[1]
            build = folder / "BUILD.bazel"
            text = target(build.read_text(), label[2]) if build.exists() else None
            found = None if text is None else sources(folder, label[2], text)
            if text is None:
                yield word
        elif case and found is not None:
            declared = re.compile(rf"TEST(?:_F|_P)?\({case[1]},\s*{case[2]}\)")
            if not any(declared.search(source) for source in found):
                yield word
    if not any(LABEL.fullmatch(word) for word in CODE.findall(cell)):
        yield "a test"


def missing(root, page):
    """Pairs of a line number and what is missing there."""
    lines = page.splitlines()
    for number, line in enumerate(lines, 1):
        is_row = line.startswith("|") and not line.startswith("|---")
        is_head = number < len(lines) and lines[number].startswith("|---")
        if is_row and not is_head:
            yield from ((number, what) for what in missing_in_cell(root, line.split("|")[-2]))


def main(root):
    found = list(missing(root, (root / PAGE).read_text()))
    for number, what in found:
        print(f"{PAGE}:{number}: there is no {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
