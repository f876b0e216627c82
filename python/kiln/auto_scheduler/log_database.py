"""Logs that live as long as a block, beside the texts of their computations, and as databases."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from kiln.auto_scheduler.measuring import MeasureInput, MeasureResult
from kiln.auto_scheduler.records import save_records
from kiln.farm import program
from kiln.farm.computation import text_file


@contextmanager
def log_of(pairs: Iterable[tuple[MeasureInput, MeasureResult]]) -> Iterator[str]:
    """The path of a log with these lines."""
    listed = list(pairs)
    with tempfile.TemporaryDirectory(prefix="kiln-log.") as folder:
        path = os.path.join(folder, "log.json")
        save_records(path, [given for given, _ in listed], [result for _, result in listed])
        yield path


@contextmanager
def bound(texts: Mapping[str, str], name: str = "task") -> Iterator[list[str]]:
    """Flags by which a command that reads a log finds the text of each of these keys.

    `name` is what errors call a text.
    """
    with ExitStack() as files:
        yield [
            f"--bind={key}={files.enter_context(text_file(text, name))}"
            for key, text in texts.items()
        ]


@contextmanager
def database_of(log: str | os.PathLike[str], flags: Sequence[str]) -> Iterator[dict[str, str]]:
    """The variables of a place whose records are those of the log; `flags` are those of bound().

    KilnError: the log has a line that is none.
    """
    with tempfile.TemporaryDirectory(prefix="kiln-log.") as folder:
        environment = {"KILN_DB": os.path.join(folder, "log.db")}
        program.run(["records", "import", os.path.abspath(log), *flags], environment)
        yield environment
