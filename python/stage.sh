#!/bin/bash
# usage: python/stage.sh FOLDER PROGRAM LIBRARY
# Makes FOLDER/kiln, the whole package as a wheel holds it: the Python code, the messages, the
# program `kiln` (PROGRAM) and libkiln_runtime.so (LIBRARY). PYTHONPATH=FOLDER then imports it.
set -euo pipefail
(($# == 3)) || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
out=$1 program=$2 library=$3
sources=$(dirname "${BASH_SOURCE[0]}")
(cd "$sources" && find -L kiln -name '*.py' -o -name py.typed) | while read -r file; do
  install -D -m 644 "$sources/$file" "$out/$file"
done
bash "$sources/make_protos.sh" "$out"
install -D -m 755 "$program" "$out/kiln/bin/kiln"
install -m 755 "$library" "$out/kiln/libkiln_runtime.so"
