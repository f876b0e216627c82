#!/bin/bash
# Checks that OpenTelemetry's own classes read the spans that a farm sends.
#
# usage: deploy/check_trace.sh KILN
#
# Installs opentelemetry-proto from PyPI into a folder that is removed at the end.
set -euo pipefail

kiln=$(realpath "$1")
here=$(realpath "$(dirname "$0")/..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet opentelemetry-proto
"$folder/python/bin/python" "$here/tests/farm/otlp_check.py" "$kiln"
