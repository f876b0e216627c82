#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/pages"
exec /usr/bin/python3 -B commands_unit.py
