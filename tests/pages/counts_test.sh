#!/bin/bash
# Each page of a set-up says how many commands it has. A test's data files are links to the sources.
# The link of check_counts.py leads to the whole tree.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/pages/check_counts.py")
exec /usr/bin/python3 -B "$script" "${script%/tests/pages/check_counts.py}"
