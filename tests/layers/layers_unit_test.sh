#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/layers"
exec /usr/bin/python3 -B layers_unit.py
