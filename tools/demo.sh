#!/bin/sh
# tools/demo.sh [OPTION-OF-vknerf-demo ...]
# Installs what is missing, builds, trains the bundled scene into runs/demo for two minutes and says where the
# pictures and the report are. Trains on the machine's GPU, or without one on lavapipe. A demo that was interrupted
# goes on; a finished one is left as it is. Options are those of vknerf demo, such as
#
#   --seconds S       trains for so long
#   --force           trains anew, whatever is there
#   --view            shows the training in a browser, at the address that is printed
#
# Once it is built, build/vknerf help demo lists all of them.
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
