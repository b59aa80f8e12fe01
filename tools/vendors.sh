#!/bin/sh
# tools/vendors.sh [OPTION ...] [--all | DEVICE ...] [-- ARGUMENT-OF-vknerf ...]
# Compiles all pipelines for GPUs that the machine does not have and compares the compilers' statistics with the
# budget. Runs `vknerf bench --suite programs` on Mesa's driver of each GPU with an emulated kernel driver (shim), in
# every precision and matrix shape that the GPU offers. Submitted work does nothing.
#
#   --all            all devices; without --all and DEVICE: those of tests/test_vendors.sh
#   --quick          only the precision that auto is expected to choose
#   --precision P    only fp32, fp16 or coopmat
#   --report FILE    table, separated by tabs: device, precision, program, registers, spilled, scratch_bytes,
#                    shared_bytes, code_bytes, occupancy, compile_ms; empty where the driver reports nothing
#   --json DIR       keeps the output of vknerf as DIR/DEVICE.json
#   --check          fails if a pipeline that auto would choose exceeds the budget without a line in
#                    tools/vendors/exceptions.tsv, or if a line there is not needed
#   --slack          --check allows twice the compile time, for a busy machine
#   --predict        writes the predictions from the statistics into docs/cost_model.md
#   --forgive REASON updates exceptions.tsv: removes lines that are not needed, adds missing ones with REASON
#   --limit SECONDS  time limit per device; default 1800
#   --program FILE   vknerf to run instead of the build folder's
#   -- ARGUMENT ...  runs vknerf with these arguments instead, to see what it chooses and allocates on a device;
#                    all results are zeros. Exits with vknerf's exit status
#
# DEVICE: amd-vega10 amd-navi21 amd-navi31 amd-gfx1201, nvidia-164 (Turing) nvidia-172 (Ampere), intel-dg2
# intel-mtl intel-lnl intel-bmg, apple-m1, adreno-660 adreno-740 adreno-830. Exits with 77 and a reason if the machine
# lacks Mesa's drivers or shims.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

all_devices='amd-vega10 amd-navi21 amd-navi31 amd-gfx1201 nvidia-164 nvidia-172 intel-dg2 intel-mtl intel-lnl intel-bmg
    apple-m1 adreno-660 adreno-740 adreno-830'
# The devices of tests/test_vendors.sh: each compiler, with and without cooperative matrices, in 30 s of one core.
tested_devices='amd-vega10 amd-navi31 nvidia-172 intel-bmg apple-m1 adreno-740'

usage() { # [EXIT-STATUS]
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
    exit "${1:-2}"
}

skip() {
    say "skipped: ${0##*/}: $*"
    exit 77
}

# Finds Mesa's drivers; sets libraries, share and (in the tool root) loader.
find_drivers() {
    if find_tool_root; then
        share=$tool_root/usr/share/vulkan
    elif machine_has_lavapipe; then
        share=/usr/share/vulkan loader=''
        for libraries in /usr/lib/*-linux-gnu; do
            [ ! -f "$libraries/libvulkan_lvp.so" ] || break
        done
    else
        die "no Vulkan drivers of Mesa found; run $source_dir/tools/setup.sh first"
    fi
}

# Sets shim (the emulated kernel driver), driver, icd and the variable that names the GPU to the shim.
choose() { # DEVICE
    case $1 in
        amd-*)
            driver=radeon shim=$libraries/libamdgpu_noop_drm_shim.so
            export AMDGPU_GPU_ID="${1#*-}" ;;
        nvidia-*)
            driver=nouveau shim=$libraries/libnouveau_noop_drm_shim.so
            export NOUVEAU_CHIPSET="${1#*-}" ;;
        intel-*)
            driver=intel shim=$build_dir/tools/vendors/xe_shim.so
            export XE_SHIM="${1#*-}" ;;
        apple-m1)
            driver=asahi shim=$libraries/libasahi_noop_drm_shim.so ;;
        adreno-*)
            driver=freedreno shim=$libraries/libfreedreno_noop_drm_shim.so
            export FD_GPU_ID="${1#*-}" ;;
        *) die "$1: unknown device; tools/vendors.sh --help lists them" ;;
    esac
    if [ ! -f "$shim" ] && [ $driver = intel ]; then
        skip "$shim was not built: needs drm/xe_drm.h of Linux 6.8 and -DVKNERF_TESTS=ON"
    fi
    [ -f "$shim" ] || skip "the distribution has no mesa-drm-shim"
    for icd in "$share/icd.d/$driver"_icd*.json; do :; done
    [ -f "$icd" ] || skip "$share/icd.d: no driver file of $driver"
}

# Runs vknerf on one emulated device.
run_on() { # DEVICE ARGUMENT ...
    choose "$1"
    shift
    if [ -n "$loader" ]; then
        set -- "$loader" --library-path "$libraries" --preload "$shim" "$program" "$@"
    else
        set -- env LD_PRELOAD="$shim" "$program" "$@"
    fi
    VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd VK_LOADER_LAYERS_DISABLE='~implicit~' \
        XDG_CACHE_HOME=$work/cache MESA_SHADER_CACHE_DISABLE=true VKNERF_DISABLE=self_test \
        timeout -s INT -k 600 "$limit" "$@"
}

# Compiles all pipelines for one device and writes vknerf's JSON into $work/DEVICE.json.
compile_for() { # DEVICE
    device=$1 code=0
    # shellcheck disable=SC2086  # lists of words
    run_on "$device" bench --suite programs --json --quiet $quick $precision \
        >"$work/$device.json" 2>"$work/$device.log" || code=$?
    case $code in
        0) ;;
        130) say "$device: some pipelines are missing: --limit of $limit s reached" ;;
        *) cat "$work/$device.log" >&2; die "$device: vknerf failed with exit status $code" ;;
    esac
}

report='' keep='' check='' slack='' predict='' forgive='' quick='' precision='' limit=1800 devices=''
program=$build_dir/vknerf
while [ $# -gt 0 ]; do
    case $1 in
        --all) devices=$all_devices ;;
        --quick) quick=--quick ;;
        --check) check=--check ;;
        --slack) slack=--slack ;;
        --predict) predict=yes ;;
        --report) report=${2:?} ; shift ;;
        --json) keep=${2:?} ; shift ;;
        --precision) precision="--precision ${2:?}" ; shift ;;
        --forgive) forgive=${2:?} ; shift ;;
        --limit) limit=${2:?} ; shift ;;
        --program) program=${2:?} ; shift ;;
        --help | -h) usage 0 2>&1 ;;
        --) shift; break ;;
        -*) usage ;;
        *) devices="$devices $1" ;;
    esac
    shift
done
devices=${devices:-$tested_devices}
[ -x "$program" ] || die "$program: no such file; run $source_dir/tools/setup.sh first"
command -v python3 >/dev/null || skip "needs Python 3"
find_drivers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -gt 0 ]; then
    code=0
    for device in $devices; do
        run_on "$device" "$@" || code=$?
    done
    exit $code
fi
for device in $devices; do
    compile_for "$device"
    [ -z "$keep" ] || { mkdir -p "$keep" && cp "$work/$device.json" "$keep/"; }
    set -- "$@" "$work/$device.json"
done
[ -z "$predict" ] || python3 "$source_dir/tools/vendors/cost.py" --write "$@"
python3 "$source_dir/tools/vendors/report.py" ${report:+--report "$report"} $check $slack \
    ${forgive:+--forgive "$forgive"} "$@"
