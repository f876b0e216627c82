#!/bin/bash
# Checks the links of README.md, docs/ and examples/. A test's data files are links to the sources.
# The link of links.py leads to the whole tree.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/tests/docs/links.py")
cd "${script%/tests/docs/links.py}"
find README.md docs examples -name '*.md' -print0 | xargs -0 /usr/bin/python3 -B "$script"
