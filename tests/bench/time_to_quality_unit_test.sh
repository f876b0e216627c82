#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/bench"
exec /usr/bin/python3 -B time_to_quality_unit.py
