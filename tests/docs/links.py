#!/usr/bin/python3
"""Checks the links of the documentation: each relative one names a file that is there, and a heading of it.

usage: links.py FILE.md...

Prints FILE:LINE and what is wrong; exit status 1 then.
"""
import os
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for line in open(path, encoding="utf-8"):
        if line.startswith("#"):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
            found.add(title.replace(" ", "-"))
    return found


def problems(path):
    """What is wrong with the links of one page."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                there = os.path.join(os.path.dirname(path), name) if name else path
                if not os.path.exists(there):
                    yield f"{path}:{number}: there is no {name}"
                elif anchor and there.endswith(".md") and anchor not in anchors(there):
                    yield f"{path}:{number}: {name or path} has no heading #{anchor}"


def main(paths):
    found = [problem for path in paths for problem in problems(path)]
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
