#!/bin/bash
# usage: tests/python/clean_root.sh WHEEL [--suite bookworm] [--mirror URL] [--root DIR]
# Follows docs/tutorial.md in a root of Debian that has Python, pip and nothing else: no compiler,
# no linker, no package of ours. Prints the time of each step, and fails if the first kernel, from
# `pip install` to a right product, took more than MAX_S seconds (60; a busy machine needs more).
# The root is made by debootstrap and removed; --root DIR keeps it there, and takes one that is
# there. Needs root, debootstrap, and the network for Debian's packages and PyPI. Not in CI.
set -euo pipefail

usage() { sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}"; exit "$1"; }
suite=bookworm mirror=http://deb.debian.org/debian root='' wheel=''
while (($#)); do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --mirror) mirror=$2; shift 2 ;;
    --root) root=$2; shift 2 ;;
    --help | -h) usage 0 ;;
    *) [[ -z $wheel && -f $1 ]] || usage 2; wheel=$(realpath "$1"); shift ;;
  esac
done
[[ -n $wheel ]] || usage 2
tutorial=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../docs/tutorial.md")

work=$(mktemp -d)
mounted=''
clean() {
  [[ -z $mounted ]] || umount "$root/proc"
  rm -rf --one-file-system "$work"
}
trap clean EXIT
root=${root:-$work/root}
if [[ ! -d $root/usr ]]; then
  echo "== making $root with debootstrap"
  debootstrap --variant=minbase --include=python3-venv,ca-certificates "$suite" "$root" "$mirror" >"$work/log" ||
    { tail -n 5 "$work/log"; exit 1; }
fi
for tool in cc gcc clang ld ld.lld as nvcc; do
  ! chroot "$root" sh -c "command -v $tool" >/dev/null || { echo "FAILED: the root has $tool" >&2; exit 1; }
done
# The names and the certificates by which this machine reaches PyPI.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mount --bind /proc "$root/proc"
mounted=1
rm -rf "$root/srv/tutorial"
mkdir "$root/srv/tutorial"
cp "$wheel" "$root/srv/tutorial/"

# The blocks of the tutorial, each with its time.
awk -v out="$root/srv/tutorial" '
  /^## / { title = substr($0, 4) }
  /^```bash$/ { into = out "/install.sh"; next }
  /^```python$/ { into = out "/tutorial.py"; print "begin(" "\"" title "\")" > into; next }
  /^```$/ { into = ""; next }
  into { print > into }
' "$tutorial"
cat >"$root/srv/tutorial/timed.py" <<'PYTHON'
import time

_begin = time.monotonic()
_title = ""


def begin(title):
    global _begin, _title
    if title != _title:
        if _title:
            print(f"== {_title}: {time.monotonic() - _begin:.1f} s", flush=True)
        _begin, _title = time.monotonic(), title


with open("tutorial.py", encoding="utf-8") as file:
    exec(compile(file.read(), "tutorial.py", "exec"))
begin("")
PYTHON
in_root() {
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/bin:/bin LC_ALL=C.UTF-8 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_ROOT_USER_ACTION=ignore PIP_CERT=/etc/ssl/certs/ca-certificates.crt /bin/bash -euc "cd /srv/tutorial; $1"
}
begin=$(date +%s%N)
in_root 'set +u; . ./install.sh' || { echo "FAILED: install" >&2; exit 1; }
installed=$(date +%s%N)
echo "== Install: $(((installed - begin) / 1000000)) ms"
in_root '. kiln-venv/bin/activate; python timed.py' 2>&1 | tee "$work/said"
kernel=$(sed -n 's/^== A kernel.*: \([0-9]*\)\..*/\1/p' "$work/said")
total=$(((installed - begin) / 1000000000 + kernel))
echo "== from pip install to a tuned, checked product: $total s"
((total <= ${MAX_S:-60})) || { echo "FAILED: $total s, ${MAX_S:-60} are allowed" >&2; exit 1; }
echo PASSED
