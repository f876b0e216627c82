#!/bin/bash
# Tests that every C++ source of the tree is formatted. A test's data files are links to the
# sources. The link of format.sh leads to the whole tree, untracked files included.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/deploy/format.sh")
# The script must find a bad file and name it.
printf 'int  x ;\n' >"$TEST_TMPDIR/bad.cc"
printf 'int x;\n' >"$TEST_TMPDIR/good.cc"
found=$("$script" --check "$TEST_TMPDIR/bad.cc" "$TEST_TMPDIR/good.cc") && { echo "a bad file passed"; exit 1; }
[[ $found == "$TEST_TMPDIR/bad.cc" ]] || { echo "it named: $found"; exit 1; }
"$script" --check || { echo "not formatted: the files above; deploy/format.sh formats them"; exit 1; }
