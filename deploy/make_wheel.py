#!/usr/bin/python3
"""Packs the folder of python/stage.sh into a wheel.

usage: make_wheel.py STAGED PYPROJECT README PLATFORM OUT

STAGED holds the package, PYPROJECT its metadata ([project] of a pyproject.toml), PLATFORM is the
tag of the binaries, "manylinux_2_35_x86_64". Writes OUT/NAME-VERSION-py3-none-PLATFORM.whl and
prints its path. The extension module keeps to the stable ABI, so one wheel fits all versions of
Python. The same files give the same wheel.
"""

import base64
import hashlib
import os
import sys
import tomllib
import zipfile

# Zip knows no earlier time.
_TIME = (1980, 1, 1, 0, 0, 0)


def metadata(project, readme):
    """METADATA: the fields of [project], and the README as the description."""
    fields = [
        ("Metadata-Version", "2.1"),
        ("Name", project["name"]),
        ("Version", project["version"]),
        ("Summary", project["description"]),
        ("Requires-Python", project["requires-python"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    fields += [("Classifier", each) for each in project.get("classifiers", [])]
    fields += [("Requires-Dist", each) for each in project["dependencies"]]
    for extra, packages in sorted(project["optional-dependencies"].items()):
        fields.append(("Provides-Extra", extra))
        fields += [("Requires-Dist", f'{each} ; extra == "{extra}"') for each in packages]
    return "".join(f"{key}: {value}\n" for key, value in fields) + "\n" + readme


def entry_points(project):
    """entry_points.txt: the commands, and what other packages look for."""
    groups = {"console_scripts": project["scripts"], **project.get("entry-points", {})}
    return "\n".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in groups.items()
    )


def files_of(folder):
    """Pairs of name and path of the package's files, in the order of names."""
    found = []
    for at, _, names in os.walk(folder):
        paths = [os.path.join(at, name) for name in names if not name.endswith(".pyc")]
        found += [(os.path.relpath(path, folder), path) for path in paths]
    return sorted(found)


class Wheel:
    """The archive, and the lines of its RECORD."""

    def __init__(self, archive, info):
        self.archive = archive
        self.info = info
        self.lines = []

    def add(self, name, content, mode=0o644):
        """Adds a file."""
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.lines.append(f"{name},sha256={digest},{len(content)}")
        self._write(name, content, mode)

    def finish(self):
        """Adds RECORD, which has no digest of itself."""
        name = f"{self.info}/RECORD"
        lines = "".join(f"{line}\n" for line in [*self.lines, f"{name},,"])
        self._write(name, lines.encode(), 0o644)

    def _write(self, name, content, mode):
        entry = zipfile.ZipInfo(name, _TIME)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, content, compresslevel=9)


def main(staged, pyproject, readme, platform, out):
    with open(pyproject, "rb") as file:
        project = tomllib.load(file)["project"]
    with open(readme, encoding="utf-8") as file:
        description = file.read()
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    tag = f"py3-none-{platform}"
    path = os.path.join(out, f"{stem}-{tag}.whl")
    with zipfile.ZipFile(path + ".part", "w") as archive:
        wheel = Wheel(archive, info)
        for name, source in files_of(staged):
            with open(source, "rb") as file:
                is_program = os.access(source, os.X_OK)
                wheel.add(name, file.read(), 0o755 if is_program else 0o644)
        wheel.add(f"{info}/METADATA", metadata(project, description).encode())
        kind = f"Wheel-Version: 1.0\nGenerator: kiln\nRoot-Is-Purelib: false\nTag: {tag}\n"
        wheel.add(f"{info}/WHEEL", kind.encode())
        wheel.add(f"{info}/entry_points.txt", entry_points(project).encode())
        wheel.finish()
    os.replace(path + ".part", path)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
