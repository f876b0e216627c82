"""Pools, and images of other sizes."""

from __future__ import annotations

from typing import Any

from torch import fx

from kiln.torch.context import Context, Unsupported, argument, rule


def _of_axes(values: Any, rank: int) -> list[int]:
    values = [values] if isinstance(values, int) else list(values)
    return values * rank if len(values) == 1 else values


def _batched(c: Context, node: fx.Node, rank: int) -> str:
    if len(c.shape(node.args[0])) != rank + 2:
        raise Unsupported("its input has no batch")
    return c.name(node.args[0])


def _max_pool(rank: int) -> Any:
    def convert(c: Context, node: fx.Node) -> list[Any]:
        kernel = _of_axes(node.args[1], rank)
        stride = argument(node, 2, "stride") or kernel
        name = c.emit(
            "MaxPool",
            _batched(c, node, rank),
            kernel_shape=kernel,
            strides=_of_axes(stride, rank),
            pads=_of_axes(argument(node, 3, "padding", 0), rank) * 2,
            dilations=_of_axes(argument(node, 4, "dilation", 1), rank),
            ceil_mode=int(argument(node, 5, "ceil_mode", False)),
        )
        return [name, None]

    return convert


def _max_pool_alone(rank: int) -> Any:
    def convert(c: Context, node: fx.Node) -> Any:
        return _max_pool(rank)(c, node)[0]

    return convert


rule("max_pool2d_with_indices")(_max_pool(2))
rule("max_pool3d_with_indices")(_max_pool(3))
rule("max_pool1d")(_max_pool_alone(1))
rule("max_pool2d")(_max_pool_alone(2))
rule("max_pool3d")(_max_pool_alone(3))


def _avg_pool(rank: int) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        if argument(node, 6, "divisor_override") is not None:
            raise Unsupported("its divisor is given")
        kernel = _of_axes(node.args[1], rank)
        stride = argument(node, 2, "stride") or kernel
        return c.emit(
            "AveragePool",
            _batched(c, node, rank),
            kernel_shape=kernel,
            strides=_of_axes(stride, rank),
            pads=_of_axes(argument(node, 3, "padding", 0), rank) * 2,
            ceil_mode=int(argument(node, 4, "ceil_mode", False)),
            count_include_pad=int(argument(node, 5, "count_include_pad", True)),
        )

    return convert


rule("avg_pool1d")(_avg_pool(1))
rule("avg_pool2d")(_avg_pool(2))
rule("avg_pool3d")(_avg_pool(3))


def _adaptive(op: str, rank: int) -> Any:
    def convert(c: Context, node: fx.Node) -> str:
        extents = c.shape(node.args[0])[-rank:]
        sizes = c.result().shape[-rank:]
        if any(extent % size for extent, size in zip(extents, sizes)):
            raise Unsupported("its windows have different sizes")
        kernel = [extent // size for extent, size in zip(extents, sizes)]
        return c.emit(op, _batched(c, node, rank), kernel_shape=kernel, strides=kernel)

    return convert


def _adaptive_max(rank: int) -> Any:
    def convert(c: Context, node: fx.Node) -> list[Any]:
        return [_adaptive("MaxPool", rank)(c, node), None]

    return convert


rule("_adaptive_avg_pool2d", "adaptive_avg_pool2d")(_adaptive("AveragePool", 2))
rule("_adaptive_avg_pool3d", "adaptive_avg_pool3d")(_adaptive("AveragePool", 3))
rule("adaptive_avg_pool1d")(_adaptive("AveragePool", 1))
rule("adaptive_max_pool2d")(_adaptive_max(2))
rule("adaptive_max_pool3d")(_adaptive_max(3))


def _check_factors(c: Context, node: fx.Node, place: int) -> None:
    """Torch finds places by the factors it is given; Kiln by the extents, as torch without factors.

    `place` is where factors are among the arguments.
    """
    if "vec" in str(node.target):
        factors = argument(node, place, "scale_factors") or [None, None]
    else:
        factors = [argument(node, place + i, f"scales_{axis}") for i, axis in enumerate("hw")]
    extents, sizes = c.shape(node.args[0])[2:], c.result().shape[2:]
    for extent, size, factor in zip(extents, sizes, factors):
        if factor is not None and extent * factor != size:
            raise Unsupported(f"its factor is {factor:g}, and it makes {size} of {extent} pixels")


@rule("upsample_nearest2d", "upsample_nearest2d.vec")
def _nearest(c: Context, node: fx.Node) -> str:
    _check_factors(c, node, 2)
    sizes = c.integers(c.result().shape)
    return c.emit(
        "Resize", _batched(c, node, 2), "", "", sizes,
        mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip


@rule("upsample_bilinear2d", "upsample_bilinear2d.vec")
def _bilinear(c: Context, node: fx.Node) -> str:
    corners = argument(node, 2, "align_corners", False)
    if not corners:
        _check_factors(c, node, 3)
    sizes = c.integers(c.result().shape)
    mode = "align_corners" if corners else "half_pixel"
    return c.emit(
        "Resize", _batched(c, node, 2), "", "", sizes,
        mode="linear", coordinate_transformation_mode=mode,
    )  # fmt: skip
