#!/bin/bash
# usage: deploy/site.sh [--out DIR]
# Makes the documentation as pages of HTML in DIR (default: site): the documents of docs/, and the
# API of the Python package out of its docstrings. Needs MkDocs with two of its packages:
#   pip install mkdocs mkdocs-material 'mkdocstrings[python]'
# KILN_PYTHON names the Python that has them. Every link that leads nowhere is an error.
set -euo pipefail

out=site
while (($#)); do
  case $1 in
    --out) [[ -n ${2:-} ]] || { echo "error: --out needs a folder" >&2; exit 2; }; out=$2; shift 2 ;;
    --help | -h) sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "error: unknown argument $1; see deploy/site.sh --help" >&2; exit 2 ;;
  esac
done
out=$(realpath -m "$out")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${KILN_PYTHON:-python3}
"$python" -c 'import mkdocs, material, mkdocstrings_handlers.python' 2>/dev/null || {
  echo "error: $python has no MkDocs with its packages; pip install mkdocs mkdocs-material 'mkdocstrings[python]'" >&2
  exit 1
}
# The packages say in red that their next versions will differ.
export NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true PYTHONDONTWRITEBYTECODE=1
# With --quiet MkDocs would not count warnings, and --strict would do nothing.
said=$("$python" -m mkdocs build --strict --config-file deploy/site/mkdocs.yml --site-dir "$out" 2>&1) || {
  grep -v '^INFO' <<<"$said" >&2
  exit 1
}
echo "$out: $(find "$out" -name '*.html' | wc -l) pages"
