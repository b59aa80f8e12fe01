#!/bin/sh
# tools/wheel.sh [--windows | --check [WHEEL]]
# Builds the Python package (docs/python.md) into build/wheels, as a wheel for pip. Installs missing build packages first.
# --windows builds the wheel for Windows instead, from the DLL of tools/windows.sh.
# --check then tests the built (or the named) wheel in a temporary bare system (tools/bare.sh; VKNERF_BARE_RELEASE names
# another release than the machine's own): installs it by pip and runs the notebooks on the distribution's lavapipe. The
# system has python3-pip, python3-numpy and mesa-vulkan-drivers, and no compiler. Needs root and debootstrap, and takes
# some minutes, most of them for downloads.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

answer_help "$@"
check=no
windows=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
    command -v debootstrap >/dev/null || die "--check needs debootstrap: apt-get install debootstrap"
    [ "$(id -u)" = 0 ] || die "--check needs root rights"
elif [ "${1:-}" = --windows ]; then
    windows=yes
    shift
fi
if [ $check = no ] && [ $# -gt 0 ]; then
    die "$1: unknown option"
fi

if [ $# -eq 0 ]; then
    "$source_dir/tools/setup.sh" --package
    if [ $windows = yes ]; then
        "$source_dir/tools/windows.sh"
        library=$source_dir/build/windows/build/libvknerf.dll
        platform=win
    else
        cmake --build "$build_dir" --target vknerf-shared >&2
        library=$build_dir/libvknerf.so.0
        platform=manylinux
    fi
    rm -f "$build_dir"/wheels/*-"$platform"_*.whl
    # The distribution's Python, which has pycparser.
    wheel=$(/usr/bin/python3 "$source_dir/python/build_wheel.py" "$library" "$build_dir/wheels")
    echo "$wheel"
    set -- "$wheel"
fi
[ $check = yes ] || exit 0

work=$(mktemp -d)
# Safe to remove: bare.sh's mounts end with its processes.
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
system=$work/system
"$source_dir/tools/bare.sh" --make "$system" python3-pip python3-numpy mesa-vulkan-drivers
mkdir "$system/wheel"
cp -- "$1" "$source_dir/tests/python/run_notebook.py" "$source_dir"/python/notebooks/*.ipynb "$system/wheel"
cat >"$system/wheel/check.sh" <<'CHECK'
set -eu
cd /wheel
! command -v cc || { echo "FAILED: the system has a compiler"; exit 1; }
pip install -q --no-index --break-system-packages --root-user-action ignore ./vknerf-*.whl
for notebook in *.ipynb; do
    echo "== $notebook"
    python3 run_notebook.py "$notebook"
done
pip uninstall -q -y --break-system-packages --root-user-action ignore vknerf
! python3 -c 'import vknerf' 2>/dev/null || { echo "FAILED: vknerf is still there"; exit 1; }
echo "== all passed, Python $(python3 -c 'import platform; print(platform.python_version())')"
CHECK
"$source_dir/tools/bare.sh" "$system" sh /wheel/check.sh
