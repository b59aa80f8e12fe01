#!/bin/sh
# tools/demo.sh [OPTION-OF-vknerf-demo ...]
# Installs what is missing, builds, trains the bundled scene into runs/demo and says where the pictures
# and the report are. Trains on the machine's GPU, or without one on lavapipe.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

"$source_dir/tools/setup.sh" --program

# True when the machine's own Vulkan drivers offer anything but a CPU device.
have_gpu() {
    "$build_dir/vknerf" info --json 2>/dev/null |
        grep -Eq '"type":[[:space:]]*"(discrete|integrated|virtual|other)"'
}

cd -- "$source_dir"
if have_gpu; then
    exec "$build_dir/vknerf" demo --out runs/demo "$@"
fi
say "No GPU with a Vulkan driver here: training on the CPU with lavapipe."
exec "$source_dir/tools/lavapipe.sh" "$build_dir/vknerf" demo --out runs/demo "$@"
