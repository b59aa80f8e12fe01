#!/bin/sh
# tools/newcomer.sh [--keep FOLDER] [--seconds N] [PHOTOGRAPHS]
# tools/newcomer.sh --suite [--keep FOLDER] [RELEASE ...]
# What somebody goes through who has never seen vknerf: in a bare system of the machine's own release (tools/bare.sh),
# from git clone of this checkout's commit to the demo and, with a folder of PHOTOGRAPHS, to these in the viewer. Prints
# every command, the end of what it says, and its time; ends with 1 at the first that fails. --seconds N trains for so
# long, 300 by default; --keep FOLDER makes the system there and leaves it, or goes on with one that was left. Needs root,
# debootstrap and curl; half an hour on two cores.
#
# --suite runs the whole suite, tools/test.sh, in a bare system of each RELEASE, such as trixie, by default of those
# that this script knows of the machine's distribution; before it what the Dockerfile builds, by its own commands, in
# another. There nothing is installed but what the scripts install. Ends with 1 when anything failed, after all releases.
# Twenty minutes a release on two idle cores.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

system=
seconds=300
suite=no
while [ $# -gt 0 ]; do
    case $1 in
        --suite) suite=yes; shift ;;
        --keep) system=${2:?--keep needs a folder}; shift 2 ;;
        --seconds) seconds=${2:?--seconds needs a number}; shift 2 ;;
        -*) die "$1: unknown option" ;;
        *) break ;;
    esac
done
photographs=
if [ $suite = no ]; then
    photographs=${1:-}
    command -v curl >/dev/null || die "needs curl"
fi

work=$(mktemp -d)
viewer=
finish() {
    [ -z "$viewer" ] || kill -KILL "$viewer" 2>/dev/null || :
    rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
[ -n "$system" ] || system=$work/system

inside() { "$source_dir/tools/bare.sh" "$system" "$@"; }
now() { cut -d. -f1 /proc/uptime; }

# A command as it is typed, in the folder that the ones before left; no more of what it says than its end.
folder=/root
step() { # LINES COMMAND
    printf '\n$ %s\n' "$2"
    began=$(now)
    code=0
    inside sh -c "cd $folder && $2" >"$work/said" 2>&1 || code=$?
    tr '\r' '\n' <"$work/said" | grep -vE '^$|ETA ' | tail -n "$1" || :
    printf '[%s s]\n' $(($(now) - began))
    [ $code = 0 ] || die "$2: exit status $code"
}

# A bare system with this checkout's commit to clone.
make_system() {
    folder=/root
    [ -d "$system" ] || "$source_dir/tools/bare.sh" --make "$system" || die "no bare system"
    rm -rf "$system/vknerf.git"
    git clone --quiet --bare "$source_dir" "$system/vknerf.git" || die "no clone of $source_dir"
    git -C "$system/vknerf.git" update-ref refs/heads/newcomer "$(git -C "$source_dir" rev-parse HEAD)"
    git -C "$system/vknerf.git" symbolic-ref HEAD refs/heads/newcomer
    inside cat /etc/os-release | sed -n 's/^PRETTY_NAME=//p'
    step 1 'apt-get update -q'
}

clone() { # FOLDER
    step 1 'apt-get install -q -y --no-install-recommends git ca-certificates'
    [ -d "$system$1" ] || step 2 "git clone /vknerf.git $1"
}

# ---- the whole suite -----------------------------------------------------------------------------

# The commands of the Dockerfile's first stage, which builds the packages.
build_image() {
    clone /vknerf
    awk '/^FROM/ { stage++ } stage == 1 && sub(/^RUN /, "")' "$source_dir/Dockerfile" >"$work/commands"
    [ -s "$work/commands" ] || die "the Dockerfile's first stage has no commands"
    while read -r command <&3; do
        step 4 "$command"
    done 3<"$work/commands"
}

run_suite() {
    clone /root/vknerf
    folder=/root/vknerf
    step 100 'tools/test.sh'
}

try() { # NAME FUNCTION: in a system of its own
    VKNERF_BARE_RELEASE=$release
    export VKNERF_BARE_RELEASE
    system=$systems/$release-$1
    # A subshell: what fails ends it, not the next release.
    if (trap - EXIT && make_system && "$2"); then
        results="$results$release, $1: passed
"
    else
        results="$results$release, $1: FAILED
"
        failed=1
    fi
    [ "$systems" != "$work" ] || rm -rf --one-file-system "$system"
}

if [ $suite = yes ]; then
    # shellcheck source=/dev/null
    [ $# -gt 0 ] || case $(. /etc/os-release && echo "$ID") in
        debian) set -- bookworm trixie ;;
        ubuntu) set -- noble ;;
        *) die "name a release: this distribution is neither Debian nor Ubuntu" ;;
    esac
    systems=$work
    [ "$system" = "$work/system" ] || systems=$system
    results=
    failed=0
    for release in "$@"; do
        try image build_image
        try suite run_suite
    done
    printf '\n%s' "$results"
    exit $failed
