#!/bin/sh
# tools/lavapipe.sh COMMAND [ARGUMENT ...]
# Runs COMMAND on a lavapipe that has cooperative matrices: the machine's own when it is new enough,
# else the one in the private tool root (tools/setup.sh makes it). COMMAND replaces this script, so
# its exit status and signals are its own. vulkaninfo is taken from where lavapipe
# comes from.
#
# The tool root brings its own C library, so COMMAND starts through the tool root's dynamic loader.
# Processes that COMMAND starts do not: a script that starts Vulkan programs calls this script
# for each of them instead of being run by it.
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
    die "no lavapipe with cooperative matrices here; run $source_dir/tools/setup.sh first"
fi

for icd in "$share"/icd.d/lvp_icd*.json; do :; done
[ -f "$icd" ] || die "$share/icd.d: no lavapipe driver file"

# VK_ICD_FILENAMES is the name that Vulkan loaders before 1.3.207 know.
export VK_DRIVER_FILES="$icd" VK_ICD_FILENAMES="$icd"
# Where VK_LAYER_PATH is set, loaders leave VK_ADD_LAYER_PATH alone.
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

# Some shells warn of the zero bytes that they leave out.
{ beginning=$(head -c 4096 -- "$program") || beginning=; } 2>/dev/null
case $beginning in
    ?ELF*) ;;
    *)
        say "${0##*/}: $program is a script; let it start its programs through ${0##*/} instead"
        exit 126
        ;;
esac
# A program linked for this loader (the sanitizer build) starts it by itself; its stack traces need that.
# Its own library path does not reach what LLVM, with a path of its own, loads in turn.
case $beginning in
    *"$loader"*) LD_LIBRARY_PATH=$libraries exec "$program" "$@" ;;
esac
exec "$loader" --library-path "$libraries" --argv0 "$name" "$program" "$@"
