#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/metrics"
/usr/bin/python3 -B exposition_unit.py
