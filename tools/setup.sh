#!/bin/sh
# tools/setup.sh [--no-build | --program | --package | --tests | --device-tests | --fuzz | --windows] [CMAKE-OPTION ...]
# Installs missing packages and builds into build/. Takes a second if nothing is missing. Builds everything, or:
#
#   --no-build        nothing
#   --program         what is installed, without tests
#   --package         as --program; also installs the packages that tools/package.sh needs
#   --tests           everything; also installs the packages that tools/test.sh needs
#   --device-tests    as --tests, without the test programs of host code
#   --fuzz            the fuzz targets that tools/fuzz.sh runs
#   --windows         nothing; installs the packages that tools/windows.sh needs
#
# Installs distribution packages with apt (as root or with sudo). If the distribution's shaderc or lavapipe is too
# old for cooperative matrices, unpacks newer ones, and the drivers for tools/vendors.sh, into a private tool root,
# build/toolroot (VKNERF_TOOL_ROOT names another folder). The machine does not change, and no root rights are needed.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"
# shellcheck source=roots.sh
. "$(dirname -- "$0")/roots.sh"

answer_help "$@"
build=all
tests=no
package=no
fuzz=no
windows=no
case ${1:-} in
    --no-build) build=no; shift ;;
    --program) build=installed; shift ;;
    --package) build=installed; package=yes; shift ;;
    --tests) tests=yes; shift ;;
    --device-tests) build=device-tests; tests=yes; shift ;;
    --fuzz) build=fuzz_targets; fuzz=yes; shift ;;
    --windows) build=no; windows=yes; shift ;;
esac

command -v apt-get >/dev/null ||
    die "needs apt (Debian or Ubuntu); on other systems install the packages of CONTRIBUTING.md and use CMake"

# ---- distribution packages ---------------------------------------------------------------------

build_packages='gcc libc6-dev cmake ninja-build pkg-config libvulkan-dev libvulkan-volk-dev
    libcjson-dev libpng-dev libjpeg-dev libstb-dev libcmocka-dev libvulkan1 libmicrohttpd-dev'
# For tools/lint.sh and for tests: Python, MPI, the library (C++, doxygen, ABI), meshes, man page and completions,
# vknerf prepare, locales, images in WebP and TIFF, XML.
test_packages='shellcheck python3 libopenmpi-dev openmpi-bin g++ doxygen abigail-tools python3-numpy
    python3-meshio assimp-utils python3-pip mypy
    mandoc man-db zsh fish colmap ffmpeg locales libwebp7 libtiff6 libexpat1'
# For cpack: dpkg-shlibdeps, and file, which finds executables. For tools/wheel.sh: the parser of the headers.
package_packages='dpkg-dev file python3 python3-pycparser patchelf'
# For tools/windows.sh: compilers, what builds libraries from Debian's source packages, and what the tests run.
windows_packages='gcc-mingw-w64-x86-64-posix g++-mingw-w64-x86-64-posix libz-mingw-w64-dev nasm make python3 dpkg-dev
    zlib1g-dev assimp-utils'
# shaderc compiles the shaders, in the build and at run time.
lavapipe_packages='mesa-vulkan-drivers libshaderc1 vulkan-tools vulkan-validationlayers'

# For tools/vendors.sh: emulated kernel drivers of GPUs, if the distribution has them, and newer kernel headers,
# because those of Debian 12 lack drm/xe_drm.h.
shim_packages=mesa-drm-shim
kernel_packages=linux-libc-dev

tool_root_packages='libvulkan1 libvulkan-dev libvulkan-volk-dev'

missing_packages() {
    for package in "$@"; do
        [ -n "$(installed_version "$package")" ] || printf ' %s' "$package"
    done
}

candidate_version() { # PACKAGE [APT-OPTION ...]
    package=$1
    shift
    apt-cache "$@" policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p' | grep -v none || :
}

have_root() {
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -v 2>/dev/null; }
}

root_apt() {
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    # shellcheck disable=SC2086  # sudo or nothing
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >&2
}

need_root() { # PACKAGE ...
    have_root && return
    say "Some packages are missing and installing them needs root rights. As root, run:"
    say "    apt-get update && apt-get install -y --no-install-recommends $*"
    say "then run $VKNERF_CALLED_SCRIPT again."
    exit 1
}

update_lists() {
    root_apt update || say "apt-get update failed; continuing with the present lists"
}

# ---- private tool root ---------------------------------------------------------------------------

# Increase when the contents of the tool root change.
tool_root_version=4

tool_root_is_current() {
    find_tool_root && [ "$(cat "$tool_root/.complete")" = "$tool_root_version" ]
}

