#!/bin/bash
# usage: tests/onnx/newer_cases.sh [ARGUMENTS OF conformance]
# Runs the node suite of a newer ONNX than Debian's: the suite of PyPI's onnx 1.23.1, operator sets
# up to 28, which its own scripts make (write_cases.py). Needs the network, python3 with venv and
# pip, and a minute, or some minutes with --compiled. Leaves nothing behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install onnx==1.23.1
"$folder/venv/bin/python" tests/onnx/write_cases.py "$folder/cases"
"${BAZEL:-bazel}" build --noshow_progress //tests/onnx:conformance
bazel-bin/tests/onnx/conformance "$@" "$folder/cases"
