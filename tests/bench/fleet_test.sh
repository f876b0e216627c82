#!/bin/bash
# Runs a small simulated fleet with faults. Each trial must be counted once.
set -euo pipefail
kiln=$TEST_SRCDIR/$TEST_WORKSPACE/client/cli/kiln
simulator=$TEST_SRCDIR/$TEST_WORKSPACE/tests/fleet/simulator
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/bench"
/usr/bin/python3 -B fleet.py "$kiln" "$simulator" --runners 50 --builders 10 --tasks 4 --exact 200 \
  --build 0.002:0.005 --run 0.005:0.02 --unavailable 0.02 --error 0.05
