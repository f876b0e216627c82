#!/bin/bash
# usage: libkiln_runtime_test.sh LIBRARY
# Tests that the library exports the functions of its header and nothing else, and needs glibc
# alone, and that the header is C.
set -euo pipefail
library=$1
fail() { echo "error: $*" >&2; exit 1; }

exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sort)
declared=$(grep -oE '\bkiln_[a-z_]+\(' runtime/kiln_runtime.h | tr -d '(' | sort -u)
[[ $exported == "$declared" ]] || fail "exported and declared differ: $(diff <(echo "$exported") <(echo "$declared"))"

while read -r needed; do
  case $needed in
    libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | ld-linux-*) ;;
    *) fail "it needs $needed" ;;
  esac
done < <(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')

newest=$(objdump -T "$library" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -V | tail -n 1)
[[ $(printf '%s\n' "$newest" 2.35 | sort -V | tail -n 1) == 2.35 ]] || fail "it needs glibc $newest, 2.35 is promised"

# The compiler is the build's C compiler, without any of the build's flags.
echo '#include "runtime/kiln_runtime.h"' | cc -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -I. -x c -
echo "$(wc -w <<<"$declared") functions, $(stat -Lc %s "$library") bytes"
