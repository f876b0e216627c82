#!/bin/bash
# usage: tests/onnx/newer_cases.sh [ARGUMENTS OF conformance]
# Runs the cases of a newer ONNX than Debian's: those that PyPI's onnx 1.16.2 holds, operator set 21. Wants the network,
# python3 with pip, and a minute, or two with --compiled; leaves nothing behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip --quiet download --no-deps --dest "$folder" onnx==1.16.2
python3 -m zipfile --extract "$folder"/onnx-*.whl "$folder/wheel"
"${BAZEL:-bazel}" build --noshow_progress //tests/onnx:conformance
bazel-bin/tests/onnx/conformance "$@" "$folder/wheel/onnx/backend/test/data"
