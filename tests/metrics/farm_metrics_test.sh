#!/bin/bash
set -euo pipefail
root=$TEST_SRCDIR/$TEST_WORKSPACE
cd "$root/tests/metrics"
/usr/bin/python3 -B farm_metrics.py "$root/client/cli/kiln" "$root"
