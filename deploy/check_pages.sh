#!/bin/bash
# usage: deploy/check_pages.sh [--root DIR] KILN [SETUP...]
# Types the commands of the pages by set-up in places like those that the pages begin with, and
# fails where one of them fails. The set-ups are one-box, laptop-and-lab, slurm, kubernetes and
# ci; all unless some are named. The places are a root of debootstrap with the program KILN and
# an ordinary user, two network namespaces with a cable, and Debian's Slurm as nobody. There is
# no GPU: what is typed in place of a command stands in tests/pages/setups.py. --root DIR takes
# a root that debootstrap has made. Takes ten minutes. Needs root, debootstrap, iproute2, the
# network for Debian's packages; slurm-wlm and munge for Slurm, kubectl for Kubernetes,
# libonnx-testdata for a model. KILN has to be one of --config=static. KILN_PAGES_VERBOSE=1
# prints what the commands print.
set -euo pipefail

usage() { sed -n '2,11s/^# //p' "${BASH_SOURCE[0]}"; exit "$1"; }
setups=() kiln='' base=''
while (($#)); do
  case $1 in
    --root) base=$(realpath -e "$2"); shift 2 ;;
    --help | -h) usage 0 ;;
    *) if [[ -z $kiln ]]; then kiln=$(realpath -e "$1"); else setups+=("$1"); fi; shift ;;
  esac
done
[[ -n $kiln ]] || usage 2
((${#setups[@]})) || setups=(one-box laptop-and-lab slurm kubernetes ci)
stop() { echo "check_pages: $*" >&2; exit 2; }
((EUID == 0)) || stop "expected root, for namespaces and another root"
tree=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
model=/usr/share/libonnx-testdata/data/pytorch-converted/test_Linear/model.onnx
[[ -f $model ]] || stop "no $model; apt-get install libonnx-testdata"

work=$(mktemp -d /tmp/kiln-check-pages.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
chmod 755 "$work"
root=$work/root
if [[ -n $base ]]; then
  cp -a --one-file-system "$base" "$root"
else
  echo "== making a root with debootstrap"
  debootstrap --variant=minbase bookworm "$root" "${KILN_MIRROR:-http://deb.debian.org/debian}" >"$work/log" ||
    { tail -n 5 "$work/log"; exit 1; }
fi
install -m 755 "$kiln" "$root/usr/bin/kiln"
mkdir -p "$root/srv/pages"
cp "$model" "$root/srv/pages/model.onnx"
mkdir "$root/srv/pages/deploy" && cp -r "$tree/deploy/kubernetes" "$root/srv/pages/deploy/"
for program in /usr/bin/kubectl; do
  [[ ! -x $program ]] || install -m 755 "$(realpath "$program")" "$root$program"
done
printf '127.0.0.1 localhost\n10.77.0.1 box box1\n10.77.0.2 laptop\n' >"$root/etc/hosts"

# in_namespaces COMMAND...: the network has loopback alone, and no process outlives the command.
in_namespaces() {
  unshare --mount --net --pid --uts --mount-proc --fork --kill-child \
    sh -euc 'hostname box; ip link set lo up; exec "$@"' sh "$@"
}
failed=0
for setup in "${setups[@]}"; do
  if [[ $setup != slurm ]]; then
    in_namespaces /usr/bin/python3 -B "$tree/tests/pages/run.py" "$tree" "$root" "$work" "$setup" || failed=1
    continue
  fi
  for program in slurmctld slurmd munged sbatch; do
    command -v "$program" >/dev/null || stop "no $program; apt-get install slurm-wlm munge"
  done
  mkdir -p "$work/tree/docs" "$work/slurm_home/bin"
  cp -r "$tree/tests" "$work/tree/"
  cp "$tree"/docs/*.md "$work/tree/docs/"
  install -m 755 "$kiln" "$work/slurm_home/bin/kiln"
  chown -R nobody "$work/slurm_home"
  printf '127.0.0.1 localhost\n10.77.0.1 login box\n' >"$work/hosts"
  in_namespaces sh -euc 'ip address add 10.77.0.1/32 dev lo; mount --bind "$1/hosts" /etc/hosts
    exec runuser -u nobody -- env HOME="$1/slurm_home" USER=nobody PATH="$1/slurm_home/bin:$PATH" \
      /usr/bin/python3 -B "$1/tree/tests/pages/run.py" "$1/tree" - "$1/slurm_home" slurm' sh "$work" || failed=1
done
exit $failed
