#!/bin/sh
# Tests the scripts of tools/ before anything is installed: their --help, and their messages to a user who may not
# install packages. Stand-ins for apt, dpkg, sudo and CMake record their calls.
set -u
source=${VKNERF_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

mkdir -p "$work/tree" "$work/bin"
cp -R "$source/tools" "$work/tree/tools"
cp "$source/Dockerfile" "$work/tree"
cd "$work/tree" || exit 1
# Nothing is installed or available, and the user has no root rights; with user=0, apt=0 and a version as candidate,
# everything is available in that version.
cat >"$work/bin/stand_in" <<STAND_IN
#!/bin/sh
echo "\${0##*/} \$*" >>"$work/called"
case \${0##*/} in
    id) echo "\${user:-1000}" ;;
    apt-cache) echo "  Candidate: \${candidate:-(none)}" ;;
    apt-get)
        [ "\$1" != indextargets ] || echo 'stable http://mirror.invalid'
        exit "\${apt:-1}"
        ;;
    *) exit 1 ;;
esac
STAND_IN
chmod +x "$work/bin/stand_in"
for name in apt-get apt-cache dpkg-query sudo cmake ninja debootstrap id; do
    ln -s stand_in "$work/bin/$name"
done
call() { # SCRIPT [ARGUMENT ...]: its output in $work/said, its exit status in $code
    : >"$work/called"
    code=0
    env -u VKNERF_BUILD_DIR -u VKNERF_TOOL_ROOT -u VKNERF_CALLED_SCRIPT PATH="$work/bin:$PATH" "$@" \
        >"$work/said" 2>&1 </dev/null || code=$?
}

# ---- a question ----------------------------------------------------------------------------------

answers() { # SCRIPT [ARGUMENT ...]
    call "$@"
    [ $code = 0 ] || fail "$*: exit status $code"
    head -n 1 "$work/said" | grep -q "^$1" || fail "$*: does not begin with its usage: $(head -n 1 "$work/said")"
    [ "$(wc -l <"$work/said")" -gt 2 ] || fail "$*: says too little"
    ! grep -q '^#' "$work/said" || fail "$*: prints its own source"
    [ ! -s "$work/called" ] || fail "$*: calls $(cat "$work/called")"
    [ ! -e build ] || fail "$*: makes the folder build"
}
for script in demo test package setup fuzz lint validate mutants newcomer bare vendors lavapipe measure_memory windows wine; do
    answers tools/$script.sh --help
done
answers tools/demo.sh --seconds 5 -h
answers tools/test.sh --all --help
answers tools/package.sh --check --help
answers tools/setup.sh --tests --help
# A command of its own has its own help.
call tools/lavapipe.sh printf '%s\n' --help
! grep -q 'Runs COMMAND' "$work/said" || fail "tools/lavapipe.sh COMMAND --help: answers for COMMAND"

# ---- a user without root rights ------------------------------------------------------------------

refuses() { # SCRIPT [ARGUMENT ...]
    call "$@"
    [ $code = 1 ] || fail "$* without root rights: exit status $code"
    grep -q "^then run $1 again\.$" "$work/said" || fail "$*: does not name the script that was called: $(cat "$work/said")"
    grep -q 'apt-get install -y --no-install-recommends .* cmake' "$work/said" || fail "$*: names no packages"
    ! grep -q '^cmake' "$work/called" || fail "$*: builds nevertheless"
}
needs() { # PACKAGE ...: what the script that was called last wants to be installed
    for package in "$@"; do
        grep -q "install .* $package\( \|\$\)" "$work/said" || fail "does not ask for $package: $(cat "$work/said")"
    done
}
refuses tools/demo.sh
refuses tools/setup.sh
# cpack needs these two, also in the test of the packages and in the image.
package_tools='dpkg-dev file'
refuses tools/package.sh
# shellcheck disable=SC2086  # a list of words
needs $package_tools
# The last one makes locales, which a bare system lacks.
call tools/test.sh
needs locales
grep -q '^then run tools/test.sh again\.$' "$work/said" || fail "tools/test.sh: $(cat "$work/said")"
# shellcheck disable=SC2086  # a list of words
needs $package_tools
for package in $package_tools; do
    sed -n '/ AS build/,/^FROM [^A]*$/p' Dockerfile | grep -q "install .* $package\( \|\$\)" ||
        fail "the Dockerfile does not install $package before it makes packages"
done
# shellcheck source=/dev/null
if [ "$(. /etc/os-release && echo "$ID")" = debian ]; then
    refuses tools/windows.sh
    needs gcc-mingw-w64-x86-64-posix libz-mingw-w64-dev dpkg-dev
else
    call tools/windows.sh
    grep -q 'needs Debian 12' "$work/said" || fail "tools/windows.sh: $(cat "$work/said")"
fi
call tools/wine.sh "$0"
if [ $code != 1 ] || ! grep -q 'run .*tools/windows.sh first' "$work/said"; then
    fail "tools/wine.sh without Wine: $(cat "$work/said")"
fi
call tools/package.sh --chek
if [ $code != 1 ] || [ -s "$work/called" ] || ! grep -q -- '--chek: unknown option' "$work/said"; then
    fail "tools/package.sh --chek: $(cat "$work/said" "$work/called")"
fi

# ---- what compiles shaders ------------------------------------------------------------------------

# A new shaderc comes from the distribution if both shaderc and lavapipe are new there, else with the tool root.
installs() { # CANDIDATE WAY: shaderc, and in which way
    user=0 apt=0 candidate=$1 call tools/setup.sh --program
    grep 'libshaderc1' "$work/called" | grep -q -- "$2" || fail "shaderc $1 is not installed: $(cat "$work/called" "$work/said")"
}
export user apt candidate
installs 2030 '^apt-get -qq .* install -y --no-install-recommends '
! grep -q -- '--download-only' "$work/called" || fail "makes a tool root where the distribution's packages are new"
installs 1 '^apt-get .*/toolroot\.new/apt/apt\.conf install --download-only '
unset user apt candidate

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
