"""Programs without a farm: kiln.compile."""

from __future__ import annotations

import os
from typing import Any

from kiln.farm.client import Workload, compile_workload
from kiln.network import Network


def _place(db: str | os.PathLike[str]) -> dict[str, str]:
    return {"KILN_DB": os.path.abspath(os.fspath(db))}


def compile(  # pylint: disable=redefined-builtin
    workload: Workload,
    output: str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
    strict: bool = False,
    db: str | os.PathLike[str] = "kiln.db",
    **named: Any,
) -> Network:
    """A computation or a network as a callable, with the best records of a database, if there are any.

    `db` is the file of kiln.local(); a farm has client.compile. A task without a record gets a
    schedule that is chosen without measuring, unless `strict`. `output` keeps the file that kiln.load
    reads. `named` are flags of `kiln compile`. KilnError: the compiler's sentence.
    """
    named = {"target": target, "strict": strict, **named}
    return compile_workload(workload, _place(db), output, named)
