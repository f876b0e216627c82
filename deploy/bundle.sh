#!/bin/bash
# usage: deploy/bundle.sh OUT_DIR BINARY...
# Copies the binaries, and every shared library they need but glibc's own, into OUT_DIR and OUT_DIR/lib.
# The binaries must have been linked with RPATH $ORIGIN/lib:
#   bazel build --linkopt=-Wl,-rpath,'$ORIGIN/lib' --linkopt=-Wl,--disable-new-dtags TARGET
set -euo pipefail
out=$1
shift
mkdir -p "$out/lib"
for binary in "$@"; do
  install -m 755 "$binary" "$out/"
  if ldd "$binary" | grep 'not found' >&2; then exit 1; fi
  ldd "$binary" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | while read -r lib; do
  case $lib in /usr/local/cuda*) continue ;; esac # the GPU machine has its own toolkit
  case $(basename "$lib") in
    # glibc: must come from the machine, together with its own ld-linux
    libc.so.* | libm.so.* | libmvec.so.* | libpthread.so.* | libdl.so.* | librt.so.* | \
      libresolv.so.* | libutil.so.* | libanl.so.* | libnsl.so.* | ld-linux*) ;;
    # the NVIDIA driver: same
    libcuda.so.* | libnvidia-*) ;;
    *) install -m 644 "$(readlink -f "$lib")" "$out/lib/$(basename "$lib")" ;;
  esac
done
strip --strip-unneeded "$out"/lib/*.so* 2>/dev/null || true
find "$out" -maxdepth 1 -type f -perm -100 -exec strip {} +
