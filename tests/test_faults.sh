#!/bin/sh
# Runs a few fixed cases of each fault-injection sweep in tests/faults; docs/testing.md says how to run more.
set -u
exec "${VKNERF_SOURCE_DIR:?}/tests/faults/sweep.py"
