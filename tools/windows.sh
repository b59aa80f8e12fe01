#!/bin/sh
# tools/windows.sh [--no-build | --test] [CMAKE-OPTION ...]
# Builds vknerf for Windows in build/windows/build, on Debian 12 or newer. A first run takes minutes, because it makes
#
#   build/windows/prefix   static libraries for Windows, cross-compiled from Debian's source packages
#   build/windows/root     Debian's Wine and a lavapipe with cooperative matrices, for tools/wine.sh
#   build/windows/shaderc  with --test: shaderc and SPIRV-Tools for Windows, from Debian's source packages, too
#
#   --no-build   makes the first two only
#   --test       builds the program for this machine, too, and runs the tests, under Wine
#
# Installs missing packages with apt, by tools/setup.sh --windows. The folders need no root rights.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"
# shellcheck source=roots.sh
. "$(dirname -- "$0")/roots.sh"

answer_help "$@"
action=build
case ${1:-} in
    --no-build) action='none'; shift ;;
    --test) action='test'; shift ;;
esac
is_debian || die "needs Debian 12 or newer"

windows_dir=$source_dir/build/windows
toolchain=$source_dir/cmake/mingw-w64.cmake
host=x86_64-w64-mingw32

# ---- libraries -----------------------------------------------------------------------------------

# Increase when the contents of the prefix change.
prefix_version=2

# The same versions on all machines.
source_suite=bookworm
source_packages='libpng1.6 libjpeg-turbo libmicrohttpd cjson expat cmocka'

# The folder of the unpacked source package is the working directory.
build_with_cmake() { # [CMAKE-OPTION ...]
    cmake -S . -B build.windows -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_INSTALL_PREFIX="$windows_dir/prefix" -DBUILD_SHARED_LIBS=OFF "$@" &&
        ninja -C build.windows && DESTDIR=$work/staged ninja -C build.windows install
}

build_with_configure() { # [OPTION ...]
    ./configure --host=$host --prefix="$windows_dir/prefix" --disable-shared --enable-static CC=$host-gcc-posix "$@" &&
        make -j "$(nproc)" -C src/microhttpd && make DESTDIR="$work/staged" -C src/microhttpd install &&
        make DESTDIR="$work/staged" -C src/include install
}

build_library() { # PACKAGE
    case $1 in
        libpng1.6) build_with_cmake -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_EXECUTABLES=OFF ;;
        libjpeg-turbo) build_with_cmake -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF ;;
        libmicrohttpd) build_with_configure --disable-https --disable-doc --disable-examples --disable-curl ;;
        cjson)
            # Its own flags ask for stack protection, whose library a program does not have. A DLL that contains cJSON
            # must not export its functions.
            build_with_cmake -DENABLE_CJSON_TEST=OFF -DBUILD_SHARED_AND_STATIC_LIBS=OFF \
                -DENABLE_CUSTOM_COMPILER_FLAGS=OFF -DCMAKE_C_FLAGS=-DCJSON_HIDE_SYMBOLS ;;
        expat)
            # Debian's patches need XML_DTD with a value, which expat's CMake files do not give it.
            cd expat && build_with_cmake -DEXPAT_SHARED_LIBS=OFF -DEXPAT_BUILD_TOOLS=OFF -DEXPAT_BUILD_TESTS=OFF \
                -DEXPAT_BUILD_EXAMPLES=OFF -DEXPAT_BUILD_DOCS=OFF -DEXPAT_DTD=OFF -DCMAKE_C_FLAGS=-DXML_DTD=1 ;;
        cmocka)
            build_with_cmake -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF -DWITH_STATIC_LIB=ON &&
                cd "$work/staged$windows_dir/prefix/lib" && rm libcmocka.dll.a && mv libcmocka-static.a libcmocka.a ;;
    esac
}

# Copies headers that are the same on all systems: the compiler must not search this machine's folder of headers.
copy_headers() { # INCLUDE-FOLDER
    headers=/usr/include
    ! find_tool_root || headers=$tool_root/usr/include
    cp -R "$headers/vulkan" "$headers/vk_video" "$headers"/volk.[ch] /usr/include/stb "$1"
}

