#!/bin/bash
# usage: deploy/kubernetes/secrets.sh AUTHORITY [KILN] | kubectl --namespace kiln apply -f -
# Prints a secret for each daemon of a farm: the keys that `kiln keys` made in the folder AUTHORITY.
# Missing ones are made, the authority too. KILN is the program, by default that of PATH. Keep the
# folder: whoever has it enters the farm, and `kiln keys renew` needs it.
set -euo pipefail
umask 077
[[ $# == 1 || $# == 2 ]] || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
authority=$1 kiln=${2:-kiln}
[[ -d $authority/authority ]] || "$kiln" keys init --authority "$authority" >&2
for role in tracker scheduler builder runner; do
  [[ -d $authority/$role ]] || "$kiln" keys issue "$role" --role work --authority "$authority" >&2
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: kiln-keys-%s\ntype: Opaque\ndata:\n' "$role"
  for file in "$authority/$role"/*.pem; do
    printf '  %s: %s\n' "$(basename "$file")" "$(base64 -w0 <"$file")"
  done
done
