#!/bin/bash
# usage: deploy/wheel.sh [--out DIR] [--binaries DIR] [--any-libraries]
# Builds with --config=static and packs the Python package into DIR (default: dist), one wheel for
# Python 3.10 and newer on x86-64 Linux with glibc 2.36 or newer: Python code, messages,
# libkiln_runtime.so and the program `kiln`. --binaries DIR packs client/cli/kiln and
# runtime/libkiln_runtime.so of DIR instead of building them. --any-libraries allows a program that
# needs this machine's libraries; such a wheel is for this machine alone.
set -euo pipefail

readonly MAX_MIB=60

out=dist binaries= any_libraries=
while (($#)); do
  case $1 in
    --out | --binaries)
      [[ -n ${2:-} ]] || { echo "error: $1 needs a folder" >&2; exit 2; }
      if [[ $1 == --out ]]; then out=$2; else binaries=$(realpath -e "$2"); fi
      shift 2 ;;
    --any-libraries) any_libraries=1; shift ;;
    --help | -h) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "error: unknown argument $1; see deploy/wheel.sh --help" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
out=$(realpath "$out")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/setup.sh
. deploy/portable.sh

[[ -n $binaries ]] || build_static //client/cli:kiln //runtime:libkiln_runtime.so
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
bytes=$(stat -c %s "$wheel")
((bytes <= MAX_MIB << 20)) || stop "$wheel has $bytes bytes, $MAX_MIB MiB are allowed"
say "$wheel: $bytes bytes, unpacked $(du -bs "$stage" | cut -f1)"
