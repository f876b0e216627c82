#!/bin/bash
# docs/messages.md has the words of the sources. A test's data files are links to the sources. The
# link of messages.py leads to the whole tree.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/docs/messages.py")
exec /usr/bin/python3 -B "$script" "${script%/tests/docs/messages.py}"
