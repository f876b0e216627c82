"""The program `kiln`, which comes with the package: found, run, and its sentences as errors.

It reads declarations, makes jobs and compiles, so that Python has no second reader of the text
form and no second compiler. A run takes some 70 ms.
"""

from __future__ import annotations

import functools
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import kiln
from kiln.errors import FailedPreconditionError, InvalidArgumentError, KilnError
from kiln.release import check_protocol

# Variables that name a place.
_OF_A_PLACE = ("KILN_SCHEDULER", "KILN_TRACKER", "KILN_DB", "KILN_KEYS", "KILN_SECRET_FILE")
# Exit status of the program for flags that it does not take.
USAGE = 2


def program_path() -> str:
    """The program's file: KILN_PROGRAM, or kiln/bin/kiln.

    KilnError: none is there. FailedPreconditionError: KILN_PROGRAM is of another version.
    """
    bundled = os.path.join(os.path.dirname(os.path.abspath(kiln.__file__)), "bin", "kiln")
    path = os.path.abspath(os.environ.get("KILN_PROGRAM") or bundled)
    if os.access(path, os.X_OK) and not os.path.isdir(path):
        if path != bundled:
            _check_version(path)
        return path
    raise KilnError(
        f"cannot run the program kiln: {path} is no program; pip install kiln brings one, and "
        "KILN_PROGRAM=FILE names another"
    )


@functools.lru_cache(maxsize=None)
def _check_version(path: str) -> None:
    """Asks a program that did not come with the package."""
    done = subprocess.run(
        [path, "version", "--json"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    try:
        told = json.loads(done.stdout)
        version, protocol = str(told["version"]), int(told.get("protocol", 0))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FailedPreconditionError(
            f"{path}, which KILN_PROGRAM names, does not tell its version, expected a program kiln"
        ) from error
    check_protocol(version, protocol, f"the program {path}, which KILN_PROGRAM names,")


def nvrtc() -> dict[str, str]:
    """The variable that names PyPI's NVRTC, if it is installed (`pip install kiln[cuda]`)."""
    if os.environ.get("KILN_NVRTC"):
        return {}
    packages = importlib.util.find_spec("nvidia")
    for folder in (packages and packages.submodule_search_locations) or ():
        # The packages of CUDA 12 have a folder each, those of CUDA 13 have one.
        for inside in ("cuda_nvrtc", "cu13"):
            found = sorted(glob.glob(os.path.join(folder, inside, "lib", "libnvrtc.so.*")))
            if found:
                return {"KILN_NVRTC": found[-1]}
    return {}


def flag(name: str, value: Any) -> list[str]:
    """The words of a flag: trials=64 is --trials=64.

    None and False say nothing, True is the bare flag. A mapping is one flag NAME=VALUE for each
    entry, a list or tuple of numbers one flag with commas, of texts one flag for each.
    """
    word = "--" + name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [word]
    if isinstance(value, Mapping):
        return [f"{word}={key}={text_of(name, each)}" for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        if all(isinstance(each, str) for each in value):
            return [f"{word}={each}" for each in value]
        return [f"{word}={','.join(text_of(name, each) for each in value)}"]
    return [f"{word}={text_of(name, value)}"]


def text_of(name: str, value: Any) -> str:
    """The value as a word; a list with commas. InvalidArgumentError: it is no number or text."""
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(name, each) for each in value)
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return os.fspath(value)
    if isinstance(value, float):
        return repr(value)
    try:
        return str(int(value)) if int(value) == value else repr(float(value))
    except (TypeError, ValueError, OverflowError) as error:
        found = f"{name} is {value!r} of type {type(value).__name__}"
        raise InvalidArgumentError(f"{found}, expected a number or a text") from error


def run(words: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """What the program prints. KilnError: its sentence.

    `environment` are the variables of the place (KILN_SCHEDULER, KILN_KEYS, KILN_DB);
    those of this process do not count.
    """
    variables = {k: v for k, v in os.environ.items() if k not in _OF_A_PLACE}
    variables.update({**nvrtc(), **(environment or {})})
    command = [program_path(), *words]
    if any("\0" in word for word in command):
        raise InvalidArgumentError("a text for the program kiln has a NUL, expected none")
    done = subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode == 0:
        return done.stdout.decode(errors="replace")
    said = done.stderr.decode(errors="replace").strip().removeprefix("kiln: ")
    if done.returncode < 0:
        said = f"the program kiln {words[0]} ended by signal {-done.returncode}. {said}".rstrip()
    error = InvalidArgumentError if done.returncode == USAGE else KilnError
    raise error(said or f"kiln {words[0]} ended with exit status {done.returncode}")


def run_json(words: Sequence[str], environment: Mapping[str, str] | None = None) -> list[Any]:
    """The values that the program prints with --json, one a line."""
    return [json.loads(line) for line in run([*words, "--json"], environment).splitlines() if line]


def main() -> None:
    """The command `kiln` of an installed package: becomes the program."""
    try:
        path = program_path()
    except KilnError as error:
        sys.exit(f"kiln: {error}")
    # The program names itself so in the commands that it advises.
    found = shutil.which("kiln")
    is_on_path = found is not None and os.path.realpath(found) == os.path.realpath(sys.argv[0])
    os.execv(path, ["kiln" if is_on_path else sys.argv[0], *sys.argv[1:]])
