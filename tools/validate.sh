#!/bin/sh
# tools/validate.sh [SCENE]
# Runs short commands of vknerf on SCENE (default: the bundled one) under the Vulkan validation layers with
# synchronisation validation. Fails if the layers report anything. VKNERF_TEST_NATIVE=1 uses the machine's own
# device and layers instead of lavapipe's. Exit status 77: no validation layer is installed.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

scene=${1:-$source_dir/assets/demo}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LAYER_SETTINGS_PATH="$work"
export XDG_CACHE_HOME="$work/cache"
# The layer knows the memory accesses of shaders in pipelines, but not in shader objects.
export VKNERF_DISABLE="${VKNERF_DISABLE:+$VKNERF_DISABLE,}shader_objects"

# Makes the layer write messages of these kinds into $work/messages. Without the heuristic the layer ignores accesses
# of shaders and would miss most missing barriers.
report() { # FLAGS
    rm -f "$work/messages"
    cat >"$work/vk_layer_settings.txt" <<SETTINGS
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.log_filename = $work/messages
khronos_validation.report_flags = $1
khronos_validation.validate_sync = true
khronos_validation.syncval_shader_accesses_heuristic = true
SETTINGS
}

vknerf() {
    "$source_dir/tools/run_test.sh" "$build_dir/vknerf" "$@" >"$work/output" 2>&1 || {
        cat "$work/output" >&2
        [ ! -f "$work/messages" ] || cat "$work/messages" >&2
        die "vknerf $1 failed"
    }
}

# Vulkan silently ignores a missing layer, so the layer's own start message is required first.
report info
vknerf info
grep -q SYNCHRONIZATION_VALIDATION "$work/messages" 2>/dev/null || {
    say "skipped: validation_layers: no validation layer with synchronisation validation loads"
    exit 77
}

clean=yes
check() { # NAME VKNERF-ARGUMENT ...
    name=$1
    shift
    report error,warn
    vknerf "$@"
    if [ -s "$work/messages" ]; then
        say "$name: the validation layer reports:"
        cat "$work/messages" >&2
        clean=no
    else
        say "$name: no message"
    fi
}

# Command buffers are validated, not results: the small model of tests/step_fixture.h takes a tenth of the time, and
# after the first update interval (16 steps) no step records new commands.
small='--downscale 8 --set mlp.density_width=16 --set mlp.color_width=16 --set mlp.color_layers=1
    --set mlp.sh_degree=3 --set grid.levels=4 --set grid.log2_entries=12 --set batch.samples=1024
    --set batch.max_rays=256 --set march.resolution=16 --set march.steps_per_unit=32'
train() { # NAME TRAIN-OPTION ...
    name=$1
    shift
    # shellcheck disable=SC2086  # a list of words
    check "$name" train "$scene" --quiet $small --steps 18 "$@"
}

train train --out "$work/run" --steps 48
check eval eval "$work/run" --stride 8
check render render "$work/run" --orbit 2 --width 16 --maps rgb,depth,opacity,normal --out "$work/views"
check export export "$work/run" --mesh "$work/a.glb" --texture=256 --unseen drop --threshold 0.1 --resolution 24 \
    --points "$work/p.ply" --splats "$work/s.ply" --count 200
grep -q '^texture of' "$work/output" || die "export: no texture, probably because the mesh is empty"
train "train --profile, proposals" --out "$work/profile" --profile --set march.sampling=proposal \
    --set proposal.anneal_steps=20
check "render of proposals" render "$work/profile" --orbit 1 --width 16 --out "$work/proposed"
check bench bench --quick --precision fp32 --width 16 --depth 1 --batch 512 --quiet
# --field compiles GLSL with shaderc: skipped without it.
if { find_tool_root && [ -e "$libraries/libshaderc.so.1" ]; } || ldconfig -p | grep -q 'libshaderc\.so\.1'; then
    train "train --field" --out "$work/field" --field "$source_dir/examples/triplane_field.glsl"
fi
train "train --deterministic --image-memory --progressive" --out "$work/stream" --steps 96 --deterministic \
    --image-memory 5K --progressive
# Without mapped memory ranks copy gradients between device and host, as on GPUs.
disabled=${VKNERF_DISABLE:-}
export VKNERF_DISABLE="${disabled:+$disabled,}mapped_memory"
train "train --devices" --out "$work/ranks" --devices 0,0 --set parallel.ranks_per_device=2 \
    --set parallel.buckets=3 --set parallel.communication_type=f16
export VKNERF_DISABLE="$disabled"
train "train --precision fp16" --out "$work/fp16" --precision fp16 --set gradient_sums=f16
# Devices without coopmat fall back to another precision, with a warning.
train "train --precision coopmat" --out "$work/coopmat" --precision coopmat
# GPU kernels: compositing per subgroup, and reductions that the last workgroup finishes.
export VKNERF_DISABLE="${disabled:+$disabled,}cpu_kernels,mapped_memory"
train "train as GPUs" --out "$work/shaped" --devices 0,0 --set parallel.mode=average
[ $clean = yes ]
