#!/bin/sh
# tools/run_test.sh PROGRAM [ARGUMENT ...]
# Runs a test's program on lavapipe or, with VKNERF_TEST_NATIVE=1, on the machine's own Vulkan device.
set -eu
[ "${VKNERF_TEST_NATIVE:-0}" = 1 ] && exec "$@"
exec "$(dirname -- "$0")/lavapipe.sh" "$@"
