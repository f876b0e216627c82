#!/bin/bash
# Finding: systemd 252's group of system calls for ordinary services lacks the calls with which a
# service confines itself, and the group that has them does not exist yet.
#
# A unit with SystemCallFilter=@system-service is the advice for a service that needs nothing
# special. A service that then confines its own children by seccomp(2) or Landlock gets EPERM, so
# that the hardening of the unit takes the service's own hardening away. The documentation of later
# versions names a group @sandbox for these calls; version 252 has no such group. A unit that is to
# work on Debian 12 names the single calls.
#
# The script takes systemd 252.39-1~deb12u2 from Debian's packages and asks `systemd-analyze
# syscall-filter`, which needs no running systemd.
#
# Needs: Debian 12 on x86-64 and Debian's mirror. No GPU. Ends with status 0 while the package
# behaves as stated.
set -euo pipefail
readonly VERSION=252.39-1~deb12u2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

apt-get download "systemd=$VERSION" "libsystemd-shared=$VERSION" >/dev/null
for package in *.deb; do dpkg-deb -x "$package" root; done
analyze() {
  LD_LIBRARY_PATH=root/usr/lib/x86_64-linux-gnu/systemd:root/lib/x86_64-linux-gnu/systemd \
    root/usr/bin/systemd-analyze --no-pager syscall-filter "$@"
}
# calls GROUP: the system calls of a group, those of the groups within it included.
calls() {
  local word
  for word in $(analyze "$1" | sed -n 's/^ *\([@a-z0-9_]*\)$/\1/p' | grep -vxF "$1"); do
    if [[ $word == @* ]]; then calls "$word"; else echo "$word"; fi
  done
}

service=$(calls @system-service | sort -u)
known=$(calls @known | sort -u)
echo "systemd $VERSION: @system-service has $(wc -l <<<"$service") calls"
for call in seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self; do
  grep -qx "$call" <<<"$known" || { echo "$call is not known at all"; exit 1; }
  if grep -qx "$call" <<<"$service"; then
    echo "$call is one of them now"
    exit 1
  fi
  echo "$call: not one of them"
done
grep -qx prctl <<<"$service"
if analyze @sandbox >/dev/null 2>answer; then
  echo "there is a group @sandbox now"
  exit 1
fi
echo "@sandbox: $(tail -n 1 answer)"
