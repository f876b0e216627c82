"""Computations as a user declares them: by an operator, a text, or Python (kiln.te).

The program reads each declaration at once, so what is wrong with it is said where it stands.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kiln.farm import program
from kiln.errors import InvalidArgumentError, KilnError
from kiln.tables import titled


@dataclass(frozen=True)
class Computation:
    """A computation that was checked. op(), computation() and te.create() make one."""

    # "matmul 512,512,512", or the name of the text.
    name: str
    # Canonical text form.
    text: str
    # The key that TVM has for the same computation.
    workload_key: str
    flop_count: float
    # Bytes of all inputs and outputs.
    bytes: float
    # Words for the program, for an operator: ["matmul", "--args=512,512,512"]; else empty.
    words: tuple[str, ...] = field(default=(), repr=False)
    # The text as it was declared, with its ranges of inputs.
    source: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The text, for notebooks."""
        return titled(self.name, self.text)


def op(
    name: str,
    *args: int,
    dtype: str = "float32",
    out_dtype: str | None = None,
    epilogue: str | None = None,
    layout: str | None = None,
    **named: int,
) -> Computation:
    """An operator with its arguments, as operators() lists them.

    Numbers go by place and then by name: op("conv2d_nhwc", 1, 56, 56, 64, 64, 3, 3, stride=1).
    `epilogue` is what follows it: "bias,relu". InvalidArgumentError: there is no such operator, or
    the numbers do not fit it.

    Examples:
        >>> matmul = kiln.op("matmul", 64, 64, 64)
        >>> matmul.name, matmul.flop_count, matmul.bytes
        ('matmul 64,64,64', 524288.0, 49152.0)
    """
    texts = [*(program.text_of("an argument", each) for each in args)]
    texts += [f"{key}={program.text_of(key, value)}" for key, value in named.items()]
    words = [_word(name), *program.flag("args", ",".join(texts) or None)]
    words += [] if dtype == "float32" else program.flag("dtype", dtype)
    for key, value in (("out_dtype", out_dtype), ("epilogue", epilogue), ("layout", layout)):
        words += program.flag(key, value)
    description = " ".join([name, ",".join(texts)] + ([] if dtype == "float32" else [dtype]))
    return _checked(description.strip(), words)


def computation(text: str, name: str = "computation", **params: int) -> Computation:
    """A computation in Kiln's text form, or the one in a file whose name ends in .te.

    `params` are the values of its `param` statements. InvalidArgumentError: "NAME.te:2:13: index i
    + 1 of A reaches 8, axis 0 has extent 8".

    Examples:
        >>> text = "param n\\ninput A: float32[n]\\nB[i: n] = 2.0 * A[i]"
        >>> print(kiln.computation(text, "twice", n=8))
        input A: float32[8]
        B[i: 8] = 2.0*A[i]
        <BLANKLINE>
    """
    if text.endswith(".te") and "\n" not in text:
        name = os.path.basename(text)[: -len(".te")]
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(f"cannot read {text}: {error}") from error
    if params:
        text = _with_params(text, params)
    with text_file(text, name) as path:
        checked = _checked(name, [path])
    return replace(checked, words=(), source=text)


def _with_params(text: str, params: dict[str, int]) -> str:
    """The text with `param N` as `let N = value`, so that it says all by itself."""
    for key, value in params.items():
        statement = re.compile(rf"^(\s*)param\s+{re.escape(key)}\b(\s*=[^\n#]*)?", re.MULTILINE)
        replacement = rf"\g<1>let {key} = {program.text_of(key, value)}"
        text, count = statement.subn(replacement, text)
        if count == 0:
            raise InvalidArgumentError(f"the text has no param {key}, and a value is given for it")
    return text


def operators() -> list[dict[str, Any]]:
    """The operators: name, family, doc, and parameters with their limits and defaults.

    Examples:
        >>> [each["name"] for each in kiln.operators() if each["name"].startswith("matmul")][:1]
        ['matmul']
    """
    return program.run_json(["ops"])


def _word(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidArgumentError(
            f"'{name}' is no name of an operator; kiln.operators() lists them"
        )
    return name


def _checked(name: str, words: Sequence[str]) -> Computation:
    try:
        found = program.run_json(["check", *words])[0]
    except KilnError as error:
        raise InvalidArgumentError(str(error)) from error
    return Computation(
        name=name,
        text=found["dag"],
        workload_key=found["workload_key"],
        flop_count=float(found["flop_count"]),
        bytes=float(found["bytes"]),
        words=tuple(words),
        source=found["dag"],
    )


@contextmanager
def text_file(text: str, name: str) -> Iterator[str]:
    """A file NAME.te with the text while the block runs; errors within name the file alone."""
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("-.") or "computation"
    with tempfile.TemporaryDirectory(prefix="kiln-text.") as folder:
        path = os.path.join(folder, stem[:200] + ".te")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        try:
            yield path
        except KilnError as error:
            raise type(error)(str(error).replace(folder + os.sep, "")) from error


@contextmanager
def words_of(workloads: Sequence[Computation]) -> Iterator[list[str]]:
    """Words that name the computations for the program while the block runs."""
    if len(workloads) == 1 and workloads[0].words:
        yield list(workloads[0].words)
        return
    if not workloads:
        raise InvalidArgumentError("no computation is given, expected at least one")
    with ExitStack() as files:
        yield [files.enter_context(text_file(each.source, each.name)) for each in workloads]
