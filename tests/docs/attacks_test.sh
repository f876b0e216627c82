#!/bin/bash
# Checks the tests that docs/attacks.md names. A test's data files are links to the sources. The
# link of attacks.py leads to the whole tree.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/docs/attacks.py")
exec /usr/bin/python3 -B "$script" "${script%/tests/docs/attacks.py}"
