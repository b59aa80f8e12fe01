#!/bin/sh
# tools/measure_memory.sh SCENE [OPTION-OF-vknerf-train ...]
# Measures the device memory of a training in each precision: trains SCENE for 32 steps and prints
# gpu_memory_bytes of summary.json, also relative to fp32. Runs on lavapipe or, with
# VKNERF_TEST_NATIVE=1, on the machine's own Vulkan device.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

[ $# -gt 0 ] || die "usage: ${0##*/} SCENE [OPTION-OF-vknerf-train ...]"
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

printf '%-9s %14s %9s %8s\n' precision bytes MiB 'of fp32'
for precision in fp32 fp16 coopmat; do
    "$source_dir/tools/run_test.sh" "$build_dir/vknerf" train --quiet --steps 32 "$@" \
        --precision "$precision" --out "$runs/$precision" >"$runs/log" ||
        die "$precision: training failed"
    bytes=$(sed -n 's/.*"gpu_memory_bytes":[^0-9]*\([0-9]*\).*/\1/p' "$runs/$precision/summary.json")
    [ "$precision" != fp32 ] || whole=$bytes
    awk -v precision="$precision" -v bytes="$bytes" -v whole="$whole" 'BEGIN {
        printf "%-9s %14d %9.1f %7.1f%%\n", precision, bytes, bytes / 1048576, 100 * bytes / whole
    }'
done
