#!/bin/bash
# The package `kiln` under Debian's Python, on a network that is compiled here.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tests/runtime/make_network "$folder/net.kiln" "$folder/expected.txt"
export KILN_RUNTIME=$PWD/runtime/libkiln_runtime.so PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 tests/runtime/python_test.py "$folder"
