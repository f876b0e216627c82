#!/bin/bash
# Finding: torch.compile fails the second time it autotunes a custom operator with one choice.
#
# torch 2.11 has register_custom_op_autotuning: Inductor times the decompositions of a custom
# operator, and the operator itself, which autotune_custom_op adds to them. It adds it only once in
# a process: for a second graph the operator's name is taken already. With one decomposition there
# is one choice then; autotune_select_algorithm returns one value for that and not the two that are
# unpacked, and compiling ends with "cannot unpack non-iterable TensorBox object".
#
# Needs: x86-64, g++, 4 GB of disk, and PyPI; PYTHON=FILE names a Python that has torch 2.11
# instead. No GPU. Ends with status 0 while the package behaves as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [[ -z ${PYTHON:-} ]]; then
  python3 -m venv "$folder/venv"
  PYTHON=$folder/venv/bin/python
  "$PYTHON" -m pip install -q torch==2.11.0 numpy
fi

cat >"$folder/one_choice.py" <<'CODE'
import sys

import torch
from torch._inductor.kernel.custom_op import CustomOpConfig, register_custom_op_autotuning


@torch.library.custom_op("finding::product", mutates_args=())
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


product.register_fake(lambda a, b: a.new_empty(a.shape[0], b.shape[1]))


def one_way(a, b):
    return torch.mm(a, b)


def another_way(a, b):
    return torch.mm(b.t(), a.t()).t().contiguous()


def compiled(rows, choices):
    configs = [CustomOpConfig(each) for each in (one_way, another_way)[:choices]]
    register_custom_op_autotuning(product, configs=configs, name="finding_product")
    torch._dynamo.reset()
    function = torch.compile(lambda a, b: product(a, b) + 1, dynamic=False)
    try:
        function(torch.rand(rows, 8), torch.rand(8, 8))
        return "compiles"
    except Exception as error:  # InductorError
        return str(error).splitlines()[0]


print("torch", torch.__version__)
found = [compiled(4, 1), compiled(5, 1), compiled(6, 2)]
for line in zip(("one choice, first graph", "one choice, second graph", "two choices, third graph"), found):
    print(*line, sep=": ")
is_as_stated = (
    found[0] == found[2] == "compiles" and "cannot unpack non-iterable TensorBox" in found[1]
)
sys.exit(0 if is_as_stated else "not as stated")
CODE
TORCHINDUCTOR_CACHE_DIR=$folder/cache "$PYTHON" -W ignore "$folder/one_choice.py"
