# Builds programs that run on other machines, and checks that they do. bundle.sh, deb.sh and
# wheel.sh begin with it:
#   . "$(dirname "${BASH_SOURCE[0]}")/portable.sh"
#   begin_packing "${BASH_SOURCE[0]}" "$@"
#   . deploy/setup.sh
# binaries is the folder of the programs; build_static sets it where the arguments name none.

readonly GLIBC_NEWEST=2.35

# usage_of SCRIPT: the comment at the beginning of the script.
usage_of() { sed -n '2,${/^#/!q; s/^# \?//p}' "$1"; }

# begin_packing SCRIPT ARGUMENT...: reads the arguments of the script into out, binaries and
# any_libraries, makes the folder of out, and goes to the top folder of the project. A script has
# the flag --any-libraries if its usage names it.
begin_packing() {
  local script=$1 usage
  shift
  usage=$(usage_of "$script")
  out=dist binaries='' any_libraries=''
  while (($#)); do
    case $1 in
      --out | --binaries)
        [[ -n ${2:-} ]] || { echo "error: $1 needs a folder" >&2; exit 2; }
        if [[ $1 == --out ]]; then out=$2; else binaries=$(realpath -e "$2"); fi
        shift 2 ;;
      --help | -h) echo "$usage"; exit 0 ;;
      *)
        [[ $1 == --any-libraries && $usage == *--any-libraries* ]] ||
          { echo "error: unknown argument $1; see deploy/$(basename "$script") --help" >&2; exit 2; }
        any_libraries=1
        shift ;;
    esac
  done
  mkdir -p "$out"
  out=$(realpath "$out")
  cd "$(dirname "$script")/.."
}

# build_static TARGET...: builds with --config=static.
build_static() {
  set_up
  local progress=()
  [[ -t 2 ]] || progress=(--noshow_progress)
  say "building with --config=static (several minutes the first time)"
  # No links are made, so that bazel-bin still names the ordinary build.
  "${bazel[@]}" build --config=static --symlink_prefix=/ "${progress[@]}" --ui_event_filters=-info --show_result=0 \
    "$(commit_flag)" "$@" || stop "the build failed: see the first error above"
  binaries=$("${bazel[@]}" info --config=static --ui_event_filters=-info bazel-bin 2>/dev/null)
}

# check_portable BINARY: checks that the binary needs glibc alone, and none that is too new.
check_portable() {
  local library newest
  while read -r library; do
    case $library in
      libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2) ;;
      *) stop "$1 needs $library, so it was not built with --config=static" ;;
    esac
  done < <(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  newest=$(objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -V | tail -n 1)
  [[ $(printf '%s\n' "$newest" $GLIBC_NEWEST | sort -V | tail -n 1) == "$GLIBC_NEWEST" ]] ||
    stop "$1 needs glibc $newest, and $GLIBC_NEWEST is promised; build on Debian 12"
}

# install_portable BINARY TO: copies the binary without symbols, because it will run elsewhere. With
# any_libraries set it may need this machine's libraries.
install_portable() {
  [[ -f $1 ]] || stop "$1 is not there"
  install -D -m 755 "$1" "$2"
  strip --remove-section=.comment --remove-section=.note "$2"
  [[ -z ${any_libraries:-} ]] || return 0
  check_portable "$2"
  [[ $2 == *.so ]] || "$2" --help >/dev/null || stop "$2 does not start on this machine"
}
