#!/bin/bash
# Finding: the meaning of ONNX's Attention changed within operator set 23.
#
# onnx 1.21.0 and onnx 1.22.0 both call the operator "Attention, since version 23". The first adds
# the mask and then applies softcap; the second applies softcap and then adds the mask. The same
# model file so computes other numbers:
#   * With softcap, 1.21.0 turns the -inf of a masked key into -softcap, so a causal query reads
#     keys of the future.
#   * The values 1 and 2 of qk_matmul_output_mode have changed places.
# From 1.23.1 on, a query whose keys are all masked gives 0 in the reference evaluator; 1.22.0 gives
# NaN. A reader of such files can't tell from the operator set which meaning the writer had.
#
# Needs: python3 with venv, and PyPI. No GPU. Ends with status 0 while the packages behave as
# stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/attention.py" <<'PYTHON'
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

warnings.simplefilter("ignore")


def run(outputs, mask=None, **attributes):
    """One head, two queries and two keys of size 1, all ones; the values are 1 and 24."""
    inputs = ["Q", "K", "V"] + (["mask"] if mask is not None else [])
    node = helper.make_node("Attention", inputs, outputs, **attributes)
    types = {"mask": TensorProto.BOOL}
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(x, types.get(x, TensorProto.FLOAT), None) for x in inputs],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in outputs if y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    ones = np.ones((1, 1, 2, 1), np.float32)
    feeds = {"Q": ones, "K": ones, "V": np.array([1, 24], np.float32).reshape(1, 1, 2, 1)}
    if mask is not None:
        feeds["mask"] = mask
    last = ReferenceEvaluator(model).run(None, feeds)[-1]
    return " ".join(f"{x:.4g}" for x in last.ravel())


print(f"onnx {onnx.__version__}, Attention since {onnx.defs.get_schema('Attention', 23).since_version}")
print("causal, softcap 1:", run(["Y"], is_causal=1, softcap=1.0))
print("first query masked:", run(["Y"], mask=np.array([[False, False], [True, True]])))
for mode in (1, 2):
    print(f"qk_matmul_output_mode {mode}, causal, softcap 1:",
          run(["Y", "", "", "QK"], is_causal=1, softcap=1.0, qk_matmul_output_mode=mode))
PYTHON

for version in 1.21.0 1.22.0 1.23.1; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q --disable-pip-version-check "onnx==$version" numpy==2.2.6
  "$folder/$version/bin/python" "$folder/attention.py"
done | tee "$folder/seen"

cat >"$folder/expected" <<'TEXT'
onnx 1.21.0, Attention since 23
causal, softcap 1: 4.372 12.5
first query masked: nan 12.5
qk_matmul_output_mode 1, causal, softcap 1: 1 -inf 1 1
qk_matmul_output_mode 2, causal, softcap 1: 0.7616 -1 0.7616 0.7616
onnx 1.22.0, Attention since 23
causal, softcap 1: 1 12.5
first query masked: nan 12.5
qk_matmul_output_mode 1, causal, softcap 1: 0.7616 0.7616 0.7616 0.7616
qk_matmul_output_mode 2, causal, softcap 1: 0.7616 -inf 0.7616 0.7616
onnx 1.23.1, Attention since 23
causal, softcap 1: 1 12.5
first query masked: 0 12.5
qk_matmul_output_mode 1, causal, softcap 1: 0.7616 0.7616 0.7616 0.7616
qk_matmul_output_mode 2, causal, softcap 1: 0.7616 -inf 0.7616 0.7616
TEXT
diff "$folder/expected" "$folder/seen" && echo "as stated"
