#!/bin/bash
# usage: deploy/bundle.sh [--out DIR] [--binaries DIR]
# Builds with --config=static and packs into DIR (default: dist), for any x86-64 Linux with glibc
# 2.35 or newer:
#   kiln-runner.tar.gz   the runner alone, for a box that only measures
#   kiln.tar.xz          the one binary: command line, tracker, scheduler, builder, runner
#   kiln-runtime.tar.gz  what runs compiled networks: library, C header, Python package
# --binaries DIR packs client/cli/kiln, runner/kiln_runner and runtime/libkiln_runtime.so of DIR
# instead of building them. Nothing is packed that would not run elsewhere: another library than
# glibc's or a newer glibc is an error.
set -euo pipefail

readonly RUNNER_MAX_MB=8
readonly KILN_MAX_MB=60
readonly RUNTIME_MAX_MB=4

. "$(dirname "${BASH_SOURCE[0]}")/portable.sh"
begin_packing "${BASH_SOURCE[0]}" "$@"
. deploy/setup.sh

# add FOLDER BINARY
add() { install_portable "$2" "$stage/$1/$(basename "$2")"; }

# pack FOLDER ARCHIVE MAX_MB COMPRESSOR...: packs the folder. README.txt comes from standard input.
pack() {
  local folder=$1 archive=$2 max_mb=$3 bytes
  shift 3
  cat >"$stage/$folder/README.txt"
  chmod 644 "$stage/$folder/README.txt"
  # The same files give the same archive. The archive gets its own name only when it is complete.
  tar -C "$stage" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - "$folder" |
    "$@" >"$out/$archive.part"
  bytes=$(stat -c %s "$out/$archive.part")
  ((bytes < max_mb * 1000000)) || stop "$archive has $bytes bytes, $max_mb MB are allowed"
  mv "$out/$archive.part" "$out/$archive"
  say "$out/$archive: $bytes bytes, unpacked $(du -bs "$stage/$folder" | cut -f1)"
}

command -v xz >/dev/null || stop "xz is not installed (apt-get install xz-utils)"
[[ -n $binaries ]] || build_static //client/cli:kiln //runner:kiln_runner //runtime:libkiln_runtime.so
stage=$(mktemp -d)
trap 'rm -rf "$stage" "$out"/*.tar.*.part' EXIT

add kiln-runner "$binaries/runner/kiln_runner"
pack kiln-runner kiln-runner.tar.gz $RUNNER_MAX_MB gzip -9n <<'README'
Kiln's runner, for x86-64 Linux with glibc 2.35 or newer; it needs nothing else and runs from any folder.
Join a farm: ./kiln_runner --listen 0.0.0.0:9490 --tracker HOST:9190 --keys FOLDER
All flags:   ./kiln_runner --help
README
add kiln "$binaries/client/cli/kiln"
pack kiln kiln.tar.xz $KILN_MAX_MB xz -6 -T0 <<'README'
Kiln, for x86-64 Linux with glibc 2.35 or newer; it needs nothing else and runs from any folder.
Start here: ./kiln doctor, then ./kiln tune matmul --args 512,512,512
A GPU:      ./kiln selftest, then ./kiln tune matmul --args 1024,1024,1024 --target cuda
A farm:     ./kiln tracker|scheduler|builder|runner --help
README
add kiln-runtime/kiln "$binaries/runtime/libkiln_runtime.so"
install -m 644 python/kiln/*.py python/kiln/py.typed "$stage/kiln-runtime/kiln/"
install -m 644 runtime/kiln_runtime.h "$stage/kiln-runtime/"
install -m 644 python/runtime.toml "$stage/kiln-runtime/pyproject.toml"
ln -s kiln/libkiln_runtime.so "$stage/kiln-runtime/libkiln_runtime.so"
pack kiln-runtime kiln-runtime.tar.gz $RUNTIME_MAX_MB gzip -9n <<'README'
What runs networks that Kiln compiled (kiln compile ... -o net.kiln), for x86-64 Linux with glibc 2.35 or newer.
Networks for a GPU need NVIDIA's driver besides, and nothing else.
Python:  PYTHONPATH=THIS-FOLDER python3, or once: pip install THIS-FOLDER      (3.9 or newer; numpy, PyTorch as you like)
           import kiln
           net = kiln.load("net.kiln")
           y = net(x)
C, C++:  cc -ITHIS-FOLDER main.c -LTHIS-FOLDER -lkiln_runtime -Wl,-rpath,THIS-FOLDER      (kiln_runtime.h says how)
README
