#!/bin/bash
# Runs the unit tests of the parts of tests/chaos.
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/chaos"
exec /usr/bin/python3 -B chaos_unit.py
