#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/layers"
exec /usr/bin/python3 -B plan_unit.py
