#!/usr/bin/python3
"""Counts comments that begin with a word in place of a subject.

usage: openers.py WORKSPACE [--update] [--list FOLDER]

A comment is a block of whole lines that begin with // or #, in the files that git knows. docs/howto/write-a-comment.md
says which words are counted and what to write instead. The limits of the folders stand in tests/docs/openers.txt: a folder
without a line there has the limit 0. The exit status is 1 if a count differs from its limit: a higher count needs better
comments, a lower one a lower limit.

--update        lowers the limits to the counts; it raises none
--list FOLDER   prints the comments of a folder that are counted: path, line, text
"""
import argparse
import collections
import os
import re
import subprocess
import sys

LIMITS = os.path.join("tests", "docs", "openers.txt")
SLASHES = (".cc", ".h", ".cu", ".c", ".proto")
HASHES = (".py", ".sh", ".bazel", ".bzl")
# Sources of others, as they came.
VENDORED = re.compile(r"third_party/.*/")
OPENER = re.compile(r"(Of|Those|Who|As|By|Where|What)\b")


def comment_blocks(path, text):
    """Pairs of the line number and the first line's words of each block of whole-line comments."""
    marks = "//+" if path.endswith(SLASHES) else "#+"
    line_of_comment = re.compile(rf"\s*{marks}(?!!)\s?(.*)")
    within = False
    for number, line in enumerate(text.splitlines(), 1):
        match = line_of_comment.fullmatch(line)
        if match and not within:
            yield number, match[1]
        within = match is not None


def folder_of(path):
    """At most two folders, so that a table of all of them stays readable."""
    return "/".join(os.path.dirname(path).split("/")[:2]) or "."


def openers(path, text):
    return [(number, words) for number, words in comment_blocks(path, text) if OPENER.match(words)]


def tracked_files(root):
    """Files that git knows. Without git: all files outside of Bazel's folders."""
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True, text=True)
        return listed.stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        pass
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "bazel-"))]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return found


def count(root):
    """Per folder: the number of comments, and those that begin with such a word as (path, line, words)."""
    comments, found = collections.Counter(), collections.defaultdict(list)
    for path in sorted(tracked_files(root)):
        full = os.path.join(root, path)
        if not path.endswith(SLASHES + HASHES) or VENDORED.match(path) or not os.path.isfile(full):
            continue
        with open(full, encoding="utf-8") as file:
            text = file.read()
        comments[folder_of(path)] += sum(1 for _ in comment_blocks(path, text))
        found[folder_of(path)] += [(path, number, words) for number, words in openers(path, text)]
    return comments, found


def read_limits(text):
    return {folder: int(limit) for limit, folder in (line.split() for line in text.splitlines() if line[:1] != "#")}


def write_limits(limits):
    head = "# The most comments of a folder that may begin with Of, Those, Who, As, By, Where or What.\n"
    return head + "".join(f"{limit} {folder}\n" for folder, limit in sorted(limits.items()) if limit > 0)


def problems(counts, limits):
    for folder in sorted(set(counts) | set(limits)):
        found, limit = counts.get(folder, 0), limits.get(folder, 0)
        if found > limit:
            yield (f"{folder}: {found} comments begin with a word in place of a subject, at most {limit} may: "
                   f"see them by `tests/docs/openers.py . --list {folder}`; docs/howto/write-a-comment.md says what to "
                   "write instead")
        elif found < limit:
            yield f"{folder}: {found} comments, and the limit is {limit}: lower it by `tests/docs/openers.py . --update`"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--list", metavar="FOLDER")
    flags = parser.parse_args()
    comments, found = count(flags.workspace)
    counts = {folder: len(lines) for folder, lines in found.items()}
    if flags.list is not None:
        for path, number, words in found.get(flags.list.rstrip("/"), []):
            print(f"{path}:{number}: {words}")
        return 0
    file_of_limits = os.path.join(flags.workspace, LIMITS)
    limits = {}
    if os.path.exists(file_of_limits):
        with open(file_of_limits, encoding="utf-8") as file:
            limits = read_limits(file.read())
    if flags.update:
        lowered = {folder: min(number, limits.get(folder, 0)) for folder, number in counts.items()}
        with open(file_of_limits, "w", encoding="utf-8") as file:
            file.write(write_limits(lowered))
        limits = lowered
    for folder in sorted(comments):
        print(f"{counts.get(folder, 0):5} of {comments[folder]:5} {folder}")
    print(f"{sum(counts.values()):5} of {sum(comments.values()):5} in all")
    wrong = list(problems(counts, limits))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
