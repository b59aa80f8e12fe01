#!/bin/sh
# tools/run_test.sh PROGRAM [ARGUMENT ...]
# Runs a test's program on lavapipe or, with VKNERF_TEST_NATIVE=1, on the machine's own Vulkan device.
# If VKNERF_TEST_LAUNCHER is set, that command runs the program instead of tools/lavapipe.sh.
set -eu
if [ -n "${VKNERF_TEST_LAUNCHER:-}" ]; then
    # shellcheck disable=SC2086  # a command with its arguments
    exec $VKNERF_TEST_LAUNCHER "$@"
fi
[ "${VKNERF_TEST_NATIVE:-0}" = 1 ] && exec "$@"
exec "${0%"${0##*/}"}./lavapipe.sh" "$@"
