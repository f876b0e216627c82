#!/bin/bash
# usage: deploy/format.sh [--check] [FILES]      all C++ sources when no file is given
# Formats with clang-format-19. --check changes nothing, lists the files that are not formatted, and
# then exits with status 1.
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
# Each core checks several files at once, because starting a process takes longer than reading a
# file.
bad=$(printf '%s\0' "$@" | xargs -0 -n 40 -P "$(nproc)" clang-format-19 --dry-run 2>&1 |
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: .*/\1/p' | sort -u)
[[ -z $bad ]] && exit 0
echo "$bad"
exit 1
