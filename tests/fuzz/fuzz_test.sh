#!/bin/bash
# Runs as many inputs of a fixed seed as take a minute on a machine that has nothing else to do. The
# limit of a run is far longer than a run takes, because machines are shared.
set -euo pipefail
exec tests/fuzz/fuzz --inputs 400 --seed 7 --most-seconds 120 \
  --folder "${TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}"
