#!/bin/sh
# tools/lavapipe.sh COMMAND [ARGUMENT ...]
# Runs COMMAND on a lavapipe that has cooperative matrices: the one of the private tool root that
# tools/setup.sh makes, or the machine's own if there is no tool root. COMMAND replaces this script, so
# its exit status and signals are its own. With the tool root vulkaninfo is the tool root's as well.
#
# The tool root has its own C library, so COMMAND is started through the tool root's dynamic loader.
# Processes that COMMAND starts are not. A script that starts Vulkan programs must therefore call this
# script for each program instead of being run by it.
set -eu
# shellcheck source=common.sh
. "${0%"${0##*/}"}./common.sh"

[ $# -gt 0 ] || { say "usage: ${0##*/} COMMAND [ARGUMENT ...]"; exit 2; }
name=$1
shift

if find_tool_root; then
    share=$tool_root/usr/share/vulkan
elif machine_has_lavapipe; then
    share=/usr/share/vulkan
else
    die "no lavapipe with cooperative matrices found; run $source_dir/tools/setup.sh first"
fi

for icd in "$share"/icd.d/lvp_icd*.json; do :; done
[ -f "$icd" ] || die "$share/icd.d: no lavapipe driver file"

# Vulkan loaders before 1.3.207 read VK_ICD_FILENAMES.
export VK_DRIVER_FILES="$icd" VK_ICD_FILENAMES="$icd"
# Loaders ignore VK_ADD_LAYER_PATH if VK_LAYER_PATH is set.
export VK_LAYER_PATH="$share/explicit_layer.d${VK_ADD_LAYER_PATH:+:$VK_ADD_LAYER_PATH}"
# The machine's implicit layers belong to its own drivers.
export VK_LOADER_LAYERS_DISABLE="${VK_LOADER_LAYERS_DISABLE-~implicit~}"

case $name in
    */*) program=$name ;;
    vulkaninfo)
        program=$(PATH=${loader:+$tool_root/usr/bin:}$PATH command -v -- "$name" || :) ;;
    *) program=$(command -v -- "$name" || :) ;;
esac
case $program in
    */*) ;;
    *) say "${0##*/}: $name: command not found"; exit 127 ;;
esac
[ -f "$program" ] || { say "${0##*/}: $program: no such file"; exit 127; }
[ -x "$program" ] || { say "${0##*/}: $program: not executable"; exit 126; }

[ -n "${loader:-}" ] || exec "$program" "$@"

# Some shells warn about zero bytes, which they drop.
{ beginning=$(head -c 4096 -- "$program") || beginning=; } 2>/dev/null
case $beginning in
    ?ELF*) ;;
    *)
        say "${0##*/}: $program is a script; call ${0##*/} in it for each Vulkan program instead"
        exit 126
        ;;
esac
# A program linked for this loader (the sanitizer build) is run directly, or its stack traces would fail. It needs
# LD_LIBRARY_PATH, because its own run path does not apply to libraries that LLVM loads.
case $beginning in
    *"$loader"*) LD_LIBRARY_PATH=$libraries exec "$program" "$@" ;;
esac
exec "$loader" --library-path "$libraries" --argv0 "$name" "$program" "$@"
