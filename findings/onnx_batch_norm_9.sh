#!/bin/bash
# Finding: onnx.reference blends the statistics of the data into a batch normalization of a network
# that is not trained.
#
# In operator sets 7 to 13 the number of outputs says what BatchNormalization does: with one output
# it is in test mode and normalizes by its inputs mean and var (onnx/defs, "Output case #2: Y (test
# mode)"). The ReferenceEvaluator of onnx 1.16.2 and of 1.23.2 does not look at that number:
#   * In operator sets 9 to 13 it is in test mode only without a momentum, but momentum always has a
#     value, since its default is 0.9. So it normalizes by momentum * mean + (1 - momentum) * the
#     mean of the data, and by such a variance. That is neither the result of test mode nor that of
#     training, and the result for one image depends on the other images of the batch.
#   * In operator sets 7 and 8 it stops with a TypeError.
# Operator sets 14 and newer are right, and onnxruntime 1.32.0 is right in all of these. Models that
# onnx.version_converter has converted to operator set 15 give the right numbers.
#
# Below, mean is 0, var is 1, and the data are 1 and 3. Test mode leaves them as they are; training
# would make -1 and 1 of them.
#
# Needs: Python 3.11 or 3.12 with venv, and PyPI. No GPU. Ends with status 0 while the packages
# behave as stated.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/batch_norm.py" <<'PYTHON'
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, version_converter
from onnx.reference import ReferenceEvaluator

FEEDS = {"X": np.array([1, 3], np.float32).reshape(1, 1, 2, 1)}
FEEDS.update({name: np.array([value], np.float32) for name, value in
              (("scale", 1), ("B", 0), ("mean", 0), ("var", 1))})


def model(opset, **attributes):
    """One batch normalization with one output."""
    node = helper.make_node("BatchNormalization", list(FEEDS), ["Y"], epsilon=0.0, **attributes)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, FEEDS[x].shape) for x in FEEDS],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, FEEDS["X"].shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def by_reference(model):
    try:
        return ReferenceEvaluator(model).run(None, FEEDS)[0]
    except TypeError as error:
        return type(error).__name__


def by_onnxruntime(model):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, FEEDS)[0]


def show(what, result):
    print(what, result if isinstance(result, str) else " ".join(f"{x:.4g}" for x in result.ravel()))


versions = f"onnx {onnx.__version__}"
for opset in (7, 8, 9, 13, 14):
    show(f"{versions}, operator set {opset}:", by_reference(model(opset)))
show(f"{versions}, operator set 9, momentum 0.5:", by_reference(model(9, momentum=0.5)))
show(f"{versions}, operator set 9 converted to 15:",
     by_reference(version_converter.convert_version(model(9), 15)))
if "onnxruntime" in sys.argv:
    import onnxruntime
    for opset in (7, 8, 9, 13, 14):
        show(f"onnxruntime {onnxruntime.__version__}, operator set {opset}:", by_onnxruntime(model(opset)))
PYTHON

for version in 1.16.2 1.23.2; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q --disable-pip-version-check "onnx==$version" numpy==1.26.4 protobuf==7.36.2
done
"$folder/1.23.2/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0
{
  "$folder/1.16.2/bin/python" "$folder/batch_norm.py"
  "$folder/1.23.2/bin/python" "$folder/batch_norm.py" onnxruntime
} | tee "$folder/seen"

cat >"$folder/expected" <<'TEXT'
onnx 1.16.2, operator set 7: TypeError
onnx 1.16.2, operator set 8: TypeError
onnx 1.16.2, operator set 9: 0.8 2.8
onnx 1.16.2, operator set 13: 0.8 2.8
onnx 1.16.2, operator set 14: 1 3
onnx 1.16.2, operator set 9, momentum 0.5: 0 2
onnx 1.16.2, operator set 9 converted to 15: 1 3
onnx 1.23.2, operator set 7: TypeError
onnx 1.23.2, operator set 8: TypeError
onnx 1.23.2, operator set 9: 0.8 2.8
onnx 1.23.2, operator set 13: 0.8 2.8
onnx 1.23.2, operator set 14: 1 3
onnx 1.23.2, operator set 9, momentum 0.5: 0 2
onnx 1.23.2, operator set 9 converted to 15: 1 3
onnxruntime 1.32.0, operator set 7: 1 3
onnxruntime 1.32.0, operator set 8: 1 3
onnxruntime 1.32.0, operator set 9: 1 3
onnxruntime 1.32.0, operator set 13: 1 3
onnxruntime 1.32.0, operator set 14: 1 3
TEXT
diff "$folder/expected" "$folder/seen" && echo "as stated"
