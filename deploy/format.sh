#!/bin/bash
# usage: deploy/format.sh [--check] [FILES]      all sources when no file is given
# Formats C++ with clang-format-19. --check changes nothing. It lists the C++ files that are not
# formatted and, in files of any language, the comment lines of more than 100 columns, which
# clang-format leaves alone. If there is one, the exit status is 1.
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
# Lists the given files, or those of the tree, whose names end in one of the words.
sources() {
  local words=$1 names=() file word
  shift
  if (($# > 0)); then
    for file in "$@"; do
      for word in $words; do [[ $file != *."$word" ]] || printf '%s\0' "$file"; done
    done
    return
  fi
  for word in $words; do names+=(-o -name "*.$word"); done
  # The folders below third_party hold sources of others, as they came.
  find . \( -name '.?*' -o -name 'bazel-*' -o -path './third_party/*' -type d \) -prune -o \
    \( "${names[@]:1}" \) -type f -print0 | sort -z
}
# Prints "FILE:LINE" for each long comment line. $1 has the endings of the files' names, $2 matches
# the beginning of a comment. Comments of two folders are not checked.
long_comments() {
  local endings=$1 mark=$2
  shift 2
  sources "$endings" "$@" | LC_ALL=C.UTF-8 xargs -0r grep -HnE '^.{101}' |
    sed -nE "s#^([^:]*:[0-9]*):[[:space:]]*$mark.*#\1#p" |
    grep -vE '^(\./)?(compiler/codegen/cuda|search/space)/' || true
}
if [[ -z $check ]]; then
  sources "h cc cu c" "$@" | xargs -0r clang-format-19 -i
  exit
fi
# Each core checks several files at once, because starting a process takes longer than reading a
# file.
bad=$(
  sources "h cc cu c" "$@" | xargs -0r -n 40 -P "$(nproc)" clang-format-19 --dry-run 2>&1 |
    sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: .*/\1/p' | sort -u
  long_comments "h cc cu c proto" '(//|\*)' "$@"
  long_comments "py sh bazel bzl" '\#' "$@"
)
[[ -z $bad ]] && exit 0
echo "$bad"
exit 1
