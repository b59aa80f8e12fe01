#!/bin/sh
# tests/faults: a few cases of every sweep, the same ones every time. More by hand: README.md, Working on it.
set -u
exec "${VKNERF_SOURCE_DIR:?}/tests/faults/sweep.py"
