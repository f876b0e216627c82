#!/bin/bash
# usage: libkiln_runtime_test.sh LIBRARY static|shared
# The library exports the functions of its header and nothing else, and needs no library of Kiln's; built static it needs
# glibc alone. The header is C.
set -euo pipefail
library=$1
linking=$2
fail() { echo "error: $*" >&2; exit 1; }

exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sort)
# The linker keeps templates that libstdc++.so has, too, under their versions.
[[ $linking == static ]] || exported=$(grep -v '^_ZNSt' <<<"$exported")
declared=$(grep -oE '\bkiln_[a-z_]+\(' runtime/kiln_runtime.h | tr -d '(' | sort -u)
[[ $exported == "$declared" ]] || fail "exported and declared differ: $(diff <(echo "$exported") <(echo "$declared"))"

while read -r needed; do
  case $needed in
    libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | ld-linux-*) ;;
    libstdc++.so.6 | libgcc_s.so.1 | libfmt.so.* | libabsl_*.so.*) [[ $linking == shared ]] || fail "it needs $needed" ;;
    *) fail "it needs $needed" ;;
  esac
done < <(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')

if undefined=$(nm -D --undefined-only "$library" | grep -E ' (kiln|_ZN4kiln)'); then fail "undefined: $undefined"; fi
# The C compiler of the build, without any flags of it.
echo '#include "runtime/kiln_runtime.h"' | cc -std=c99 -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -I. -x c -
echo "$(wc -w <<<"$declared") functions, $(stat -Lc %s "$library") bytes"
