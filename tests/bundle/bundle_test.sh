#!/bin/bash
# Packs the static binaries and runs them in a root that holds glibc and nothing else. Tests the
# Python package and the C library outside of that root, on a network that was compiled inside.
# KILN_BUNDLE_DIR=DIR tests the archives in DIR; KILN_BUNDLE_ROOT=DIR uses that root (another
# distribution's).
set -euo pipefail
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}"
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/bundle_test.XXXXXX")
pids=()
finish() {
  local pid
  # unshare itself ignores SIGTERM; its one child is the daemon.
  for pid in "${pids[@]}"; do pkill -TERM -P "$pid" || true; done
  wait
  rm -rf "$work" "${root:-$work}/srv/kiln-test"
}
trap finish EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

dist=${KILN_BUNDLE_DIR:-}
if [[ -z $dist ]]; then
  dist=$work/dist
  bash deploy/bundle.sh --out "$dist" --binaries .
fi

root=${KILN_BUNDLE_ROOT:-$work/root}
home='/srv/kiln-test/a folder'
mkdir -p "$root"/{proc,dev,tmp} "$root$home"
if [[ -z ${KILN_BUNDLE_ROOT:-} ]]; then
  mkdir -p "$root/lib64" "$root/lib/x86_64-linux-gnu"
  cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
  cp -L /lib/x86_64-linux-gnu/{libc.so.6,libm.so.6,libpthread.so.0} "$root/lib/x86_64-linux-gnu/"
fi
tar -C "$root$home" -xzf "$dist/kiln-runner.tar.gz"
tar -C "$root$home" -xJf "$dist/kiln.tar.xz"

# inside COMMAND...: runs the command in the root, in a folder that is not the bundle's. The command
# dies with this process.
as_root=()
((EUID == 0)) || as_root=(--user --map-root-user)
inside() {
  exec env -i /usr/bin/unshare "${as_root[@]}" --mount /bin/bash -c '
    root=$1; shift
    export PATH=/usr/bin:/bin; mount --rbind /dev "$root/dev"
    exec unshare --pid --fork --kill-child=TERM --mount-proc --root="$root" --wd=/srv/kiln-test "$@"' - "$root" "$@"
}
# expect TEXT COMMAND...: checks that the command ends with status 0 and prints TEXT.
expect() {
  local text=$1 output
  shift
  output=$(inside "$@" 2>&1) || fail "$* failed: $output"
  [[ $output == *"$text"* ]] || fail "$* did not print '$text' but: $output"
  echo "ok: ${*#"$home/"}"
}
# daemon NAME COMMAND...: runs the command in the background, and puts its port into $port.
daemon() {
  local name=$1 file=$root/srv/kiln-test/$1.port
  shift
  inside "$@" --listen 127.0.0.1:0 --port-file "/srv/kiln-test/$name.port" 2>"$work/$name.log" &
  pids+=($!)
  for _ in {1..100}; do
    [[ -s $file ]] && break
    sleep 0.1
  done
  [[ -s $file ]] || fail "$name did not start: $(cat "$work/$name.log")"
  port=$(<"$file")
}

kiln=$home/kiln/kiln
runner=$home/kiln-runner/kiln_runner

expect 'Start here' "$kiln" --help
expect 'LLVM' "$kiln" doctor
expect 'trials 8/8  errors 0' "$kiln" tune matmul --args 64,64,64 --trials 8 --target llvm
expect 'matmul' "$kiln" best
expect ' passed, 0 failed, 0 skipped' "$kiln" selftest --device cpu --slack 10
expect '0 passed, 0 failed, 1 skipped' "$kiln" selftest --device cuda
expect '--tracker' "$runner" --help
cat >"$root/srv/kiln-test/request.txtpb" <<'REQUEST'
artifact { device: "null" binary: "a" }
reference { device: "null" binary: "r" }
seed: 1
REQUEST
expect 'costs_s: ' "$runner" --device null --once request.txtpb

# Runs a farm: the small bundle's runner measures what the large bundle's builder made.
daemon tracker "$kiln" tracker
tracker=127.0.0.1:$port
daemon scheduler "$kiln" scheduler --tracker "$tracker" --db /srv/kiln-test/farm.db
scheduler=127.0.0.1:$port
daemon builder "$kiln" builder --tracker "$tracker"
daemon runner "$runner" --tracker "$tracker"
expect 'trials 4/4  errors 0' "$kiln" tune matmul --args 32,32,32 --trials 4 --target llvm --scheduler "$scheduler"

# Runs networks as users of Python and of C do.
expect 'kernels' "$kiln" compile network:mlp --target llvm -o mlp.kiln
tar -C "$work" -xzf "$dist/kiln-runtime.tar.gz"
runtime=$work/kiln-runtime
python='import kiln, sys; net = kiln.load(sys.argv[1]); print(net, len(bytes(net(memoryview(bytes(3136)).cast("f", (1, 784))))))'
shown=$(cd / && env -u KILN_RUNTIME PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$runtime" \
  /usr/bin/python3 -c "$python" "$root/srv/kiln-test/mlp.kiln") || fail "the Python package: $shown"
[[ $shown == *'float32[1, 784]'*'on cpu> 40' ]] || fail "the Python package printed $shown"
cat >"$work/main.c" <<'C'
#include <kiln_runtime.h>
#include <stdio.h>
int main(int argc, char** argv) {
  KilnNetwork* net = kiln_load(argv[argc - 1], NULL);
  if (net == NULL) return puts(kiln_last_error()), 1;
  static float x[784], y[10];
  const void* inputs[] = {x};
  void* outputs[] = {y};
  if (kiln_run(net, inputs, 1, outputs, 1) != 0) return puts(kiln_last_error()), 1;
  kiln_free(net);
  return 0;
}
C
cc -I"$runtime" "$work/main.c" -o "$work/main" -L"$runtime" -lkiln_runtime -Wl,-rpath,"$runtime"
"$work/main" "$root/srv/kiln-test/mlp.kiln" || fail "the C program"
echo "ok: kiln-runtime"
echo PASSED