# Makes the library paths in driver files relative, so that the tool root may be anywhere.
point_driver_files() { # ROOT
    folder=$(cd "$1/usr" && printf '%s' lib/*/libvulkan_lvp.so)
    for file in "$1"/usr/share/vulkan/icd.d/*.json; do
        sed -i "s|\(\"library_path\": *\"\)[^\"]*\(libvulkan_[^\"/]*\"\)|\1../../../${folder%/*}/\2|" "$file"
    done
}

fill_tool_root() {
    find_archive
    # shellcheck disable=SC2086  # a list of words
    update_private_lists deb $newest_suites
    [ -n "$(candidate_version $shim_packages -c "$work/apt/apt.conf")" ] || shim_packages=
    # shellcheck disable=SC2086  # a list of words
    download_packages $lavapipe_packages $tool_root_packages $shim_packages $kernel_packages
    # The kernel's headers are unpacked separately: programs compiled for the machine's C library must not use them.
    archives=$work/apt/cache/archives
    unpack "$work/root/kernel" "$archives/$kernel_packages"_*.deb
    rm "$archives/$kernel_packages"_*.deb
    unpack "$work/root" "$archives"/*.deb
    point_driver_files "$work/root"
}

# ---- missing packages and build ------------------------------------------------------------------

# Chooses the wanted version of clang and libFuzzer if available, otherwise the distribution's default.
choose_clang() {
    [ -z "$(installed_version "$fuzz_compiler")$(candidate_version "$fuzz_compiler")" ] || return 0
    fuzz_compiler=clang
    fuzz_runtime=libclang-rt-dev
}

# The browser in which the viewer's page is tested. On Ubuntu packages of this name only install a snap.
# shellcheck source=/dev/null
case " $(. /etc/os-release && echo "${ID:-} ${ID_LIKE:-}") " in
    *" ubuntu "*) ;;
    *) test_packages="$test_packages chromium chromium-driver" ;;
esac
[ "$package $tests" = 'no no' ] || build_packages="$build_packages $package_packages"
[ $windows = no ] || build_packages="$build_packages $windows_packages"
[ $tests = no ] || build_packages="$build_packages $test_packages $clang_tidy $clang_format"
if [ $fuzz = yes ]; then
    choose_clang
    build_packages="$build_packages $fuzz_compiler $fuzz_runtime"
    set -- "-DCMAKE_C_COMPILER=$fuzz_compiler" -DVKNERF_FUZZ=ON -DVKNERF_TESTS=OFF \
        '-DVKNERF_SANITIZE=address;undefined' "$@"
fi
# shellcheck disable=SC2086  # a list of words
missing=$(missing_packages $build_packages)
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086  # a list of words
    need_root $missing
    update_lists
    if [ $tests = yes ] && [ -z "$(installed_version $clang_tidy)$(candidate_version $clang_tidy)" ]; then
        missing=$(printf '%s' "$missing" | sed "s/ $clang_tidy//")$(missing_packages clang-tidy)
    fi
    # No other version replaces it: formatting differs between versions (tools/lint.sh).
    if [ $tests = yes ] && [ -z "$(installed_version $clang_format)$(candidate_version $clang_format)" ]; then
        missing=$(printf '%s' "$missing" | sed "s/ $clang_format//")
    fi
fi

if machine_has_lavapipe; then
    own_lavapipe=yes
elif [ ! -f "$tool_root/.complete" ] && have_root &&
    at_least "$(candidate_version mesa-vulkan-drivers)" "$needed_mesa" &&
    at_least "$(candidate_version libshaderc1)" "$needed_shaderc"; then
    own_lavapipe=yes
else
    own_lavapipe=no
fi

[ $own_lavapipe = no ] || [ -z "$(candidate_version $shim_packages)" ] ||
    lavapipe_packages="$lavapipe_packages $shim_packages"
# shellcheck disable=SC2086  # a list of words
[ $own_lavapipe = no ] || missing=$missing$(missing_packages $lavapipe_packages)
if [ -n "$missing" ]; then
    say "Installing:$missing"
    # shellcheck disable=SC2086  # a list of words
    root_apt install -y --no-install-recommends $missing
fi

if [ $own_lavapipe = no ]; then
    tool_root_is_current || make_root "$tool_root" "$tool_root_version" fill_tool_root
fi

[ $build != no ] || exit 0
# Two builds at the same time in one folder would corrupt each other.
mkdir -p "$build_dir"
exec 8>"$build_dir/.lock"
flock 8
if [ ! -f "$build_dir/build.ninja" ] || [ $# -gt 0 ]; then
    cmake -S "$source_dir" -B "$build_dir" -G Ninja "$@" >&2
fi
cmake --build "$build_dir" --target $build >&2
