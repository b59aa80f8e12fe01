# Shared by the scripts of this folder; sourced, never run.
# shellcheck shell=sh
# shellcheck disable=SC2034  # the scripts that source this file use its variables

source_dir=$(CDPATH='' cd -- "${0%"${0##*/}"}./.." && pwd -P)
build_dir=${VKNERF_BUILD_DIR:-$source_dir/build}
tool_root=${VKNERF_TOOL_ROOT:-$source_dir/build/toolroot}
case $tool_root in /*) ;; *) tool_root=$PWD/$tool_root ;; esac

# The oldest releases that have cooperative matrices: in lavapipe, and (version 2) in shaderc.
needed_mesa=26.0
needed_shaderc=2025

# One version wherever it is to be had: others find other things.
clang_tidy=clang-tidy-19
clang_format=clang-format-19
fuzz_compiler=clang-19
fuzz_runtime=libclang-rt-19-dev

say() { printf '%s\n' "$*" >&2; }

die() {
    say "${0##*/}: $*"
    exit 1
}

# Prints the comment at the head of the script that was called, and ends it, when an argument asks for that.
answer_help() { # [ARGUMENT ...]
    for argument in "$@"; do
        case $argument in
            -h | --help)
                sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
                exit 0
                ;;
        esac
    done
}
# The rest of the arguments may be those of a command that the script runs.
answer_help "${1:-}"

# The script that the user called: tools/setup.sh names it when it cannot go on.
export VKNERF_CALLED_SCRIPT="${VKNERF_CALLED_SCRIPT:-$0}"

# Version of an installed package; empty when it is not installed.
installed_version() {
    # shellcheck disable=SC2016  # the dollar signs are dpkg-query's
    dpkg-query -W -f='${db:Status-Status} ${Version}\n' "$1" 2>/dev/null |
        sed -n 's/^installed //p' | head -n 1
}

at_least() { # HAVE WANT
    [ -n "$1" ] && dpkg --compare-versions "$1" ge "$2"
}

# Without dpkg nothing tells, so a lavapipe that is installed is taken for new enough.
machine_has_lavapipe() {
    if ! command -v dpkg-query >/dev/null; then
        set -- /usr/share/vulkan/icd.d/lvp_icd*.json
        [ -f "$1" ]
        return
    fi
    at_least "$(installed_version mesa-vulkan-drivers)" "$needed_mesa" &&
        at_least "$(installed_version libshaderc1)" "$needed_shaderc"
}

# Sets loader and libraries: the tool root's dynamic loader and the folder of its libraries.
find_tool_root() {
    [ -f "$tool_root/.complete" ] || return 1
    for loader in "$tool_root"/usr/lib/*/ld-linux-*.so.[0-9]; do
        libraries=${loader%/*}
        [ -x "$loader" ] && return 0
    done
    return 1
}