# Copies licences of what vknerf.exe contains.
copy_licenses() { # FOLDER
    mkdir -p "$1"
    for package in $source_packages; do
        cp "$work/$package"/*/debian/copyright "$1/$package"
    done
    for package in libstb-dev libz-mingw-w64-dev mingw-w64-x86-64-dev gcc-mingw-w64-x86-64-posix-runtime \
        libvulkan-dev libvulkan-volk-dev; do
        file=usr/share/doc/$package/copyright
        [ ! -f "$tool_root/$file" ] || { cp "$tool_root/$file" "$1/$package"; continue; }
        cp "/$file" "$1/$package"
    done
    rm "$1/cmocka"
}

# Makes the folder of an unpacked source package, $work/PACKAGE/*/, the working directory.
enter_source() { # PACKAGE [OPTION-OF-DPKG-SOURCE]
    mkdir "$work/$1"
    cd "$work/$1"
    logged "the source package $1 could not be downloaded" private_apt source --download-only "$1"
    logged "the source package $1 could not be unpacked" dpkg-source --no-check ${2:+"$2"} -x ./*.dsc
    cd ./*/
}

fill_prefix() {
    find_archive
    update_private_lists deb-src $source_suite
    for package in $source_packages; do
        enter_source "$package"
        logged "$package could not be built" build_library "$package"
    done
    cd "$source_dir"
    mv "$work/staged$windows_dir/prefix"/* "$work/root"
    rm -r "$work/root/bin" "$work/root/share"
    copy_headers "$work/root/include"
    copy_licenses "$work/root/licenses"
}

# ---- shaderc -------------------------------------------------------------------------------------

# Increase when the contents of the folder change.
shaderc_version=1

# Leaves the optimizer of SPIR-V out, which takes most of the time and which vknerf does not use. Compiles without
# optimisation, because tests compile few shaders. The sources lack a header with GCC 13 and newer. SPIRV-Tools is a
# library of its own, as in MSYS2.
build_shaderc() {
    sed -i '/val_opts;/,/oss.str()/c\  {' libshaderc_util/src/spirv_tools_wrapper.cc &&
        sed -i s/SPIRV-Tools-opt/SPIRV-Tools-static/ libshaderc_util/CMakeLists.txt &&
        cmake -S . -B build -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DSHADERC_SKIP_TESTS=ON \
            -DSHADERC_SKIP_EXAMPLES=ON -DSHADERC_SKIP_COPYRIGHT_CHECK=ON -DENABLE_OPT=OFF \
            -DCMAKE_BUILD_TYPE=None -DSHADERC_ENABLE_WERROR_COMPILE=OFF -DSPIRV_WERROR=OFF \
            -DCMAKE_CXX_FLAGS='-include cstdint' \
            -DSPIRV-Headers_SOURCE_DIR="$work/headers/usr" \
            -DSHADERC_SPIRV_TOOLS_DIR="$(echo "$work"/spirv-tools/*/)" \
            -DSHADERC_GLSLANG_DIR="$(echo "$work"/glslang/*/)" &&
        ninja -C build libshaderc/libshaderc_shared.dll && cp build/libshaderc/libshaderc_shared.dll "$work/root" &&
        $host-g++-posix -shared -static -o "$work/root/libSPIRV-Tools-shared.dll" \
            -Wl,--whole-archive build/third_party/spirv-tools/source/libSPIRV-Tools.a -Wl,--no-whole-archive
}

fill_shaderc() {
    find_archive
    update_private_lists deb $source_suite
    cd "$work"
    logged "spirv-headers could not be downloaded" private_apt download spirv-headers
    unpack "$work/headers" "$work"/spirv-headers_*.deb
    update_private_lists deb-src $source_suite
    enter_source spirv-tools
    enter_source glslang
    # Debian's patches of shaderc are for the installed glslang and SPIRV-Tools.
    enter_source shaderc --skip-patches
    logged "shaderc could not be built" build_shaderc
    cd "$source_dir"
}

# ---- Wine ----------------------------------------------------------------------------------------

# Increase when the contents of the root change.
wine_root_version=2

fill_wine_root() {
    find_archive
    # shellcheck disable=SC2086  # a list of words
    update_private_lists deb $newest_suites
    download_packages libc-bin wine64 mesa-vulkan-drivers libvulkan1
    unpack "$work/root" "$work/apt/cache/archives"/*.deb
    # Wine's DLLs without debugging information take a third of the space, also the copies on drive C:.
    find "$work/root"/usr/lib/*/wine/x86_64-windows -type f -print0 >"$work/files"
    logged "Wine's libraries could not be stripped" xargs -0 -P 2 -n 50 -a "$work/files" $host-strip --strip-debug
    # The package's script would stop the server after every program, whose next start then takes a second.
    ln -sf wineserver64 "$work/root/usr/lib/wine/wineserver"
    mkdir -p "$work/root/usr/local" "$work/root/usr/src" # tools/wine.sh mounts the machine's there
}

# ---- build and tests -----------------------------------------------------------------------------

"$source_dir/tools/setup.sh" --windows
make_root "$windows_dir/prefix" $prefix_version fill_prefix
make_root "$windows_dir/root" $wine_root_version fill_wine_root
[ $action != none ] || exit 0
[ $action != test ] || make_root "$windows_dir/shaderc" $shaderc_version fill_shaderc

# Two builds at the same time in one folder would corrupt each other.
mkdir -p "$windows_dir/build"
exec 8>"$windows_dir/build/.lock"
flock 8
if [ ! -f "$windows_dir/build/build.ninja" ] || [ $# -gt 0 ]; then
    cmake -S "$source_dir" -B "$windows_dir/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$toolchain" -DVKNERF_MPI=OFF \
        "$@" >&2
fi
cmake --build "$windows_dir/build" >&2
exec 8>&-
[ $action = test ] || exit 0
# A test compares trainings on Windows with trainings of this machine's own program.
"$source_dir/tools/setup.sh" --program
exec ctest --test-dir "$windows_dir/build" -j "$(nproc)" --output-on-failure