fi

# ---- from git clone to the demo ------------------------------------------------------------------

make_system
clone /root/vknerf
folder=/root/vknerf
step 6 'tools/demo.sh'
step 2 'cmake --install build'
step 1 'vknerf --version'
[ -n "$photographs" ] || exit 0

# ---- one's own photographs -----------------------------------------------------------------------

mkdir -p "$system/root/photographs"
cp -r -- "$photographs"/. "$system/root/photographs"
lavapipe='tools/lavapipe.sh build/'
# What it says of a folder without cameras is what is done next.
printf '\n(What happens without reading: vknerf train says what to do.)\n'
! inside sh -c "cd $folder && ${lavapipe}vknerf train /root/photographs" >"$work/said" 2>&1 || die "photographs without cameras train"
cat "$work/said"
step 1 'apt-get install -q -y --no-install-recommends colmap ffmpeg libmicrohttpd12'
step 8 'vknerf prepare /root/photographs --out /root/scene'
step 8 'vknerf info /root/scene'
step 6 "${lavapipe}vknerf train /root/scene --downscale 8 --seconds $seconds --out /root/mine"
step 3 "${lavapipe}vknerf eval /root/mine"
step 3 "${lavapipe}vknerf render /root/mine --orbit 8 --width 160 --height 120 --out /root/turn"

# ---- in the viewer -------------------------------------------------------------------------------

printf '\n$ %s\n' "${lavapipe}vknerf view /root/mine"
began=$(now)
"$source_dir/tools/bare.sh" "$system" sh -c "cd $folder && exec ${lavapipe}vknerf view /root/mine --port 0" \
    >"$work/viewer" 2>&1 &
viewer=$!
address=
until [ -n "$address" ]; do
    kill -0 "$viewer" 2>/dev/null || { cat "$work/viewer"; die "the viewer has ended"; }
    [ $(($(now) - began)) -lt 120 ] || die "the viewer prints no address"
    sleep 1
    address=$(grep -o 'http://127.0.0.1:[0-9]*/?token=[^ ]*' "$work/viewer" | head -n 1 || :)
done
cat "$work/viewer"
printf '[%s s]\n' $(($(now) - began))
fetch() { # FILE PATH: what a browser asks for; the token stays
    curl -fsS -o "$work/$1" "${address%%/\?*}/$2${address#*/\?}" || die "the viewer does not answer: $2"
}
fetch page '?'
fetch scene 'api/scene?'
grep -qi '<html' "$work/page" || die "the viewer has no page"
# The first training camera, as the page shows it.
pose=$(tr -d ' \n' <"$work/scene" | grep -o '"pose":\[[^]]*\]' | head -n 1 | sed 's/.*\[//; s/\]//')
began=$(now)
fetch frame "api/frame?pose=$pose&fov=45&width=320&height=240&map=rgb&still=0&client=0123456789abcdef&"
[ "$(head -c 3 "$work/frame" | od -An -tx1 | tr -d ' ')" = ffd8ff ] || die "the viewer's frame is no JPEG"
printf '(In a browser: the page, %s bytes; a frame of the first camera, %s bytes)\n[%s s]\n' \
    "$(wc -c <"$work/page")" "$(wc -c <"$work/frame")" $(($(now) - began))
