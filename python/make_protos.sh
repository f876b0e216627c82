#!/bin/bash
# usage: python/make_protos.sh FOLDER
# Makes FOLDER/kiln/proto, the Python code of the messages and services in proto/*.proto, by
# Debian's protoc and grpc_python_plugin. The package has them under its own name, because other
# packages are called `proto` too; the names on the wire stay.
set -euo pipefail
(($# == 1)) || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 2; }
out=$(realpath -m "$1")/kiln/proto
sources=$(dirname "${BASH_SOURCE[0]}")/../proto
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kiln/proto" "$out"
for file in "$sources"/*.proto; do
  sed 's#^import "proto/#import "kiln/proto/#' "$file" >"$work/kiln/proto/$(basename "$file")"
done
(cd "$work" && protoc --proto_path=. --python_out=. --pyi_out=. --grpc_out=. \
  --plugin=protoc-gen-grpc="$(command -v grpc_python_plugin)" kiln/proto/*.proto)
install -m 644 "$work"/kiln/proto/*.py "$work"/kiln/proto/*.pyi "$out/"
echo '"""Messages and services of Kiln, made from its .proto files."""' >"$out/__init__.py"
