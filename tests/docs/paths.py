#!/usr/bin/python3
"""Checks the paths that pages name: each one in backticks is a file or folder of the tree.

usage: paths.py WORKSPACE PAGE.md...

A word in backticks is a path if it begins with a top folder of the tree, or if it ends like a source
file. A page may leave out the folders in front, so `steps/steps.h` stands for any path that ends so.
Braces, globs and Bazel's labels are understood: `cost_model.{h,cc}`, `*_test.cc`, `//base:status`.
`<name>` and NAME stand for any name. Blocks of code are left alone, and so are headers of libraries,
which are written `<cuda_fp16.h>`.

Prints PAGE:LINE and the path that is missing; exit status 1 then.
"""
import fnmatch
import os
import re
import sys

import openers

SUFFIXES = (".h", ".cc", ".proto", ".py", ".sh", ".bazel", ".bzl")
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
# Code within a paragraph may go on in the next line.
CODE = re.compile(r"`((?:[^`\n]|\n(?!\s*\n))+)`")
PLACEHOLDER = re.compile(r"<\w+>|NAME")
BRACES = re.compile(r"(.*?)\{([^{}]*)\}(.*)")
LABEL = re.compile(r"//([\w/]+?)(?:/\.\.\.|:[\w.*]+)?")
CODE_SIGNS = re.compile(r"[<>$&=]")


def expand(word):
    """The words that a word with braces stands for."""
    match = BRACES.fullmatch(word)
    if match is None:
        return [word]
    words = [match[1] + choice + match[3] for choice in match[2].split(",")]
    return [other for choice in words for other in expand(choice)]


class Tree:
    """The files and folders that git knows, by all the ends of their paths."""

    def __init__(self, files):
        self.folders = {os.path.dirname(file) for file in files}
        while parents := {os.path.dirname(folder) for folder in self.folders} - self.folders:
            self.folders |= parents
        self.top_folders = {folder.split("/")[0] for folder in self.folders} - {""}
        self.ends = set()
        for path in [*files, *self.folders]:
            parts = path.split("/")
            self.ends |= {"/".join(parts[i:]) for i in range(len(parts))}

    def is_path(self, word):
        return word.endswith(SUFFIXES) or ("/" in word and word.split("/")[0] in self.top_folders)

    def has(self, word):
        word = word.rstrip("/")
        return word in self.ends or ("*" in word and bool(fnmatch.filter(self.ends, word)))


def missing(tree, text):
    """Pairs of the line number and the path that is not in the tree."""
    text = CODE_BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for code in CODE.finditer(text):
        number = 1 + text.count("\n", 0, code.start())
        for word in [word.strip(",;()") for word in code[1].split()]:
            word = PLACEHOLDER.sub("*", word)
            if CODE_SIGNS.search(word):
                continue
            label = LABEL.fullmatch(word)
            if label is not None and label[1] not in tree.folders:
                yield number, word
            elif label is None:
                paths = [path for path in expand(word) if tree.is_path(path)]
                yield from ((number, path) for path in paths if not tree.has(path))


def main(root, pages):
    tree = Tree(openers.tracked_files(root))
    is_good = True
    for page in pages:
        with open(os.path.join(root, page), encoding="utf-8") as file:
            for number, path in missing(tree, file.read()):
                print(f"{page}:{number}: there is no {path}")
                is_good = False
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
