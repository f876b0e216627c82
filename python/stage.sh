#!/bin/bash
# usage: python/stage.sh FOLDER PROGRAM LIBRARY
# Makes FOLDER/kiln, the whole package as a wheel holds it: the Python code, the messages, the
# program `kiln` (PROGRAM), libkiln_runtime.so (LIBRARY), and the module _caller for the stable ABI
# of Python 3.11. PYTHONPATH=FOLDER then imports it.
set -euo pipefail
(($# == 3)) || { sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
out=$1 program=$2 library=$3
sources=$(dirname "${BASH_SOURCE[0]}")
(cd "$sources" && find -L kiln -name '*.py' -o -name py.typed) | while read -r file; do
  install -D -m 644 "$sources/$file" "$out/$file"
done
bash "$sources/make_protos.sh" "$out"
install -D -m 755 "$program" "$out/kiln/bin/kiln"
install -m 755 "$library" "$out/kiln/libkiln_runtime.so"
cc -std=c11 -O2 -fPIC -shared -Wall -Wextra -Werror -fvisibility=hidden -DPy_LIMITED_API=0x030B0000 \
  -I"$sources/.." $(/usr/bin/python3-config --includes) "$sources/native/caller.c" -o "$out/kiln/_caller.abi3.so"
