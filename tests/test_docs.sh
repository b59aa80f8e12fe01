#!/bin/sh
# The manual beside what the program prints and what there is: test_docs.py.
set -u
command -v python3 >/dev/null || { echo "skipped: test_docs: no python3"; exit 77; }
exec python3 "${VKNERF_SOURCE_DIR:?}/tests/test_docs.py"
