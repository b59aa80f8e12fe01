#!/bin/sh
# tools/demo.sh [OPTION-OF-vknerf-demo ...]
# Builds vknerf, trains the bundled scene into runs/demo for two minutes and prints the paths of images and report.
# Installs missing packages first. Trains on the machine's GPU, or on lavapipe without one. Resumes an interrupted
# demo; leaves a finished one as it is. Options are those of vknerf demo, such as
#
#   --seconds S       duration of the training
#   --force           starts again even if runs/demo exists
#   --view            shows the training in a browser, at the address that is printed
#
# After the build, build/vknerf help demo lists all options.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

answer_help "$@"
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
