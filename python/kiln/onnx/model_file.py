"""Models of ONNX as files, written without the package onnx.

The messages of onnx.proto are few and simple, and Kiln's reader checks every model. The package
onnx would be a dependency of each user; a second copy of its messages in Google's registry would
clash with that package where both are imported. Weights stand in a file beside the model, so that
models of any size can be written, and Kiln maps them into memory.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence
from typing import Any

# Version of the format, and of the operators whose rules are in kiln.torch.rules.
_IR_VERSION = 9
_OPSET = 20
# A tensor with more bytes goes beside the model.
_INLINE_BYTES = 1024
# Offsets of tensors beside the model; a multiple of a page can be mapped by itself.
_ALIGNMENT = 4096

# TensorProto.DataType by the names that torch and Kiln have for them.
ELEMENT_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e5m2": 19,
}


def _varint(value: int) -> bytes:
    """The base-128 form of protobuf; negative numbers have 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _attribute(name: str, value: Any) -> bytes:
    """AttributeProto of a whole number, a float, a text, or a list of whole numbers or floats."""
    head = _bytes(1, name)
    if isinstance(value, (bool, int)):
        return head + _number(3, int(value)) + _number(20, 2)
    if isinstance(value, float):
        return head + _float(2, value) + _number(20, 1)
    if isinstance(value, str):
        return head + _bytes(4, value) + _number(20, 3)
    if any(isinstance(each, float) for each in value):
        return head + b"".join(_float(7, each) for each in value) + _number(20, 6)
    return head + b"".join(_number(8, int(each)) for each in value) + _number(20, 7)


def _value_info(name: str, dtype: str, shape: Sequence[int]) -> bytes:
    extents = b"".join(_bytes(1, _number(1, extent)) for extent in shape)
    tensor = _number(1, ELEMENT_TYPES[dtype]) + _bytes(2, extents)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def _entry(key: str, value: str) -> bytes:
    return _bytes(1, key) + _bytes(2, value)


class OnnxModel:
    """A model that is built node by node, in the order of execution, and then written."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        # Constants in the order of their declaration: name, dtype, shape, elements in memory order.
        self._constants: list[tuple[str, str, tuple[int, ...], Any]] = []

    def node(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attributes: Any
    ) -> None:
        """Adds an operator. An input of "" is one that is not given."""
        body = b"".join(_bytes(1, each) for each in inputs)
        body += b"".join(_bytes(2, each) for each in outputs)
        body += _bytes(3, name) + _bytes(4, op)
        for key, value in attributes.items():
            if value is not None:
                body += _bytes(5, _attribute(key, value))
        self._nodes.append(body)

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> None:
        """Adds an input."""
        self._inputs.append(_value_info(name, dtype, shape))

    def output(self, name: str, dtype: str, shape: Sequence[int]) -> None:
        """Adds an output, which a node makes."""
        self._outputs.append(_value_info(name, dtype, shape))

    def constant(self, name: str, dtype: str, shape: Sequence[int], elements: Any) -> None:
        """Adds a constant; `elements` is its memory, row by row: bytes, or a buffer of bytes."""
        self._constants.append((name, dtype, tuple(shape), elements))

    def digest(self) -> str:
        """A name for what is computed: nodes, types and shapes, not the elements of constants."""
        found = hashlib.sha256()
        for part in (self._nodes, self._inputs, self._outputs):
            for each in part:
                found.update(_varint(len(each)) + each)
        found.update(repr([constant[:3] for constant in self._constants]).encode())
        return found.hexdigest()[:16]

    def write(self, folder: str | os.PathLike[str], name: str = "model") -> str:
        """Writes FOLDER/NAME.onnx and, beside it, its weights; returns the path of the model."""
        graph = b"".join(_bytes(1, each) for each in self._nodes) + _bytes(2, name)
        with open(os.path.join(folder, name + ".weights"), "wb") as weights:
            graph += b"".join(
                _bytes(5, self._tensor(constant, weights)) for constant in self._constants
            )
        graph += b"".join(_bytes(11, each) for each in self._inputs)
        graph += b"".join(_bytes(12, each) for each in self._outputs)
        model = _number(1, _IR_VERSION) + _bytes(2, "pytorch") + _bytes(8, _number(2, _OPSET))
        path = os.path.join(folder, name + ".onnx")
        with open(path, "wb") as file:
            file.write(model + _bytes(7, graph))
        return path

    @staticmethod
    def _tensor(constant: tuple[str, str, tuple[int, ...], Any], weights: Any) -> bytes:
        name, dtype, shape, elements = constant
        head = b"".join(_number(1, extent) for extent in shape)
        head += _number(2, ELEMENT_TYPES[dtype]) + _bytes(8, name)
        data = memoryview(elements).cast("B")
        if data.nbytes <= _INLINE_BYTES:
            return head + _bytes(9, bytes(data))
        weights.write(b"\0" * (-weights.tell() % _ALIGNMENT))
        entries = {
            "location": os.path.basename(weights.name),
            "offset": str(weights.tell()),
            "length": str(data.nbytes),
        }
        weights.write(data)
        return (
            head + b"".join(_bytes(13, _entry(*each)) for each in entries.items()) + _number(14, 1)
        )
