#!/bin/bash
# Packs this build's programs and looks into the packages; checks the configuration files that ship.
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE"
fail() { echo "FAILED: $*" >&2; exit 1; }

kiln=client/cli/kiln
for file in deploy/deb/kiln.toml deploy/kubernetes/kiln.toml; do
  "$kiln" config --check "$file" || fail "$file has mistakes"
done
for tool in dpkg-deb dpkg-parsechangelog strip; do
  command -v $tool >/dev/null || { echo "skipped: $tool is not installed (apt-get install dpkg-dev)"; exit 0; }
done

out=$TEST_TMPDIR/dist
bash deploy/deb.sh --out "$out" --binaries . --any-libraries
expect() {
  local said
  said=$(dpkg-deb --field "$1" "$2")
  [[ $said == $3 ]] || fail "$2 of $1 is $said, expected $3"
}
packages=("$out"/kiln_*_amd64.deb "$out"/kiln-runner_*_all.deb "$out"/libkiln-runtime_*_amd64.deb)
for package in "${packages[@]}"; do
  [[ -f $package ]] || fail "there is no $package"
  expect "$package" Maintainer '*@*'
  expect "$package" Version '[0-9]*'
  expect "$package" Installed-Size '[0-9]*'
done
expect "${packages[1]}" Depends "kiln (= $(dpkg-deb --field "${packages[0]}" Version))"

files=$(dpkg-deb --contents "${packages[0]}")
for file in usr/bin/kiln etc/kiln/kiln.toml lib/systemd/system/kiln-{tracker,scheduler,builder}.service \
  usr/share/man/man1/kiln{,-tune,-keys-issue,-runner}.1.gz usr/share/doc/kiln/{copyright,changelog.gz}; do
  [[ $files == *"./$file"* ]] || fail "${packages[0]} has no $file"
done
dpkg-deb --info "${packages[0]}" conffiles | grep -qx /etc/kiln/kiln.toml || fail "/etc/kiln/kiln.toml is no conffile"

# Each unit starts a daemon with flags that it has.
for unit in deploy/deb/kiln-*.service; do
  line=$(sed -n 's/^ExecStart=\/usr\/bin\/kiln //p' "$unit")
  read -ra words <<<"${line//%i/null}"
  words=("${words[@]/#\/etc\/kiln\//deploy/deb/}")
  said=$("$kiln" "${words[@]}" --no-such-flag 2>&1) && fail "$unit takes any flag"
  [[ $said == *'there is no flag --no-such-flag'* ]] || fail "$unit: $said"
done
echo PASSED
