#!/bin/bash
# Checks the includes of every source file against the layer table. Data files of a test are links to the
# sources; following that of layers.py leads to the whole tree, untracked files included.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/layers/layers.py")
workspace=${script%/tests/layers/layers.py}
exec /usr/bin/python3 -B "$script" "$workspace"
