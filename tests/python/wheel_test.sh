#!/bin/bash
# Makes a wheel of the ordinary binaries, unpacks it as pip does, and uses what came out.
set -euo pipefail
folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/wheel.XXXXXX")
trap 'rm -rf "$folder"' EXIT
deploy/wheel.sh --out "$folder" --binaries "${KILN_BINARIES:-.}" --any-libraries
unset KILN_SCHEDULER KILN_TRACKER KILN_DB KILN_KEYS KILN_SECRET_FILE KILN_RUNTIME KILN_PROGRAM
PYTHONDONTWRITEBYTECODE=1 "${KILN_PYTHON:-/usr/bin/python3}" tests/python/wheel_test.py "$folder"
