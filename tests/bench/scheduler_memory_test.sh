#!/bin/bash
# Runs the bench of a scheduler's memory with few and short jobs. Their memory must be given back.
set -euo pipefail
kiln=$TEST_SRCDIR/$TEST_WORKSPACE/client/cli/kiln
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/bench"
/usr/bin/python3 -B scheduler_memory.py "$kiln" --jobs 18 --trials 32 --most-growth-mib 100
