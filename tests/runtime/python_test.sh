#!/bin/bash
# Tests the package `kiln` on a network that is compiled here, with Debian's Python and numpy. With
# PyTorch, too:
#   bazel test //tests/runtime:python_test --test_env=KILN_PYTHON=/some/venv/bin/python
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tests/runtime/make_network "$folder/net.kiln" "$folder/expected.txt"
export KILN_RUNTIME=$PWD/runtime/libkiln_runtime.so PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
"${KILN_PYTHON:-/usr/bin/python3}" tests/runtime/python_test.py "$folder"
