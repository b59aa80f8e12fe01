#!/bin/sh
# Tests the installed library without the project's sources: exported symbols, pkg-config, CMake, ctypes, C++, the
# command line compiled against it, and the examples with their results. Four small trainings, and the command line's
# compilation.
set -u
source=${VKNERF_SOURCE_DIR:?}
build=${VKNERF_BUILD_DIR:?}
run=$source/tools/run_test.sh
demo=$source/assets/demo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# All results are of fp32: other precisions are neither measured nor compiled.
VKNERF_DISABLE=float16,cooperative_matrix
export VKNERF_DISABLE
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

figure() { # NAME: the last number after NAME in ./out
    sed -n "s/.*$1 \\([-.0-9]*\\).*/\\1/p" out | tail -n 1
}

at_least() { # NAME LEAST
    awk -v value="$(figure "$1")" -v least="$2" 'BEGIN { exit !(value != "" && value + 0 >= least + 0) }' ||
        fail "$1: '$(figure "$1")' is less than $2: $(tail -n 3 out)"
}

# ---- what is installed -------------------------------------------------------------------------------

cmake --install "$build" --prefix "$work/first" >install 2>&1 || fail "cmake --install: $(tail -n 3 install)"
mv first prefix # may be moved
libraries=$(dirname "$(find "$work/prefix" -name libvknerf.so.0)")
PKG_CONFIG_PATH=$libraries/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs vknerf) || fail "pkg-config does not find vknerf"
static_flags="$(pkg-config --cflags vknerf) $libraries/libvknerf.a $(pkg-config --static --libs-only-l vknerf |
    sed 's/-lvknerf//g')"
[ "$(pkg-config --modversion vknerf)" = "$(sed -n 's/.*VKN_VERSION_[A-Z]* \([0-9]*\).*/\1/p' "$source/include/vknerf/api.h" |
    paste -sd.)" ] || fail "vknerf.pc and api.h have different versions"

# ---- exported symbols --------------------------------------------------------------------------------

# Both libraries export exactly the functions of the headers.
"$source/tests/public_functions.py" prefix/include/vknerf >declared
nm -D --defined-only "$libraries/libvknerf.so.0" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort >shown
nm -g --defined-only "$libraries/libvknerf.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort >archived
[ -s declared ] || fail "no function is declared"
diff declared shown >difference || fail "libvknerf.so.0: $(head -n 5 difference)"
diff declared archived >difference || fail "libvknerf.a: $(head -n 5 difference)"
objdump -p "$libraries/libvknerf.so.0" | grep -q 'SONAME *libvknerf.so.0$' || fail "its name is not libvknerf.so.0"
grep -lE '#include "|"(base|gpu|config)/' prefix/include/vknerf/* && fail "a header includes one that is not installed"

# ---- the command line --------------------------------------------------------------------------------

# Its own headers, those of the prefix, and cJSON's; the viewer, whose libraries are not linked, is only parsed. -O0:
# nothing runs for long.
mkdir cli
ln -s "$source/src/base" "$source/src/cli" "$source/src/loading" "$source/src/pixels" "$source/src/viewer" cli
posix="-D_XOPEN_SOURCE=700 -D_DEFAULT_SOURCE"
cli_sources=$(find "$source/src/cli" -name '*.c' ! -name '*_windows.c')
viewer_sources=$(find "$source/src/viewer" -name '*.c' ! -name '*_windows.c')
# shellcheck disable=SC2086  # lists of words
if cc -std=c11 $posix -fsyntax-only -Icli "$source"/src/pixels/*.c $viewer_sources $flags 2>errors &&
    cc -std=c11 -O0 $posix -Wall -Wextra -Werror -Icli $cli_sources "$source/src/viewer/stub.c" \
        -o vknerf $flags -lcjson -lm "-Wl,-rpath,$libraries" 2>errors; then
    "$run" ./vknerf info --json >out 2>err || fail "the command line of the prefix: $(cat err)"
    grep -q '"version"' out || fail "vknerf info: $(head -c 200 out)"
else
    fail "the command line against the prefix: $(head -n 5 errors)"
fi

# ---- C, C++, CMake -----------------------------------------------------------------------------------

compile() { # COMPILER SOURCE PROGRAM FLAG ...
    compiler=$1 program=$3 input=$2
    shift 3
    "$compiler" -Wall -Wextra -Wpedantic -Werror "$input" -o "$program" "$@" 2>errors ||
        fail "$program: $(head -n 5 errors)"
}

cat >plus.cpp <<'END'
#include <cstdio>
#include <vknerf/vknerf.h>
int main()
{
    vkn_config *config = nullptr;
    char *value = nullptr;
    if (vkn_config_create(&config) != VKN_OK || vkn_config_set(config, nullptr, "parallel.ranks_per_device", "2") != VKN_OK ||
        vkn_config_get(config, "parallel.ranks_per_device", &value) != VKN_OK)
        return std::puts(vkn_last_error()), 1;
    std::printf("%s %s\n", vkn_version(), value);
    vkn_free(value);
    vkn_config_destroy(&config);
    return 0;
}
END
# shellcheck disable=SC2086
compile c++ plus.cpp plus $flags "-Wl,-rpath,$libraries"
"$run" ./plus >out 2>&1 || fail "C++: $(cat out)"
grep -qE '^[0-9.]+ 2$' out || fail "C++: $(cat out)"
# shellcheck disable=SC2086
compile cc "$source/examples/train_and_render.c" static $static_flags

mkdir package
cat >package/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(vknerf 0.1 REQUIRED)
add_executable(shared train_and_render.c)
target_link_libraries(shared vknerf::vknerf)
add_executable(static train_and_render.c)
target_link_libraries(static vknerf::static)
END
cp "$source/examples/train_and_render.c" package
if cmake -G Ninja -S package -B package/build -DCMAKE_PREFIX_PATH="$work/prefix" >errors 2>&1 &&
    cmake --build package/build >>errors 2>&1; then
    for program in shared static; do
        "$run" "package/build/$program" nowhere 1 none.png >out 2>&1 && fail "CMake, $program: no scene is no error"
        grep -q '^nowhere: ' out || fail "CMake, $program: the scene is not named: $(cat out)"
    done
else
    fail "find_package: $(tail -n 5 errors)"
fi

# ---- examples ----------------------------------------------------------------------------------------

# The bundled scene with one test view.
mkdir short
ln -s "$demo/train" "$demo/test" "$demo/transforms_train.json" short
/usr/bin/python3 -c 'import json, sys
scene = json.load(sys.stdin)
json.dump({**scene, "frames": scene["frames"][:1]}, sys.stdout)' <"$demo/transforms_test.json" >short/transforms_test.json

"$run" ./static "$demo" 8 train_and_render.png >out 2>&1 || fail "train_and_render: $(tail -n 3 out)"
at_least 'training PSNR' 13
[ "$(head -c 4 train_and_render.png | tail -c 3)" = PNG ] || fail "train_and_render: no picture"

# A user-defined field; a quarter of the example's steps is enough.
sed 's/^#define STEPS .*/#define STEPS 128/' "$source/examples/voxel_field.c" >voxel_field.c
# shellcheck disable=SC2086
compile cc voxel_field.c voxel_field -O2 $flags -lm "-Wl,-rpath,$libraries"
"$run" ./voxel_field short voxel_field.png >out 2>&1 || fail "voxel_field: $(tail -n 3 out)"
at_least PSNR 20
[ "$(head -c 4 voxel_field.png | tail -c 3)" = PNG ] || fail "voxel_field: no picture"
"$run" ./voxel_field nowhere voxel_field.png >out 2>&1 && fail "voxel_field: it trains without a scene"
grep -q '^nowhere: ' out || fail "voxel_field: the scene is not named: $(cat out)"

