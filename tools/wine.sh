#!/bin/sh
# tools/wine.sh PROGRAM.exe [ARGUMENT ...]
# Runs a Windows program under Wine, on a lavapipe that has cooperative matrices: both are in build/windows/root, which
# tools/windows.sh makes. PROGRAM replaces this script, so its exit status and signals are its own; of its exit status
# Unix keeps the lowest 8 bits. It has the same working directory, environment and files as this script, the files as
# drive Z:.
#
# The root's /usr replaces the machine's in a mount namespace of the program. A user without root rights needs a
# system that permits user namespaces. All programs share one wineserver, which ends by itself a few seconds after the
# last program. Several programs at a time are possible.
set -eu
# shellcheck source=common.sh
. "${0%"${0##*/}"}./common.sh"

[ $# -gt 0 ] || { say "usage: ${0##*/} PROGRAM.exe [ARGUMENT ...]"; exit 2; }
root=$source_dir/build/windows/root
prefix=$root/prefix
[ -f "$root/.complete" ] || die "no Wine found; run $source_dir/tools/windows.sh first"
[ -f "$1" ] || { say "${0##*/}: $1: no such file"; exit 127; }

rights=
[ "$(id -u)" = 0 ] || rights=--map-root-user
# shellcheck disable=SC2086  # an option or nothing
unshare $rights --mount true 2>/dev/null ||
    die "mounts are not permitted here: needs root rights or user namespaces"

export WINEPREFIX="$prefix" WINEDEBUG="${WINEDEBUG:--all,err+module}" LC_ALL=C.UTF-8
# Neither .NET nor a browser, and no entries in the user's menus. A program that uses windows, as Vulkan's loader does,
# would start explorer.exe for all programs, which would keep the output of the first one open until the last one ends.
export WINEDLLOVERRIDES="${WINEDLLOVERRIDES-mscoree,mshtml,winemenubuilder.exe,explorer.exe=}"
export VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json VK_LOADER_LAYERS_DISABLE='~implicit~'
# Libraries of desktops complain without this folder.
export XDG_RUNTIME_DIR="$prefix"
# Programs find shaderc there, if tools/windows.sh --test has made it.
export WINEPATH="Z:$source_dir/build/windows/shaderc"
export FONTCONFIG_FILE="$prefix/fonts.conf"
unset DISPLAY WAYLAND_DISPLAY LD_PRELOAD LD_LIBRARY_PATH VK_ICD_FILENAMES
# Debian's Wine frees the value of this variable, and dies. The program's folder of temporary files is on drive C:.
unset TMPDIR

run() { # COMMAND [ARGUMENT ...]
    # What is in /usr/local and /usr/src stays visible: the checkout may be there. The machine's cache of libraries
    # names libraries that the root does not have. subst does nothing, but starts Wine's services if none run: the
    # services keep the output of their first program open until they end, and a reader would wait for them.
    # shellcheck disable=SC2016  # the dollar signs are the inner shell's
    exec unshare $rights --mount sh -eu -c '
        usr=$1 folder=$2
        shift 2
        for name in local src; do
            [ ! -d /usr/$name ] || mount --rbind /usr/$name "$usr/$name"
        done
        [ ! -e /etc/ld.so.cache ] || mount --bind /dev/null /etc/ld.so.cache
        mount --rbind "$usr" /usr
        cd "$folder"
        "$1" subst </dev/null >/dev/null 2>&1 || :
        exec "$@"' sh "$root/usr" "$PWD" /usr/lib/wine/wine64 "$@"
}

make_prefix() {
    rm -rf "$prefix"
    mkdir -p "$prefix/drive_c/windows/system32"
    # user32.dll needs a library that is none of Wine's own.
    cp "$root/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$prefix/drive_c/windows/system32"
    # Wine complains without fonts.
    printf '<fontconfig><dir>/usr/share/fonts</dir><cachedir>%s/fonts</cachedir></fontconfig>\n' "$prefix" \
        >"$prefix/fonts.conf"
    # Descriptor 9 is the lock, which the wineserver would keep.
    (run wineboot --init >"$prefix.log" 2>&1 9>&-) || { cat "$prefix.log" >&2; die "wineboot failed"; }
    # With this driver programs can open windows without a display.
    (run reg add 'HKCU\Software\Wine\Drivers' /v Graphics /d null >>"$prefix.log" 2>&1 9>&-) ||
        { cat "$prefix.log" >&2; die "the driver of windows cannot be set"; }
    touch "$prefix/.complete"
}

if [ ! -f "$prefix/.complete" ]; then
    exec 9>"$prefix.lock"
    flock 9
    [ -f "$prefix/.complete" ] || make_prefix
    exec 9>&-
fi
run "$@"
