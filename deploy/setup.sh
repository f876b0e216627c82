# Installs the packages that the build needs and checks what it cannot install. quickstart.sh and
# test.sh source it:
#   . deploy/setup.sh
# It reports what it does, does nothing if nothing is missing, and stops with one sentence if it
# cannot go on. With KILN_SKIP_DISTRO_CHECK=1 it also runs on other distributions (packages of the
# same names are needed). BAZEL="command and startup options" replaces /usr/bin/bazel.

# The packages, line by line: compiler and build tool; gRPC, Protocol Buffers, Abseil; LLVM; the
# cost model; records; tests; small libraries; the filter of system calls and the allocator; the
# libraries that benchmarks compare with; the schema of ONNX and its test cases; the scripts of the
# build, and packages that users of the Python package have.
KILN_PACKAGES=(
  g++ bazel-bootstrap
  libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  llvm-19-dev liblld-19-dev
  libxgboost-dev
  libsqlite3-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libspdlog-dev libcli11-dev libxxhash-dev libssl-dev libzstd-dev
  libseccomp-dev libjemalloc-dev
  libdnnl-dev libopenblas-dev
  libonnx-dev libonnx-testdata
  python3 python3-dev python3-numpy python3-grpcio python3-protobuf
)
# Free space that the build and the packages need. A first build takes 3 GB, the packages 1.5 GB.
KILN_BUILD_MB=5000
KILN_INSTALL_MB=2000

say() { echo "== $*"; }

stop() {
  echo "error: $*" >&2
  exit 1
}

check_distribution() {
  [[ ${KILN_SKIP_DISTRO_CHECK:-} == 1 ]] && return
  local id version name
  id=$(. /etc/os-release 2>/dev/null && echo "${ID:-}") || true
  version=$(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}") || true
  name=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-}") || true
  [[ $id == debian && $version == 12 ]] ||
    stop "this is ${name:-an unknown system}, and Kiln builds on Debian 12 (set KILN_SKIP_DISTRO_CHECK=1 to try all the same)"
}

# check_space FOLDER MEGABYTES WHAT-FOR: checks the free space. The folder need not exist yet.
check_space() {
  local folder=$1
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  local free_mb
  free_mb=$(df -P -B1M "$folder" | awk 'NR == 2 {print $4}')
  ((free_mb >= $2)) ||
    stop "$folder has $free_mb MB free and $3 needs $2 MB; free some space and start again"
}

missing_packages() {
  local package state
  for package in "${KILN_PACKAGES[@]}"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=
    [[ $state == installed ]] || echo "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "all ${#KILN_PACKAGES[@]} packages are installed"
    return
  fi
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      stop "these packages are missing and you are not root: ${missing[*]}"
    as_root=(sudo)
  fi
  check_space /usr "$KILN_INSTALL_MB" "installing packages"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || stop "apt-get update failed: see its messages above"
  # apt-get's own output is of use only if it fails.
  local log
  log=$(mktemp)
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    stop "apt-get install failed: see its messages above"
  fi
  rm -f "$log"
}

# Prints the flag by which `kiln --version` shows the commit, if the commit is known.
commit_flag() {
  local commit
  commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || commit=
  echo "--define=kiln_commit=$commit"
}

set_up() {
  # bazel keeps its output and its disk cache below the home folder.
  export HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
  check_distribution
  install_packages
  check_space "$HOME/.cache" "$KILN_BUILD_MB" "the build"
  read -ra bazel <<<"${BAZEL:-/usr/bin/bazel}"
  command -v "${bazel[0]}" >/dev/null || stop "${bazel[0]} is not there; set BAZEL to the bazel 4 command"
}
