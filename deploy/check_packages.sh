#!/bin/bash
# usage: deploy/check_packages.sh DIR [--suite bookworm] [--mirror URL] [--root DIR]
# Installs the packages of DIR (deploy/deb.sh) in a root of Debian that has nothing else, starts a
# farm there with the ExecStart lines of the units, as the user and with the privileges that they
# name, runs a job on the device null and one on the CPU, removes and purges the packages, and looks
# what is left. The root is made by debootstrap and removed; --root DIR keeps it there, and takes
# one that is there. Needs root, debootstrap, iproute2, and the network for Debian's packages. Not
# in CI.
set -euo pipefail

usage() { sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}"; exit "$1"; }
suite=bookworm mirror=http://deb.debian.org/debian root='' packages=''
while (($#)); do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --mirror) mirror=$2; shift 2 ;;
    --root) root=$2; shift 2 ;;
    --help | -h) usage 0 ;;
    *) [[ -z $packages && -d $1 ]] || usage 2; packages=$(realpath "$1"); shift ;;
  esac
done
[[ -n $packages ]] || usage 2
fail() { echo "FAILED: $*" >&2; exit 1; }

work=$(mktemp -d)
mounted=''
clean() {
  [[ -z $mounted ]] || umount "$root/proc"
  rm -rf --one-file-system "$work"
}
trap clean EXIT
root=$(realpath -m "${root:-$work/root}")
if [[ ! -d $root/usr ]]; then
  echo "== making $root with debootstrap"
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$work/log" || { tail -n 5 "$work/log"; exit 1; }
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"

in_root() { chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
# The files of the root, but for those of the package manager and of the accounts.
files() {
  find "$root" -xdev -not -path "$root/proc/*" -not -path "$root/var/lib/dpkg/*" -not -path "$root/var/lib/apt/*" \
    -not -path "$root/var/cache/*" -not -path "$root/var/log/*" -not -path "$root/tmp/*" \
    -not -path "$root/srv/packages*" -not -name '*-' -printf '/%P\n' | sort
}

# The farm, in a network and among processes of its own. The root becomes that of its namespace,
# because a process whose root is another one may make no user namespaces.
farm() {
  unshare --net --mount --pid --fork --kill-child /bin/bash -euo pipefail -c '
    root=$1
    ip link set lo up
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    cd "$root"
    pivot_root . .
    umount -l .
    exec /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
      /bin/bash -euo pipefail /srv/packages/farm.sh' - "$root"
}

rm -rf "$root/srv/packages"
mkdir -p "$root/srv/packages"
cp "$packages"/*.deb "$root/srv/packages/"
cat >"$root/srv/packages/farm.sh" <<'FARM'
# begin UNIT [DEVICE]: starts a daemon as its unit says.
begin() {
  local unit=/lib/systemd/system/kiln-$1.service user words
  [[ -f $unit ]] || unit=/lib/systemd/system/kiln-$1@.service
  user=$(sed -n 's/^User=//p' "$unit")
  read -ra words < <(sed -n 's/^ExecStart=//p' "$unit" | sed "s/%i/${2:-}/g")
  cd "$(sed -n 's/^WorkingDirectory=//p' "$unit")"
  setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    "${words[@]}" 2>"/tmp/$1${2:-}.log" &
}
begin tracker; begin scheduler; begin builder; begin runner null; begin runner cpu
export KILN_TRACKER=127.0.0.1:9190 KILN_SCHEDULER=127.0.0.1:9290
cd /tmp
for _ in {1..120}; do [[ $(kiln workers 2>&1) == *'llvm, cpu'* ]] && break; sleep 1; done
kiln workers
grep -h 'sandbox of' /tmp/*.log
for target in null llvm; do
  kiln tune matmul --args 64,64,64 --trials 8 --target $target --quiet >/tmp/job 2>&1 || { cat /tmp/job /tmp/*.log; exit 1; }
  echo "== a job on $target: $(kiln jobs | grep -m 1 succeeded)"
done
kill $(jobs -p)
wait || true
FARM

mount --bind /proc "$root/proc"
mounted=1
in_root apt-get -q update >"$work/log"
in_root apt-get -q -y install --no-install-recommends init-system-helpers systemd-standalone-sysusers \
  systemd-standalone-tmpfiles >>"$work/log" 2>&1 || { tail "$work/log"; exit 1; }
files >"$work/before"
in_root bash -c 'apt-get -q -y install --no-install-recommends /srv/packages/*.deb' >"$work/log" 2>&1 ||
  { cat "$work/log"; fail "the packages do not install"; }
echo "== installed: $(in_root dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}; ' kiln kiln-runner libkiln-runtime)"
in_root kiln config --check /etc/kiln/kiln.toml
[[ $(stat -c %U:%a "$root/var/lib/kiln" | cut -d: -f2) == 750 ]] || fail "/var/lib/kiln is not there, or open"
in_root bash -c 'man=$(zcat /usr/share/man/man1/kiln-tune.1.gz) && [[ $man == *--trials* || $man == *trials* ]]' ||
  echo "the root has no manual pages: dpkg leaves them out there"
farm || fail "the farm"
in_root dpkg --remove kiln-runner kiln libkiln-runtime >"$work/log" 2>&1 || { cat "$work/log"; fail "remove"; }
grep '^kiln: ' "$work/log" || fail "remove does not say that there is data"
files >"$work/after"
left=$(comm -13 "$work/before" "$work/after" | grep -vE '^/(var/lib/kiln|etc/kiln)(/|$)' || true)
[[ -z $left ]] || fail "remove leaves $left"
[[ -f $root/var/lib/kiln/kiln.db && -f $root/etc/kiln/kiln.toml ]] || fail "remove took data or the configuration"
in_root dpkg --purge kiln-runner kiln libkiln-runtime >"$work/log" 2>&1 || { cat "$work/log"; fail "purge"; }
grep '^kiln: removing' "$work/log" || fail "purge does not say what it removes"
files >"$work/after"
diff "$work/before" "$work/after" || fail "purge leaves the files above, or took them"
! in_root getent passwd kiln || fail "the user kiln is left"
echo PASSED
