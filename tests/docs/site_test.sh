#!/bin/bash
# Makes the site of the documentation, and checks that a link to nowhere is found. It needs MkDocs,
# which Debian's Python does not have: KILN_PYTHON names one that does.
set -euo pipefail
root=$PWD folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/site.XXXXXX")
trap 'rm -rf "$folder"' EXIT
python=${KILN_PYTHON:-python3}
if ! "$python" -c 'import mkdocs, material, mkdocstrings_handlers.python' 2>/dev/null; then
  echo "skipped: $python has no MkDocs; pip install mkdocs mkdocs-material 'mkdocstrings[python]'"
  exit 0
fi
# A copy, since the test changes it; without the links that Bazel makes.
mkdir "$folder/kiln"
cp -rL "$root/README.md" "$root/docs" "$root/deploy" "$root/python" "$folder/kiln/"
cd "$folder/kiln"
fail() { echo "FAILED: $1" >&2; exit 1; }

deploy/site.sh --out "$folder/site" >/dev/null || fail "the site is not made"
page=$folder/site/api/kiln.farm.client.html
grep -q 'Hands in a job' "$page" || fail "the API has no docstring of Client.submit"
grep -q 'id="kiln.farm.client.Client.tune"' "$page" || fail "the API has no Client.tune"
grep -q 'href="tutorial.html"' "$folder/site/index.html" || fail "the first page does not link the tutorial"
! grep -q 'href="https\?://fonts' "$folder/site/index.html" || fail "a page loads fonts from elsewhere"
echo '[nowhere](nowhere.md)' >>docs/python.md
if deploy/site.sh --out "$folder/other" >"$folder/said" 2>&1; then fail "a link to nowhere is taken"; fi
grep -q "nowhere.md" "$folder/said" || fail "the error does not name the link: $(cat "$folder/said")"
echo PASSED
