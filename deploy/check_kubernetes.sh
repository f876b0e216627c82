#!/bin/bash
# usage: deploy/check_kubernetes.sh [VERSION...]
# Checks the manifests of deploy/kubernetes against the API schemas of these versions of Kubernetes
# (default: 1.33 and the newest that the validator has), and that the validator refuses a mistake.
# Needs kubernetes-validate of PyPI: pip install kubernetes-validate. KILN_PYTHON names the Python
# that has it. Not in CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}"; exit 0; }
python=${KILN_PYTHON:-python3}
newest=$("$python" -c 'import kubernetes_validate; print(kubernetes_validate.latest_version())') || {
  echo "error: $python has no kubernetes-validate; pip install kubernetes-validate" >&2
  exit 1
}
(($#)) || set -- 1.33 "$newest"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp deploy/kubernetes/* "$work/"
sed -i 's/^  replicas: 1$/  replicas: one/' "$work/tracker.yaml"
for version in "$@"; do
  "$python" -B deploy/kubernetes/check.py deploy/kubernetes --schemas "$version"
  if "$python" -B deploy/kubernetes/check.py "$work" --schemas "$version" >"$work/said"; then
    echo "FAILED: the validator takes a word for a number of replicas" >&2
    exit 1
  fi
  echo "Kubernetes $version: the manifests fit its schemas"
done
