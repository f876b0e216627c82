"""How operators of ATen are written in ONNX, a file for each family."""

from kiln.torch.rules import (  # noqa: F401
    attention,
    creation,
    elementwise,
    images,
    indexing,
    movement,
    normalization,
    products,
    reductions,
)
