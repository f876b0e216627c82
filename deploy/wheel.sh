#!/bin/bash
# usage: deploy/wheel.sh [--out DIR] [--binaries DIR] [--any-libraries]
# Builds with --config=static and packs the Python package into DIR (default: dist), one wheel for
# Python 3.10 and newer on x86-64 Linux with glibc 2.35 or newer: Python code, messages,
# libkiln_runtime.so and the program `kiln`. --binaries DIR packs client/cli/kiln and
# runtime/libkiln_runtime.so of DIR instead of building them. --any-libraries allows a program that
# needs this machine's libraries; such a wheel is for this machine alone. Where auditwheel and
# abi3audit are installed (pip install auditwheel abi3audit), they check the wheel as well.
set -euo pipefail

readonly MAX_MIB=60

. "$(dirname "${BASH_SOURCE[0]}")/portable.sh"
begin_packing "${BASH_SOURCE[0]}" "$@"
. deploy/setup.sh

[[ -n $binaries ]] || build_static //client/cli:kiln //runtime:libkiln_runtime.so
# audit WHEEL PLATFORM MODULE: has the tools of PyPI check what the names of the files promise. The
# stable ABI has buffers from Python 3.11 on, by the functions and the struct that 3.10 has.
audit() {
  if command -v auditwheel >/dev/null; then
    local said
    said=$(auditwheel show "$1" | tr '\n' ' ')
    [[ $said == *"\"$2\""* ]] || stop "auditwheel does not find $1 to be of $2: $said"
    say "auditwheel: the wheel is of $2"
  else
    say "auditwheel is not installed, and does not check the wheel"
  fi
  if command -v abi3audit >/dev/null; then
    abi3audit --strict --assume-minimum-abi3 3.11 "$3" || stop "abi3audit finds $(basename "$3") to leave the stable ABI"
    say "abi3audit: $(basename "$3") keeps to the stable ABI"
  else
    say "abi3audit is not installed, and does not check the wheel"
  fi
}

stage=$(mktemp -d)
trap 'rm -rf "$stage" "$out"/*.whl.part' EXIT

bash python/stage.sh "$stage" "$binaries/client/cli/kiln" "$binaries/runtime/libkiln_runtime.so"
platform=manylinux_${GLIBC_NEWEST/./_}_x86_64
[[ -z $any_libraries ]] || platform=linux_x86_64
for binary in "$stage/kiln/bin/kiln" "$stage/kiln/libkiln_runtime.so" "$stage/kiln/_caller.abi3.so"; do
  strip "$binary"
  [[ -n $any_libraries ]] || check_portable "$binary"
done
wheel=$(/usr/bin/python3 -B deploy/make_wheel.py "$stage" python/pyproject.toml python/README.md "$platform" "$out")
[[ -n $any_libraries ]] || audit "$wheel" "$platform" "$stage/kiln/_caller.abi3.so"
bytes=$(stat -c %s "$wheel")
((bytes <= MAX_MIB << 20)) || stop "$wheel has $bytes bytes, $MAX_MIB MiB are allowed"
say "$wheel: $bytes bytes, unpacked $(du -bs "$stage" | cut -f1)"
