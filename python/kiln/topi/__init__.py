"""Operators of TVM's topi as functions of tensors, for the tutorials' declarations.

They make the computations that TVM's make, under the same names, so that keys are equal. Kiln's own
operators, which are more, are kiln.op(name, ...).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Union

from kiln import te
from kiln.errors import InvalidArgumentError
from kiln.te import Tensor

Pair = Union[int, Sequence[int]]


def _pair(name: str, value: Pair) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not builtins.all(isinstance(each, int) and each >= 0 for each in pair):
        raise InvalidArgumentError(f"{name} is {value!r}, expected a whole number or two")
    return pair[0], pair[1]


def _elementwise(name: str, x: Tensor, function: Callable[[Any], Any]) -> Tensor:
    return te.compute(x.shape, lambda *i: function(x(*i)), name=name)


def broadcast(name: str, left: Any, right: Any, function: Callable[[Any, Any], Any]) -> Tensor:
    """function of two tensors, or of a tensor and a number, as numpy broadcasts them."""
    if not isinstance(left, Tensor) and not isinstance(right, Tensor):
        raise InvalidArgumentError(f"{name} takes a tensor at least")
    shapes = [each.shape if isinstance(each, Tensor) else () for each in (left, right)]
    rank = builtins.max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    shape = []
    for extents in zip(*padded):
        if len(set(extents) - {1}) > 1:
            raise InvalidArgumentError(f"{name}: shapes {shapes[0]} and {shapes[1]} do not fit")
        shape.append(builtins.max(extents))

    def element(tensor: Any, own: Sequence[int], axes: Sequence[Any]) -> Any:
        if not isinstance(tensor, Tensor):
            return tensor
        used = axes[rank - tensor.ndim :]
        return tensor(
            *(
                0 if own[i] == 1 != shape[i + rank - tensor.ndim] else axis
                for i, axis in enumerate(used)
            )
        )

    names = [f"ax{index}" for index in range(rank)]
    return te.compute(
        shape,
        lambda *ax: function(element(left, shapes[0], ax), element(right, shapes[1], ax)),
        name=name,
        axis_names=names,
    )


def add(left: Any, right: Any) -> Tensor:
    """left + right."""
    return broadcast("T_add", left, right, lambda a, b: a + b)


def subtract(left: Any, right: Any) -> Tensor:
    """left - right."""
    return broadcast("T_subtract", left, right, lambda a, b: a - b)


def multiply(left: Any, right: Any) -> Tensor:
    """left * right."""
    return broadcast("T_multiply", left, right, lambda a, b: a * b)


def divide(left: Any, right: Any) -> Tensor:
    """left / right."""
    return broadcast("T_divide", left, right, lambda a, b: a / b)


def exp(x: Tensor) -> Tensor:
    """e to the x."""
    return _elementwise("T_exp", x, te.exp)


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return _elementwise("T_tanh", x, te.tanh)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _elementwise("T_sigmoid", x, te.sigmoid)


class nn:  # pylint: disable=invalid-name
    """Operators of networks."""

    @staticmethod
    def relu(x: Tensor) -> Tensor:
        """max(x, 0)."""
        return te.compute(x.shape, lambda *i: te.max(x(*i), te.const(0.0, x.dtype)), name="compute")

    @staticmethod
    def pad(
        data: Tensor,
        pad_before: Sequence[int],
        pad_after: Sequence[int] | None = None,
        pad_value: float = 0.0,
        name: str = "PadInput",
    ) -> Tensor:
        """Zeros, or another value, around the data."""
        after = pad_before if pad_after is None else pad_after
        if not len(pad_before) == len(after) == data.ndim:
            raise InvalidArgumentError(f"pad: expected {data.ndim} numbers before and after")
        shape = [n + a + b for n, a, b in zip(data.shape, pad_before, after)]

        def value(*axes: Any) -> Any:
            conditions: list[Any] = []
            indices = []
            for axis, extent, low, high in zip(axes, data.shape, pad_before, after):
                conditions += [axis >= low] if low else []
                conditions += [axis < extent + low] if high else []
                indices.append(axis - low if low else axis)
            if not conditions:
                return data(*indices)
            outside = te.const(pad_value, data.dtype)
            return te.if_then_else(te.all(*conditions), data(*indices), outside)

        return te.compute(shape, value, name=name)

    @staticmethod
    def conv2d_nchw(
        Input: Tensor,
        Filter: Tensor,
        stride: Pair,
        padding: Pair,
        dilation: Pair = 1,
        out_dtype: str | None = None,
    ) -> Tensor:
        """A convolution of data [N, C, H, W] with filters [F, C, KH, KW]."""
        (sh, sw), (dh, dw) = _pair("stride", stride), _pair("dilation", dilation)
        ph, pw = _pair("padding", padding)
        batch, channels, height, width = Input.shape
        filters, own, kh, kw = Filter.shape
        _same("conv2d_nchw", channels, own)
        oh = _positions("height", height, kh, sh, dh, ph)
        ow = _positions("width", width, kw, sw, dw, pw)
        padded = nn.pad(Input, (0, 0, ph, pw), name="pad_temp")
        rc = te.reduce_axis((0, channels), "rc")
        ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
        dtype = out_dtype or Input.dtype
        return te.compute(
            (batch, filters, oh, ow),
            lambda nn, ff, yy, xx: te.sum(
                _cast(padded[nn, rc, _at(yy, sh, ry, dh), _at(xx, sw, rx, dw)], dtype)
                * _cast(Filter[ff, rc, ry, rx], dtype),
                axis=[rc, ry, rx],
            ),
            name="conv2d_nchw",
        )

    @staticmethod
    def conv2d_nhwc(
        Input: Tensor,
        Filter: Tensor,
        stride: Pair,
        padding: Pair,
        dilation: Pair = 1,
        out_dtype: str | None = None,
    ) -> Tensor:
        """A convolution of data [N, H, W, C] with filters [KH, KW, C, F]."""
        (sh, sw), (dh, dw) = _pair("stride", stride), _pair("dilation", dilation)
        ph, pw = _pair("padding", padding)
        batch, height, width, channels = Input.shape
        kh, kw, own, filters = Filter.shape
        _same("conv2d_nhwc", channels, own)
        oh = _positions("height", height, kh, sh, dh, ph)
        ow = _positions("width", width, kw, sw, dw, pw)
        padded = nn.pad(Input, (0, ph, pw, 0), name="pad_temp")
        rc = te.reduce_axis((0, channels), "rc")
        ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
        dtype = out_dtype or Input.dtype
        return te.compute(
            (batch, oh, ow, filters),
            lambda nn, yy, xx, ff: te.sum(
                _cast(padded[nn, _at(yy, sh, ry, dh), _at(xx, sw, rx, dw), rc], dtype)
                * _cast(Filter[ry, rx, rc, ff], dtype),
                axis=[ry, rx, rc],
            ),
            name="conv2d_nhwc",
            attrs={"layout_free_placeholders": [Filter]},
        )

    @staticmethod
    def matmul(
        tensor_a: Tensor,
        tensor_b: Tensor,
        bias: Tensor | None = None,
        out_dtype: str | None = None,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> Tensor:
        """A product of two matrices, each of which may be transposed, and a bias."""
        m, k = tensor_a.shape[::-1] if transpose_a else tensor_a.shape
        n, own = tensor_b.shape if transpose_b else tensor_b.shape[::-1]
        _same("matmul", k, own)
        r = te.reduce_axis((0, k), "k")
        dtype = out_dtype or tensor_a.dtype

        def value(i: Any, j: Any) -> Any:
            a = tensor_a[r, i] if transpose_a else tensor_a[i, r]
            b = tensor_b[j, r] if transpose_b else tensor_b[r, j]
            return te.sum(_cast(a, dtype) * _cast(b, dtype), axis=r)

        letters = "NT"[transpose_a] + "NT"[transpose_b]
        attributes = {"layout_free_placeholders": [tensor_b]}
        product = te.compute((m, n), value, name=f"T_matmul_{letters}", attrs=attributes)
        return product if bias is None else add(product, bias)

    @staticmethod
    def dense(
        data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None
    ) -> Tensor:
        """data [M, K] times weight [N, K] transposed, and a bias."""
        return nn.matmul(data, weight, bias, out_dtype, False, True)


def _same(name: str, found: int, expected: int) -> None:
    if found != expected:
        raise InvalidArgumentError(
            f"{name}: the sum is over {found} of one and {expected} of the other"
        )


def _cast(value: Any, dtype: str) -> Any:
    return value if value.dtype == dtype else value.astype(dtype)


def _at(position: Any, stride: int, offset: Any, dilation: int) -> Any:
    scaled = position if stride == 1 else position * stride
    return scaled + (offset if dilation == 1 else offset * dilation)


def _positions(name: str, size: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
    if stride < 1 or dilation < 1:
        raise InvalidArgumentError(
            f"stride and dilation are {stride} and {dilation}, expected 1 or more"
        )
    count = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    if count < 1:
        raise InvalidArgumentError(f"a {name} of {size} has no room for a kernel of {kernel}")
    return count


relu = nn.relu
