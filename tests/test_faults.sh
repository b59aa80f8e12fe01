#!/bin/sh
# A few cases of every sweep of tests/faults, the same ones each time; docs/testing.md says how to run more.
set -u
sweeps=${VKNERF_SOURCE_DIR:?}/tests/faults
[ -d "$sweeps" ] || { echo "skipped: test_faults: its sweeps are not packed"; exit 77; }
exec "$sweeps/sweep.py"
