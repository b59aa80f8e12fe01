#!/bin/sh
# tools/newcomer.sh [--keep FOLDER] [--seconds N] [PHOTOGRAPHS]
# tools/newcomer.sh --suite [--keep FOLDER] [RELEASE ...]
# Runs the documented first steps, or with --suite all tests, in a bare system of Debian or Ubuntu (tools/bare.sh).
# The first steps: git clone of this checkout's commit, the demo and, with a folder of PHOTOGRAPHS, preparation,
# training, evaluation and viewer for them. Prints every command, the end of its output and its time; exits with 1 at
# the first failure. --seconds N is the training's duration (300). --keep FOLDER makes the system in FOLDER and keeps
# it, or continues with a system that was kept. Needs root, debootstrap and curl; half an hour on two cores.
#
# --suite runs the commands of the Dockerfile's first stage, tools/test.sh and, on Debian, tools/windows.sh --test, each
# in a bare system of each RELEASE, such as trixie; default: the supported releases of the machine's distribution. Only
# the scripts install packages. Exits with 1 after all releases if anything failed. An hour per release on two idle
# cores.
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
photos=
if [ $suite = no ]; then
    photos=${1:-}
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

# Runs a command in $folder of the system; prints the command, the last LINES of its output and its time.
folder=/root
step() { # LINES COMMAND
    printf '\n$ %s\n' "$2"
    start=$(now)
    code=0
    inside sh -c "cd $folder && $2" >"$work/output" 2>&1 || code=$?
    tr '\r' '\n' <"$work/output" | grep -vE '^$|ETA ' | tail -n "$1" || :
    printf '[%s s]\n' $(($(now) - start))
    [ $code = 0 ] || die "$2: exit status $code"
}

# Makes a bare system with a repository /vknerf.git of this checkout's commit.
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

# Runs the commands of the Dockerfile's first stage, which builds the packages.
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

run_windows() {
    clone /root/vknerf
    folder=/root/vknerf
    step 100 'tools/windows.sh --test'
}

try() { # NAME FUNCTION: runs it in a system of its own
    VKNERF_BARE_RELEASE=$release
    export VKNERF_BARE_RELEASE
    system=$systems/$release-$1
    # A subshell, so that a failure does not end the script before the next release.
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
    distribution=$(. /etc/os-release && echo "$ID")
    [ $# -gt 0 ] || case $distribution in
        debian) set -- bookworm trixie ;;
        ubuntu) set -- noble ;;
        *) die "this distribution is neither Debian nor Ubuntu: name a release" ;;
    esac
    systems=$work
    [ "$system" = "$work/system" ] || systems=$system
    results=
    failed=0
    for release in "$@"; do
        try image build_image
        try suite run_suite
        [ "$distribution" != debian ] || try windows run_windows
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
[ -n "$photos" ] || exit 0

# ---- the user's photographs ----------------------------------------------------------------------

mkdir -p "$system/root/photos"
cp -r -- "$photos"/. "$system/root/photos"
lavapipe='tools/lavapipe.sh build/'
# The message about a folder without cameras must lead to the next command.
printf '\n(vknerf train explains what to do with a folder without cameras:)\n'
! inside sh -c "cd $folder && ${lavapipe}vknerf train /root/photos" >"$work/output" 2>&1 ||
    die "vknerf train accepts photographs without cameras"
cat "$work/output"
step 1 'apt-get install -q -y --no-install-recommends colmap ffmpeg libmicrohttpd12'
step 8 'vknerf prepare /root/photos --out /root/scene'
step 8 'vknerf info /root/scene'
step 6 "${lavapipe}vknerf train /root/scene --downscale 8 --seconds $seconds --out /root/mine"
step 3 "${lavapipe}vknerf eval /root/mine"
step 3 "${lavapipe}vknerf render /root/mine --orbit 8 --width 160 --height 120 --out /root/turn"

# ---- in the viewer -------------------------------------------------------------------------------

printf '\n$ %s\n' "${lavapipe}vknerf view /root/mine"
start=$(now)
"$source_dir/tools/bare.sh" "$system" sh -c "cd $folder && exec ${lavapipe}vknerf view /root/mine --port 0" \
    >"$work/viewer" 2>&1 &
viewer=$!
address=
until [ -n "$address" ]; do
    kill -0 "$viewer" 2>/dev/null || { cat "$work/viewer"; die "the viewer has exited"; }
    [ $(($(now) - start)) -lt 120 ] || die "the viewer prints no address"
    sleep 1
    address=$(grep -o 'http://127.0.0.1:[0-9]*/?token=[^ ]*' "$work/viewer" | head -n 1 || :)
done
cat "$work/viewer"
printf '[%s s]\n' $(($(now) - start))
fetch() { # FILE PATH: downloads a path, with the token
    curl -fsS -o "$work/$1" "${address%%/\?*}/$2${address#*/\?}" || die "the viewer does not answer: $2"
}
fetch page '?'
fetch scene 'api/scene?'
grep -qi '<html' "$work/page" || die "the viewer sends no HTML page"
# A frame of the first training camera, requested as the page does.
pose=$(tr -d ' \n' <"$work/scene" | grep -o '"pose":\[[^]]*\]' | head -n 1 | sed 's/.*\[//; s/\]//')
start=$(now)
fetch frame "api/frame?pose=$pose&fov=45&width=320&height=240&map=rgb&still=0&client=0123456789abcdef&"
[ "$(head -c 3 "$work/frame" | od -An -tx1 | tr -d ' ')" = ffd8ff ] || die "the viewer's frame is not a JPEG"
printf '(In a browser: the page, %s bytes; a frame of the first camera, %s bytes)\n[%s s]\n' \
    "$(wc -c <"$work/page")" "$(wc -c <"$work/frame")" $(($(now) - start))
