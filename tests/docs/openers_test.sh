#!/bin/bash
# Counts comments that begin with a word in place of a subject. Data files of a test are links to
# the sources; the real path of openers.py leads to the whole tree.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/docs/openers.py")
exec /usr/bin/python3 -B "$script" "${script%/tests/docs/openers.py}"