# A user-defined encoding, which is stored in the checkpoint.
# shellcheck disable=SC2086
compile cc "$source/examples/glsl_field.c" glsl_field $flags "-Wl,-rpath,$libraries"
cp "$source/examples/triplane_field.glsl" triplane.glsl
if "$run" ./glsl_field "$demo" triplane.glsl 8 triplane.safetensors >out 2>&1; then
    at_least 'training PSNR' 14
    sed 's/, weight \* feature/, -weight * feature/' triplane.glsl >wrong.glsl
    "$run" ./glsl_field "$demo" wrong.glsl 8 wrong.safetensors >out 2>&1 && fail "glsl_field: a wrong sign trains"
    grep -q '^wrong.glsl: encode_backward: parameter [0-9]* off by 2: ' out || fail "glsl_field: $(cat out)"
    rm triplane.glsl
    "$run" "$build/vknerf" render triplane.safetensors --trust --scene "$demo" --orbit 1 --width 16 --out triplane --quiet \
        >out 2>&1 || fail "vknerf render of glsl_field's: $(cat out)"
else
    fail "glsl_field: $(tail -n 3 out)"
fi

# Python trains and renders the picture that vknerf renders of the checkpoint. The distribution's Python has NumPy.
if VKNERF_LIBRARY=$libraries/libvknerf.so.0 "$run" /usr/bin/python3 "$source/examples/train.py" short 32 \
    checkpoint.safetensors python.png scene.downscale=4 grid.levels=4 mlp.density_width=16 mlp.color_width=16 \
    batch.samples=1024 batch.max_rays=256 march.resolution=16 optimizer.warmup_steps=2 >out 2>&1; then
    at_least PSNR 14
    "$run" "$build/vknerf" render checkpoint.safetensors --scene short --split test --out frames --quiet >out 2>&1 ||
        fail "vknerf render: $(cat out)"
    cmp python.png frames/frame_0000.png || fail "train.py: not the picture of vknerf render"
else
    fail "train.py: $(tail -n 3 out)"
fi

[ "$failures" = 0 ]
