#!/bin/bash
# Runs so many inputs of a fixed seed as take a minute on a machine that has nothing else to do. How
# long a run may take by the clock is far from what it takes, as machines are shared.
set -euo pipefail
exec tests/fuzz/fuzz --inputs 400 --seed 7 --most-seconds 120 \
  --folder "${TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}"
