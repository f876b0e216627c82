#!/bin/bash
# usage: deploy/image.sh --packages DIR [--name kiln:VERSION] [--out FILE] [--root DIR] [--check]
# Makes a container image of Debian 12 with the packages of DIR (deploy/deb.sh). The program is
# its entry point, so `docker run IMAGE tracker --help` is the tracker's help. Its user is kiln,
# 10001. --out writes it as an archive of OCI, for `podman load` or `skopeo copy`. --root DIR
# takes a root that debootstrap has made. --check runs a job in a container of it. Needs root,
# buildah and debootstrap, and the network for Debian's packages. KILN_BUILDAH is buildah with
# its options. Where control groups are of version 1, or no overlay can be mounted, it takes
# buildah's isolation chroot and storage vfs, and says so; BUILDAH_ISOLATION and STORAGE_DRIVER
# go before that.
set -euo pipefail

packages='' name='' out='' base='' check=''
mirror=${KILN_MIRROR:-http://deb.debian.org/debian}
while (($#)); do
  case $1 in
    --packages | --name | --out | --root)
      [[ -n ${2:-} ]] || { echo "error: $1 needs a value" >&2; exit 2; }
      case $1 in
        --packages) packages=$(realpath -e "$2") ;;
        --name) name=$2 ;;
        --out) out=$(realpath -m "$2") ;;
        --root) base=$(realpath -e "$2") ;;
      esac
      shift 2 ;;
    --check) check=1; shift ;;
    --help | -h) sed -n '2,10s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "error: unknown argument $1; see deploy/image.sh --help" >&2; exit 2 ;;
  esac
done
stop() { echo "error: $*" >&2; exit 1; }
[[ -n $packages ]] || { echo "error: --packages DIR is missing; see deploy/image.sh --help" >&2; exit 2; }
files=("$packages"/kiln_*.deb "$packages"/kiln-runner_*.deb)
[[ -f ${files[0]} && -f ${files[1]} ]] || stop "$packages has no kiln_*.deb and kiln-runner_*.deb; make them with deploy/deb.sh"
((EUID == 0)) || stop "an image is made by root, because its files have owners"
for tool in buildah debootstrap; do
  command -v $tool >/dev/null || stop "$tool is not installed (apt-get install $tool)"
done
version=$(dpkg-deb -f "${files[0]}" Version)
name=${name:-kiln:$version}
read -ra buildah <<<"${KILN_BUILDAH:-buildah}"

work=$(mktemp -d)
container='' job=''
clean() {
  local one
  for one in $job $container; do "${buildah[@]}" rm "$one" >/dev/null || true; done
  rm -rf --one-file-system "$work"
}
trap clean EXIT
# suits_overlay FOLDER: an overlay whose layers are in the folder can be mounted.
suits_overlay() {
  mkdir "$1/lower" "$1/upper" "$1/work" "$1/merged" &&
    unshare --mount mount -t overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" overlay "$1/merged" 2>/dev/null
}
if [[ -z ${BUILDAH_ISOLATION:-} && $(stat -fc %T /sys/fs/cgroup) != cgroup2fs ]]; then
  echo "== control groups are of version 1 here, so buildah runs commands with the isolation chroot"
  export BUILDAH_ISOLATION=chroot
fi
if [[ -z ${STORAGE_DRIVER:-} && -z ${KILN_BUILDAH:-} ]]; then
  storage=/var/lib/containers
  mkdir -p "$storage"
  trial=$(mktemp -d "$storage/kiln-image.XXXXXX")
  if ! suits_overlay "$trial"; then
    echo "== no overlay can be mounted in $storage, so buildah stores layers with the driver vfs"
    # With STORAGE_DRIVER=vfs buildah 1.28 makes a folder of the driver overlay all the same, for
    # which its next call fails.
    buildah+=(--storage-driver vfs)
  fi
  rm -rf --one-file-system "$trial"
fi
if [[ -z $base ]]; then
  echo "== making a root with debootstrap"
  base=$work/root
  debootstrap --variant=minbase bookworm "$base" "$mirror" >"$work/log" || { tail -n 5 "$work/log"; exit 1; }
fi
container=$("${buildah[@]}" from scratch)
"${buildah[@]}" add --quiet "$container" "$base" / >/dev/null
"${buildah[@]}" add --quiet "$container" "${files[@]}" /srv/packages/ >/dev/null
# The user has one number in all images, which volumes and manifests may name.
"${buildah[@]}" run "$container" -- /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
  DEBIAN_FRONTEND=noninteractive /bin/bash -euc '
    groupadd --system --gid 10001 kiln
    useradd --system --uid 10001 --gid kiln --home-dir /var/lib/kiln --shell /usr/sbin/nologin kiln
    apt-get -q update
    apt-get -q -y install --no-install-recommends /srv/packages/*.deb
    rm -rf /srv/packages /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/log/*.log /var/log/apt' \
  >"$work/log" 2>&1 || { tail -n 20 "$work/log"; stop "the packages do not install"; }
"${buildah[@]}" config --user kiln --workingdir /var/lib/kiln --volume /var/lib/kiln --entrypoint '["/usr/bin/kiln"]' \
  --cmd --help --label "org.opencontainers.image.title=kiln" --label "org.opencontainers.image.version=$version" "$container"
"${buildah[@]}" commit --quiet "$container" "$name" >/dev/null
echo "== the image $name is there: $("${buildah[@]}" images --format '{{.Size}}' "$name")"
if [[ -n $out ]]; then
  "${buildah[@]}" push --quiet "$name" "oci-archive:$out:$name"
  echo "== $out: $(stat -c %s "$out") bytes"
fi

# try TEXT COMMAND...: a command in a container of the image prints the text. The container
# compares, because buildah may lose what a short command has printed, and no exit status.
try() {
  "${buildah[@]}" run "$job" -- /bin/sh -c '
    text=$1
    shift
    said=$("$@" 2>&1) || { echo "$* ended with $?: $said" >&2; exit 1; }
    case $said in
      *"$text"*) ;;
      *) echo "$* printed no \"$text\" but: $said" >&2; exit 1 ;;
    esac' sh "$@" || stop "the check of the image failed: ${*:2}"
  echo "ok: ${*:2}"
}
if [[ -n $check ]]; then
  job=$("${buildah[@]}" from "$name")
  try kiln id -un
  for daemon in tracker scheduler builder runner; do try --config /usr/bin/kiln $daemon --help; done
  try 'are right' /usr/bin/kiln config --check /etc/kiln/kiln.toml
  try 'trials 8/8  errors 0' /usr/bin/kiln tune matmul --args 64,64,64 --trials 8 --target llvm --db /var/lib/kiln/kiln.db
fi
