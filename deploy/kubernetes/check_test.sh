#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/deploy/kubernetes"
if ! /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
  echo "skipped: /usr/bin/python3 has no PyYAML (apt-get install python3-yaml)"
  exit 0
fi
exec /usr/bin/python3 -B check_unit.py
