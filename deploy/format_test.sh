#!/bin/bash
# Tests that every C++ source of the tree is formatted, and that no comment line is too long. A
# test's data files are links to the sources. The link of format.sh leads to the whole tree,
# untracked files included.
set -euo pipefail
script=$(readlink -f "$TEST_SRCDIR/$TEST_WORKSPACE/deploy/format.sh")
# The script must find a bad file and name it.
printf 'int  x ;\n' >"$TEST_TMPDIR/bad.cc"
printf 'int x;\n' >"$TEST_TMPDIR/good.cc"
found=$("$script" --check "$TEST_TMPDIR/bad.cc" "$TEST_TMPDIR/good.cc") && { echo "a bad file passed"; exit 1; }
[[ $found == "$TEST_TMPDIR/bad.cc" ]] || { echo "it named: $found"; exit 1; }
# The script must find a comment line of 101 columns, and let one of 100 columns pass.
long=$(printf '%099d' 0)
printf '#%s\n# %s\n' "$long" "$long" >"$TEST_TMPDIR/long.sh"
found=$("$script" --check "$TEST_TMPDIR/long.sh") && { echo "a long comment passed"; exit 1; }
[[ $found == "$TEST_TMPDIR/long.sh:2" ]] || { echo "it named: $found"; exit 1; }
"$script" --check || {
  echo "not formatted: the files above; deploy/format.sh formats them, and you wrap comments"
  exit 1
}
