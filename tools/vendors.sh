#!/bin/sh
# tools/vendors.sh [OPTION ...] [--all | DEVICE ...] [-- ARGUMENT-OF-vknerf ...]
# Asks the shader compilers of GPUs that are not there: runs `vknerf bench --suite programs` on Mesa's real
# driver for each, behind a library that stands in for the kernel's, and prints what the compiler makes of
# every program, in every precision and matrix shape that the GPU offers, beside the budget. What is submitted
# does nothing.
#
#   --all            all of them; without a DEVICE: the few that the tests ask
#   --quick          the precision alone that auto is expected to take
#   --precision P    fp32, fp16 or coopmat alone
#   --report FILE    device, precision, program, registers, spilled, scratch_bytes, shared_bytes, code_bytes,
#                    occupancy, compile_ms with tabs between; empty where the driver does not tell
#   --json DIR       keeps what vknerf printed, DIR/DEVICE.json
#   --check          fails where a program that auto would take is over the budget and tools/vendors/exceptions.tsv
#                    does not say why, or where that says so for nothing
#   --slack          --check lets compiling take twice as long, on a machine that is busy
#   --predict        writes the tables of docs/cost_model.md that follow from it
#   --forgive REASON brings that file in line with what was found: new lines have that reason
#   --limit SECONDS  for one device; default 1800
#   --program FILE   another vknerf than that of the build folder
#   -- ARGUMENT ...  runs vknerf with these arguments instead, for what it decides and allocates on a device;
#                    what it computes there is zeros. It ends with vknerf's exit status
#
# DEVICE: amd-vega10 amd-navi21 amd-navi31 amd-gfx1201, nvidia-164 (Turing) nvidia-172 (Ampere), intel-dg2
# intel-mtl intel-lnl intel-bmg. Exits with 77 when the machine has no drivers to ask, after a line that says why.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

every='amd-vega10 amd-navi21 amd-navi31 amd-gfx1201 nvidia-164 nvidia-172 intel-dg2 intel-mtl intel-lnl intel-bmg'
# What tests/test_vendors.sh asks, in 20 s of one core: each compiler, with matrices and without.
few='amd-vega10 amd-navi31 nvidia-172 intel-bmg'

usage() { # [EXIT-STATUS]
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
    exit "${1:-2}"
}

skip() {
    say "skipped: ${0##*/}: $*"
    exit 77
}

# Sets libraries, share and (in the tool root) loader: where Mesa's drivers are.
find_drivers() {
    if find_tool_root; then
        share=$tool_root/usr/share/vulkan
    elif machine_has_lavapipe; then
        share=/usr/share/vulkan loader=''
        for libraries in /usr/lib/*-linux-gnu; do
            [ ! -f "$libraries/libvulkan_lvp.so" ] || break
        done
    else
        die "no drivers of Mesa here; run $source_dir/tools/setup.sh first"
    fi
}

# Sets stand_in and driver, and the variables by which the former knows what to be.
choose() { # DEVICE
    case $1 in
        amd-*)
            driver=radeon stand_in=$libraries/libamdgpu_noop_drm_shim.so
            export AMDGPU_GPU_ID="${1#*-}" ;;
        nvidia-*)
            driver=nouveau stand_in=$libraries/libnouveau_noop_drm_shim.so
            export NOUVEAU_CHIPSET="${1#*-}" ;;
        intel-*)
            driver=intel stand_in=$build_dir/tools/vendors/xe_shim.so
            export XE_SHIM="${1#*-}" ;;
        *) die "$1: neither amd-, nvidia- nor intel-" ;;
    esac
    if [ ! -f "$stand_in" ] && [ $driver = intel ]; then
        skip "$stand_in was not built: it needs drm/xe_drm.h of Linux 6.8 and the tests (-DVKNERF_TESTS=ON)"
    fi
    [ -f "$stand_in" ] || skip "the distribution has no mesa-drm-shim"
    for icd in "$share/icd.d/$driver"_icd*.json; do :; done
    [ -f "$icd" ] || skip "$share/icd.d has no driver file of $driver"
}

# Runs vknerf on one device.
run_on() { # DEVICE ARGUMENT ...
    choose "$1"
    shift
    if [ -n "$loader" ]; then
        set -- "$loader" --library-path "$libraries" --preload "$stand_in" "$program" "$@"
    else
        set -- env LD_PRELOAD="$stand_in" "$program" "$@"
    fi
    VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd VK_LOADER_LAYERS_DISABLE='~implicit~' \
        XDG_CACHE_HOME=$work/cache MESA_SHADER_CACHE_DISABLE=true VKNERF_DISABLE=self_test \
        timeout -s INT -k 600 "$limit" "$@"
}

# Compiles for one device; the object that vknerf prints goes into $work/DEVICE.json.
ask() { # DEVICE
    device=$1 code=0
    # shellcheck disable=SC2086  # lists of words
    run_on "$device" bench --suite programs --json --quiet $quick $precision \
        >"$work/$device.json" 2>"$work/$device.log" || code=$?
    case $code in
        0) ;;
        130) say "$device: not all programs in $limit s" ;;
        *) cat "$work/$device.log" >&2; die "$device: vknerf ended with $code" ;;
    esac
}

report='' keep='' check='' slack='' predict='' forgive='' quick='' precision='' limit=1800 devices=''
program=$build_dir/vknerf
while [ $# -gt 0 ]; do
    case $1 in
        --all) devices=$every ;;
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
devices=${devices:-$few}
[ -x "$program" ] || die "$program: no such program; run $source_dir/tools/setup.sh first"
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
    ask "$device"
    [ -z "$keep" ] || { mkdir -p "$keep" && cp "$work/$device.json" "$keep/"; }
    set -- "$@" "$work/$device.json"
done
[ -z "$predict" ] || python3 "$source_dir/tools/vendors/cost.py" --write "$@"
python3 "$source_dir/tools/vendors/report.py" ${report:+--report "$report"} $check $slack \
    ${forgive:+--forgive "$forgive"} "$@"
