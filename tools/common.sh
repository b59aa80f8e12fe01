# Defines folders, versions and functions that the scripts of this folder share; sourced, never run.
# shellcheck shell=sh
# shellcheck disable=SC2034  # the scripts that source this file use its variables

source_dir=$(CDPATH='' cd -- "${0%"${0##*/}"}./.." && pwd -P)
build_dir=${VKNERF_BUILD_DIR:-$source_dir/build}
tool_root=${VKNERF_TOOL_ROOT:-$source_dir/build/toolroot}
case $tool_root in /*) ;; *) tool_root=$PWD/$tool_root ;; esac

# The oldest releases with cooperative matrices: the KHR extension in lavapipe, GL_NV_cooperative_matrix2 in shaderc.
needed_mesa=26.0
needed_shaderc=2025

# The same version on all machines where available: other versions report other findings.
clang_tidy=clang-tidy-19
clang_format=clang-format-19
fuzz_compiler=clang-19
fuzz_runtime=libclang-rt-19-dev

say() { printf '%s\n' "$*" >&2; }

die() {
    say "${0##*/}: $*"
    exit 1
}

# Prints the comment at the head of the called script and exits if an argument is -h or --help.
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
# Only the first: later arguments may belong to a command that the script runs.
answer_help "${1:-}"

# The script that the user called; tools/setup.sh names it in messages.
export VKNERF_CALLED_SCRIPT="${VKNERF_CALLED_SCRIPT:-$0}"

# Prints the version of an installed package, or nothing if the package is not installed.
installed_version() {
    # shellcheck disable=SC2016  # the dollar signs are dpkg-query's
    dpkg-query -W -f='${db:Status-Status} ${Version}\n' "$1" 2>/dev/null |
        sed -n 's/^installed //p' | head -n 1
}

at_least() { # HAVE WANT
    [ -n "$1" ] && dpkg --compare-versions "$1" ge "$2"
}

# Whether the installed lavapipe is new enough. Without dpkg its version is unknown, and any lavapipe counts.
machine_has_lavapipe() {
    if ! command -v dpkg-query >/dev/null; then
        set -- /usr/share/vulkan/icd.d/lvp_icd*.json
        [ -f "$1" ]
        return
    fi
    at_least "$(installed_version mesa-vulkan-drivers)" "$needed_mesa" &&
        at_least "$(installed_version libshaderc1)" "$needed_shaderc"
}

is_debian() {
    # shellcheck source=/dev/null
    [ "$(. /etc/os-release 2>/dev/null && echo "${ID:-}")" = debian ]
}

# Sets loader and libraries to the tool root's dynamic loader and library folder; fails without a tool root.
find_tool_root() {
    [ -f "$tool_root/.complete" ] || return 1
    for loader in "$tool_root"/usr/lib/*/ld-linux-*.so.[0-9]; do
        libraries=${loader%/*}
        [ -x "$loader" ] && return 0
    done
    return 1
}
