#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/deploy"
exec /usr/bin/python3 -B test_summary_unit.py
