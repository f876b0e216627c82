"""Special inputs of tasks: buffers by names, in memory and in files, as TVM keeps them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy

from kiln.errors import InvalidArgumentError, NotFoundError
from kiln.farm.computation import Computation

# Buffers of all tasks have this key.
_DEFAULT = "default"
_buffers: dict[str, dict[str, numpy.ndarray]] = {}


def _file_name(name: str, data: numpy.ndarray) -> str:
    """The file of a buffer in the working folder: "indices.16_int32.npy"."""
    extents = "_".join(str(extent) for extent in data.shape)
    return f"{name}.{extents}_{data.dtype}.npy"


def _from_file(name: str) -> numpy.ndarray | None:
    named = re.compile(re.escape(name) + r"\.((?:\d+_)*\d+)?_([a-z]+\d*)\.npy")
    for file in sorted(os.listdir(".")):
        found = named.fullmatch(file)
        if found is None:
            continue
        extents = [int(each) for each in (found[1] or "").split("_") if each]
        try:
            return numpy.fromfile(file, dtype=found[2], sep=" ").reshape(extents)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{file} is no buffer of {name}: {error}") from error
    return None


def register_task_input_buffer(
    workload_key: str,
    input_name: str,
    input_data: Any,
    overwrite: bool = False,
    save_to_file: bool = False,
) -> numpy.ndarray:
    """Keeps a buffer for an input of a task; returns the one that is kept.

    A buffer that was registered before, or is in a file of the working folder, stays unless
    `overwrite` is set. `save_to_file` writes the file.
    """
    known = _buffers.setdefault(workload_key, {})
    if not overwrite:
        found = known.get(input_name)
        found = _from_file(input_name) if found is None else found
        if found is not None:
            known[input_name] = found
            return found
    data = numpy.asarray(input_data.numpy() if hasattr(input_data, "numpy") else input_data)
    known[input_name] = data
    if save_to_file:
        data.tofile(_file_name(input_name, data), sep=" ")
    return data


def get_task_input_buffer(workload_key: str, input_name: str) -> numpy.ndarray:
    """The buffer of an input: the task's, that of all tasks, or the one in a file.

    NotFoundError: there is none.
    """
    for key in (workload_key, _DEFAULT):
        if input_name in _buffers.get(key, {}):
            return _buffers[key][input_name]
    found = _from_file(input_name)
    if found is None:
        raise NotFoundError(
            f"{input_name} of {workload_key} has no buffer, expected task_inputs or a file "
            f"{input_name}.*.npy"
        )
    return found


def names_of_inputs(
    workload_key: str, task_inputs: Any, overwrite: bool, save_to_file: bool
) -> list[str]:
    """Registers what a task is given, and returns the names."""
    if task_inputs is None:
        return []
    if isinstance(task_inputs, Mapping):
        for name, data in task_inputs.items():
            register_task_input_buffer(workload_key, name, data, overwrite, save_to_file)
        return list(task_inputs)
    if isinstance(task_inputs, (list, tuple)):
        for name in task_inputs:
            get_task_input_buffer(workload_key, name)
        return list(task_inputs)
    raise InvalidArgumentError(
        f"task_inputs is a {type(task_inputs).__name__}, expected names with arrays, or names"
    )


def with_ranges(computed: Computation, workload_key: str, names: Sequence[str]) -> Computation:
    """The computation, whose inputs of these names have values within those of their buffers.

    InvalidArgumentError: it has no such input.
    """
    text = computed.text
    for name in names:
        data = get_task_input_buffer(workload_key, name)
        said = f"@range({data.min().item()}, {data.max().item()})"
        declared = re.compile(rf"^(@range\([^)]*\)\s*)?(input {re.escape(name)}:)", re.MULTILINE)
        text, count = declared.subn(rf"{said}\n\2", text)
        if count == 0:
            raise InvalidArgumentError(f"task_inputs: {computed.name} has no input {name}")
    return replace(computed, text=text, source=text, words=()) if names else computed
