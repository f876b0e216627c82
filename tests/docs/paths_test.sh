#!/bin/bash
# Checks the paths that README.md and the pages of docs/ name. docs/experiments/ is left out,
# because its pages tell of earlier trees. A test's data files are links to the sources. The link of
# paths.py leads to the whole tree.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/docs/paths.py")
cd "${script%/tests/docs/paths.py}"
/usr/bin/python3 -B "$script" . README.md findings/README.md docs/*.md docs/howto/*.md
