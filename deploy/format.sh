#!/bin/bash
# usage: deploy/format.sh [--check] [FILES]      all C++ sources when no file is given
# Formats with clang-format-19; --check changes nothing, lists what is not formatted, and then exits with status 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
check=
if [[ ${1:-} == --check ]]; then
  check=1
  shift
fi
if ! command -v clang-format-19 >/dev/null; then
  echo "error: clang-format-19 is not installed (apt-get install clang-format-19)" >&2
  exit 2
fi
if (($# == 0)); then
  mapfile -d '' -t files < <(find . \( -name '.?*' -o -name 'bazel-*' \) -prune -o \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.c' \) -type f -print0 | sort -z)
  set -- "${files[@]}"
fi
if [[ -z $check ]]; then
  exec clang-format-19 -i "$@"
fi
bad=0
for file in "$@"; do
  if ! clang-format-19 --dry-run --Werror "$file" >/dev/null 2>&1; then
    echo "$file"
    bad=1
  fi
done
exit $bad
