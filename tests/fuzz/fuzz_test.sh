#!/bin/bash
# Runs the fuzzer for a while, with a fixed seed.
set -euo pipefail
exec tests/fuzz/fuzz --inputs 2000 --seconds 45 --seed 7 --folder "${TEST_UNDECLARED_OUTPUTS_DIR:-$TEST_TMPDIR}"
