#!/bin/bash
# Checks the includes of every source file against the layer table. A test's data files are links to
# the sources. The link of layers.py leads to the whole tree, untracked files included.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/layers/layers.py")
workspace=${script%/tests/layers/layers.py}
exec /usr/bin/python3 -B "$script" "$workspace"
