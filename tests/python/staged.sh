#!/bin/bash
# usage: staged.sh TEST.py [ARGUMENTS]
# Runs the test with the whole package on its path, by Debian's Python. With another one:
#   bazel test //tests/python:all --test_env=KILN_PYTHON=/some/venv/bin/python
# Outside of Bazel KILN_BINARIES=DIR names the folder of client/cli/kiln and
# runtime/libkiln_runtime.so: bazel-bin.
set -euo pipefail
folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/python.XXXXXX")
trap 'rm -rf "$folder"' EXIT
binaries=${KILN_BINARIES:-.}
bash python/stage.sh "$folder" "$binaries/client/cli/kiln" "$binaries/runtime/libkiln_runtime.so"
unset KILN_SCHEDULER KILN_TRACKER KILN_DB KILN_KEYS KILN_SECRET_FILE KILN_RUNTIME KILN_PROGRAM
export PYTHONPATH=$folder PYTHONDONTWRITEBYTECODE=1 KILN_TEST_FOLDER=$folder
# A Python that is killed leaves its temporary files.
export TMPDIR=$folder
"${KILN_PYTHON:-/usr/bin/python3}" -W error::ResourceWarning "$@"
