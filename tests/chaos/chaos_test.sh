#!/bin/bash
# Runs twelve faults of a fixed seed: six in a farm behind proxies, six in one of `kiln farm up`.
set -euo pipefail
kiln=$TEST_SRCDIR/$TEST_WORKSPACE/client/cli/kiln
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/chaos"
unset KILN_KEYS KILN_SECRET_FILE KILN_SCHEDULER KILN_TRACKER KILN_DB XDG_STATE_HOME
exec /usr/bin/python3 -B chaos.py "$kiln" --seed 20261129 --faults 12 --per-farm 6 --shapes plain,farm --longest 1 \
  --trials 200 --folder "$TEST_TMPDIR"
