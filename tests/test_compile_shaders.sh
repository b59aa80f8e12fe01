#!/bin/sh
# Tests the shader compiler of the build (cmake/compile_shaders.c): its output, dependencies and failures.
set -u
source=${VKNERF_SOURCE_DIR:?}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
work="$folder/a folder" # paths may have spaces
mkdir "$work"
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

mkdir "$work/shaders" "$work/more" "$work/out"
cat >"$work/shaders/good.comp" <<'GLSL'
#version 460
#extension GL_GOOGLE_include_directive : require
#include "beside.glsl"
#include "elsewhere.glsl"
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Numbers { uint numbers[]; };
void main() { numbers[0] = VALUE + BESIDE + ELSEWHERE; }
GLSL
printf '/*%20000s*/\n#define BESIDE 2\n' '' >"$work/shaders/beside.glsl"
printf '#version 460\nvoid main() {}\n' >"$work/shaders/plain.comp"
echo '#define ELSEWHERE 3' >"$work/more/elsewhere.glsl"
tool=$source/tools/lavapipe.sh compiler=${VKNERF_BUILD_DIR:?}/compile_shaders
[ -z "${VKNERF_WINDOWS:-}" ] || tool=$source/tools/wine.sh compiler=$VKNERF_BUILD_DIR/tests/compile_shaders.exe
compile() { # LINE ...: compiles a list of these lines; sets $code, writes $work/said
    printf '%s\n' "$@" >"$work/out/list.txt"
    code=0
    "$tool" "$compiler" "-I$work/shaders" "-I$work/more" "$work/out/list.txt" >"$work/said" 2>&1 || code=$?
}
expect_message() { # STATUS TEXT
    [ $code = "$1" ] || fail "exit status $code instead of $1: $(cat "$work/said")"
    grep -qF -- "$2" "$work/said" || fail "lacks the message '$2': $(cat "$work/said")"
}

# CMake on Windows writes line ends of Windows.
compile 'one good.comp vulkan1.2 VALUE=1' 'two good.comp vulkan1.3 VALUE=2' \
    'plain plain.comp vulkan1.3' "$(printf 'windows plain.comp vulkan1.3\r')"
[ $code = 0 ] || fail "exit status $code: $(cat "$work/said")"
[ ! -s "$work/said" ] || fail "unexpected message: $(cat "$work/said")"
cmp -s "$work/out/one.spv.z" "$work/out/two.spv.z" && fail "VALUE has no effect"
cmp -s "$work/out/plain.spv.z" "$work/out/windows.spv.z" || fail "a line end of Windows changes a shader"
escaped() { # PATH: as make reads it
    printf '%s' "$1" | sed 's/ /\\ /g'
}
head -n 1 "$work/out/list.txt.d" | grep -qF "$(escaped "$work/out/one.spv.z"):" || fail "no rule for the first shader: $(cat "$work/out/list.txt.d")"
for file in shaders/good.comp shaders/beside.glsl more/elsewhere.glsl; do
    [ "$(grep -cF "$(escaped "$work/$file")" "$work/out/list.txt.d")" = 1 ] || fail "$file is not one dependency: $(cat "$work/out/list.txt.d")"
done

# A shader that does not compile does not stop the others.
rm "$work/out"/*
compile 'bad good.comp vulkan1.2' 'fine good.comp vulkan1.2 VALUE=1'
expect_message 1 "'VALUE' : undeclared identifier"
grep -q "$work/shaders/good.comp:7: error" "$work/said" || fail "names no line: $(cat "$work/said")"
expect_message 1 'compile_shaders: bad: not compiled'
[ -s "$work/out/fine.spv.z" ] || fail "the other shader is not written"
[ ! -e "$work/out/bad.spv.z" ] || fail "a shader that does not compile is written"
compile 'lost lost.comp vulkan1.2'
expect_message 1 "$work/shaders/lost.comp: No such file or directory"
rm "$work/more/elsewhere.glsl"
compile 'lost good.comp vulkan1.2 VALUE=1'
expect_message 1 'elsewhere.glsl'
compile 'short good.comp'
expect_message 2 'usage: compile_shaders'

# Invalid SPIR-V is refused: OpCopyLogical cannot copy a float to an int.
cat >"$work/shaders/invalid.comp" <<'GLSL'
#version 460
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(id = 400) int copy_logical(float x);
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Numbers { int numbers[]; };
void main() { numbers[0] = copy_logical(1.0); }
GLSL
compile 'invalid invalid.comp vulkan1.2'
expect_message 1 'compile_shaders: invalid: invalid SPIR-V: '
[ ! -e "$work/out/invalid.spv.z" ] || fail "an invalid shader is written"

# Without shaderc: the library is an empty file. tools/wine.sh has one folder of libraries.
if [ -z "${VKNERF_WINDOWS:-}" ]; then
    touch "$work/more/libshaderc.so.1"
    code=0
    LD_LIBRARY_PATH=$work/more "$compiler" "-I$work/shaders" "$work/out/list.txt" >"$work/said" 2>&1 || code=$?
    expect_message 1 'compile_shaders: no shaderc with SPIRV-Tools (libshaderc.so.1): '
    expect_message 1 "$work/more/libshaderc.so.1: file too short"
fi

[ $failures = 0 ] && echo "all passed"
exit $((failures > 0))
