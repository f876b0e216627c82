#!/bin/bash
# usage: deploy/deb.sh [--out DIR] [--binaries DIR] [--any-libraries]
# Builds with --config=static and packs Debian packages for amd64 into DIR (default: dist):
#   kiln             command line, tracker, scheduler and builder, units, /etc/kiln/kiln.toml
#   kiln-runner      the unit of runners
#   libkiln-runtime  what runs compiled networks: library and C header
# --binaries DIR packs client/cli/kiln and runtime/libkiln_runtime.so of DIR instead of building
# them. --any-libraries allows programs that need this machine's libraries; such packages are for
# this machine alone. Where lintian is installed, it checks the others.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/portable.sh"
begin_packing "${BASH_SOURCE[0]}" "$@"
. deploy/setup.sh
command -v dpkg-deb >/dev/null || stop "dpkg-deb is not installed (apt-get install dpkg)"
[[ -n $binaries ]] || build_static //client/cli:kiln //runtime:libkiln_runtime.so

readonly sources=deploy/deb
# Packages of the build machine that are linked into the programs.
readonly LINKED=(
  libabsl-dev libc-ares-dev libcli11-dev libfmt-dev libgrpc-dev libjemalloc-dev libprotobuf-dev libre2-dev
  libseccomp-dev libspdlog-dev libsqlite3-dev libssl-dev libstdc++-12-dev libtomlplusplus-dev libxgboost-dev libxxhash-dev
  libzstd-dev liblld-19-dev llvm-19-dev nlohmann-json3-dev zlib1g-dev
)
version=$(dpkg-parsechangelog -l "$sources/changelog" -S Version)
date=$(dpkg-parsechangelog -l "$sources/changelog" -S Timestamp)
program_version=$(sed -n 's/.*kVersion = "\(.*\)";/\1/p' base/version.h)
[[ $version == "$program_version" || $version == "$program_version"[.+~-]* ]] ||
  stop "$sources/changelog begins with version $version, and base/version.h has $program_version"
stage=$(mktemp -d)
trap 'rm -rf "$stage" "$out"/*.deb.part' EXIT

# put MODE FILE TO: a file of a package, whose folders are made.
put() { install -D -m "$1" "$2" "$3"; }

# copyright FILE: that of Kiln, and of the parts that its sources have from others.
copyright() {
  local part
  mkdir -p "$(dirname "$1")"
  cat "$sources/copyright" >"$1"
  for part in cpp-httplib prometheus-cpp; do
    echo "Files: third_party/$part/*"
    sed -n 's/^Copyright (c) /Copyright: /p' "third_party/$part/LICENSE" | sed '2,$s/^Copyright:/         /'
    echo "License: Expat"
    sed -n '/^Permission is hereby/,$s/^/ /p' "third_party/$part/LICENSE" | sed 's/^ $/ ./'
    echo
  done >>"$1"
  chmod 644 "$1"
}

documents() {
  local folder=$stage/$1/usr/share/doc/$1
  copyright "$folder/copyright"
  gzip -9n <"$sources/changelog" >"$folder/changelog.gz"
  chmod 644 "$folder/changelog.gz"
  [[ ! -f $sources/$1.lintian ]] || put 644 "$sources/$1.lintian" "$stage/$1/usr/share/lintian/overrides/$1"
}

# control_files PACKAGE: the folder DEBIAN.
control_files() {
  local package=$1 folder=$stage/$1/DEBIAN script
  mkdir -p "$folder"
  awk -v RS= -v package="$package" '$0 ~ "^Package: " package "\n"' "$sources/control" |
    sed "s/(= VERSION)/(= $version)/; s/^Architecture:/Version: $version\n&/" |
    sed "s/^Description:/Installed-Size: $(du -ks "$stage/$package" | cut -f1)\n&/" >"$folder/control"
  for script in postinst prerm postrm; do
    [[ ! -f $sources/$package.$script ]] || put 755 "$sources/$package.$script" "$folder/$script"
  done
  [[ ! -d $stage/$package/etc ]] || (cd "$stage/$package" && find etc -type f -printf '/%p\n' >DEBIAN/conffiles)
  (cd "$stage/$package" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z |
    xargs -0r md5sum >DEBIAN/md5sums)
}

# pack PACKAGE: the same files give the same package, and it gets its name when it is complete.
pack() {
  local package=$1 architecture file
  documents "$package"
  control_files "$package"
  chmod -R go-w,a+rX "$stage/$package"
  architecture=$(sed -n 's/^Architecture: //p' "$stage/$package/DEBIAN/control")
  file=$out/${package}_${version}_$architecture.deb
  SOURCE_DATE_EPOCH=$date dpkg-deb --root-owner-group -Zxz --build "$stage/$package" "$file.part" >/dev/null ||
    stop "dpkg-deb refuses $package"
  mv "$file.part" "$file"
  say "$file: $(stat -c %s "$file") bytes, installed $(du -bs "$stage/$package" | cut -f1)"
}

add_kiln() {
  local root=$stage/kiln package unit
  install_portable "$binaries/client/cli/kiln" "$root/usr/bin/kiln"
  put 644 "$sources/kiln.toml" "$root/etc/kiln/kiln.toml"
  for unit in tracker scheduler builder; do
    put 644 "$sources/kiln-$unit.service" "$root/lib/systemd/system/kiln-$unit.service"
  done
  put 644 "$sources/kiln.sysusers" "$root/usr/lib/sysusers.d/kiln.conf"
  put 644 "$sources/kiln.tmpfiles" "$root/usr/lib/tmpfiles.d/kiln.conf"
  python3 -B "$sources/man_pages.py" "$root/usr/bin/kiln" "$version" "$(date -u -d "@$date" +%F)" \
    "$root/usr/share/man/man1"
  find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} +
  for package in "${LINKED[@]}"; do
    [[ -f /usr/share/doc/$package/copyright ]] || stop "the copyright of $package is not there; install it"
    put 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/kiln/libraries/$package"
  done
  find "$root/usr/share/doc/kiln/libraries" -type f -size +4k -exec gzip -9n {} +
}

add_runner() {
  put 644 "$sources/kiln-runner@.service" "$stage/kiln-runner/lib/systemd/system/kiln-runner@.service"
}

add_runtime() {
  local root=$stage/libkiln-runtime
  install_portable "$binaries/runtime/libkiln_runtime.so" "$root/usr/lib/x86_64-linux-gnu/libkiln_runtime.so"
  chmod 644 "$root/usr/lib/x86_64-linux-gnu/libkiln_runtime.so"
  put 644 runtime/kiln_runtime.h "$root/usr/include/kiln_runtime.h"
  mkdir -p "$root/DEBIAN"
  printf 'activate-noawait ldconfig\n' >"$root/DEBIAN/triggers"
}

add_kiln
add_runner
add_runtime
packages=()
for package in kiln kiln-runner libkiln-runtime; do
  pack "$package"
  packages+=("$out/${package}_${version}_"*.deb)
done
if [[ -n $any_libraries ]]; then
  say "the packages are for this machine, and lintian does not check them"
elif command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning "${packages[@]}" ||
    stop "lintian finds mistakes in the packages"
  say "lintian: no mistakes"
else
  say "lintian is not installed, and does not check the packages"
fi
