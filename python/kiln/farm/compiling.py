"""Programs without a farm: kiln.compile and kiln.export."""

from __future__ import annotations

import os
from typing import Any

from kiln.farm import program
from kiln.farm.client import Workload, compile_workload, words_for
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
    gpu: int = 0,
    **named: Any,
) -> Network:
    """A computation or a network as a callable, with the best records of a database, if there are any.

    `db` is the file of kiln.local(); a farm has client.compile. A task without a record gets a
    schedule that is chosen without measuring, unless `strict`. `output` keeps the file that kiln.load
    reads. `gpu`: which, as CUDA counts them. `named` are flags of `kiln compile`. KilnError: the
    compiler's sentence.
    """
    named = {"target": target, "strict": strict, **named}
    return compile_workload(workload, _place(db), output, named, gpu)


def export(
    workload: Workload,
    output: str | os.PathLike[str],
    *,
    form: str = "tvm-ffi",
    target: str | None = None,
    strict: bool = False,
    db: str | os.PathLike[str] = "kiln.db",
    **named: Any,
) -> None:
    """Writes what kiln.compile makes as a library that needs no Kiln.

    `form` is "tvm-ffi": tvm_ffi.load_module(output).main(*inputs, *outputs) of apache-tvm-ffi.
    """
    flags = {"target": target, "strict": strict, "form": form, "output": os.fspath(output), **named}
    words = [word for key, value in flags.items() for word in program.flag(key, value)]
    with words_for(workload) as subject:
        program.run(["compile", *subject, *words], _place(db))
