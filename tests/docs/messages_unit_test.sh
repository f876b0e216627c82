#!/bin/bash
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE/tests/docs"
exec /usr/bin/python3 -B messages_unit.py
