#!/bin/sh
# Runs a few fixed cases of each fault-injection sweep in tests/faults; docs/testing.md says how to run more.
set -u
sweeps=${VKNERF_SOURCE_DIR:?}/tests/faults
[ -d "$sweeps" ] || { echo "skipped: test_faults: its sweeps are not packed"; exit 77; }
exec "$sweeps/sweep.py"
