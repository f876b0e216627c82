#!/usr/bin/python3
"""Prints the plan of includes: folders, the layer of each, and the folders that each includes from.

usage: plan.py WORKSPACE [--json]

A folder is an entry of the table in layers.py. Tests are left out, because a test may include more
than what it tests. A folder is on layer 0 if it includes from no other folder, else one layer above
the highest folder that it includes from. An include runs upward if the folder that it names includes
from the including folder as well, directly or through others. The last lines count the same for whole
top folders (compiler, search, ...).

--json    prints one object: "folders" and "top_folders", each a list of {"folder", "layer", "files",
          "includes", "upward"}, the latter two as {folder: number of includes}
"""
import argparse
import collections
import json
import os
import sys

import layers


def product_includes(root):
    """Pairs of a product file's path and the paths of our headers that it includes."""
    paths = [path for path in layers.sources(root) if layers.layer_of(path) not in (None, "tests")]
    for path in paths:
        if layers.TEST.match(path):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            included = [os.path.normpath(name) for name in layers.INCLUDE.findall(file.read())]
        yield path, [name for name in included if layers.layer_of(name) is not None]


def reachable(edges, start):
    """The folders that `start` includes from, directly or through others."""
    found, waiting = set(), [start]
    while waiting:
        new = set(edges.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def plan(includes, folder_of):
    """The folders from the lowest layer up, as dicts of the form that --json prints."""
    files, edges = collections.Counter(), collections.defaultdict(collections.Counter)
    for path, included in includes:
        folder = folder_of(path)
        files[folder] += 1
        edges[folder].update(other for other in map(folder_of, included) if other != folder)
    folders = set(files).union(*edges.values())
    below = {folder: reachable(edges, folder) for folder in folders}
    upward = {x: [other for other in edges[x] if x in below[other]] for x in folders}

    def layer(folder):
        down = edges[folder].keys() - upward[folder]
        return max((1 + layer(other) for other in down), default=0)

    rows = [{
        "folder": folder,
        "layer": layer(folder),
        "files": files[folder],
        "includes": dict(sorted(edges[folder].items())),
        "upward": {other: edges[folder][other] for other in sorted(upward[folder])},
    } for folder in sorted(folders)]
    return sorted(rows, key=lambda row: (row["layer"], row["folder"]))


def table(rows):
    width = max((len(row["folder"]) for row in rows), default=0)
    yield f"layer  files  {'folder':{width}}  includes from"
    for row in rows:
        others = ", ".join(f"{folder} {count}" for folder, count in row["includes"].items())
        yield f"{row['layer']:5}  {row['files']:5}  {row['folder']:{width}}  {others}".rstrip()


def summary(kind, rows):
    upward = [f"{row['folder']} -> {other} ({count})" for row in rows for other, count in row["upward"].items()]
    layer_count = 1 + max((row["layer"] for row in rows), default=-1)
    counts = [count for row in rows for count in row["includes"].values()]
    return (f"{len(rows)} {kind} on {layer_count} layers, {len(counts)} dependencies by {sum(counts)} includes; "
            f"upward: {', '.join(upward) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace")
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    includes = list(product_includes(flags.workspace))
    folders = plan(includes, layers.layer_of)
    top_folders = plan(includes, lambda path: path.split("/")[0])
    if flags.json:
        print(json.dumps({"folders": folders, "top_folders": top_folders}, indent=1))
        return 0
    for line in table(folders):
        print(line)
    print(summary("folders", folders))
    print(summary("top folders", top_folders))
    return 0


if __name__ == "__main__":
    sys.exit(main())
