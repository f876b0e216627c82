#!/bin/bash
# Runs the tutorials of examples/python to their ends, on the CPU and with few trials, and tests
# their cost model.
set -euo pipefail
here=$PWD folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/examples.XXXXXX")
trap 'rm -rf "$folder"' EXIT
binaries=${KILN_BINARIES:-.}
bash python/stage.sh "$folder/package" "$binaries/client/cli/kiln" "$binaries/runtime/libkiln_runtime.so"
unset KILN_SCHEDULER KILN_TRACKER KILN_DB KILN_KEYS KILN_SECRET_FILE KILN_RUNTIME KILN_PROGRAM
export PYTHONPATH=$folder/package PYTHONDONTWRITEBYTECODE=1 TMPDIR=$folder
cd "$folder"

# expect TEXT SCRIPT ARGUMENTS...: runs a script of the examples and checks that it prints the text.
expect() {
  local text=$1 script=$2 output begin=$SECONDS
  shift 2
  output=$("${KILN_PYTHON:-/usr/bin/python3}" "$here/examples/python/$script" "$@" 2>&1) ||
    { echo "FAILED: $script: $output" >&2; exit 1; }
  [[ $output == *"$text"* ]] || { echo "FAILED: $script did not print '$text' but: $output" >&2; exit 1; }
  echo "ok: $script, $((SECONDS - begin)) s"
}

expect 'largest difference from numpy' tune_matmul.py --trials 2 --size 32 --device cpu
expect '4 records in' tune_conv2d_layer.py --trials 2 --more-trials 2 --channels 8
expect 'Best config:' tune_conv2d_template.py --trials 3 --channels 16
expect 'Mean inference time' tune_network.py --trials 4
expect 'rule: best' tune_with_own_code.py --trials 6 --size 8 --channels 8
# LLVM's tools are those that Kiln itself is built with, where that is Debian's.
if command -v clang-19 || { command -v opt-19 && command -v llc-19; }; then
  expect 'compiled by Kiln: ' own_build.py --trials 3 --size 32
else
  echo "left out: own_build.py, because there is no LLVM 19"
fi
"${KILN_PYTHON:-/usr/bin/python3}" "$here/tests/python/tree_cost_model_test.py" \
  "$here/examples/python"
echo PASSED
