#!/bin/sh
# Tests the DLL as a user of the library has it: it exports the functions of the headers and needs only DLLs of the
# system, an example that is linked with it trains and renders, and the Python package's wheel has it.
set -u
source=${VKNERF_SOURCE_DIR:?}
build=${VKNERF_BUILD_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
host=x86_64-w64-mingw32
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

"$source/tests/public_functions.py" "$source/include/vknerf" >declared
# Lines of the table begin with a number in brackets and end with a name; what is between depends on the version.
$host-objdump -p "$build/libvknerf.dll" | sed -n '/\[Ordinal.Name Pointer\]/,/^$/p' |
    awk '/^[[:space:]]*\[ *[0-9]/ { print $NF }' | LC_ALL=C sort >shown
[ -s declared ] || fail "no function is declared"
diff declared shown >difference || fail "libvknerf.dll exports other functions: $(head -n 5 difference)"

for file in libvknerf.dll vknerf.exe; do
    $host-objdump -p "$build/$file" | sed -n 's/.*DLL Name: //p' | tr '[:upper:]' '[:lower:]' |
        grep -vxE '(advapi32|kernel32|msvcrt|shell32|ws2_32)\.dll' >others
    [ ! -s others ] || fail "$file needs $(tr '\n' ' ' <others)"
done

cp "$build/libvknerf.dll" .
$host-gcc-posix -std=c11 -Wall -Wextra -Werror "-I$source/include" "$source/examples/train_and_render.c" "-L$build" \
    -lvknerf -o example.exe || fail "the example cannot be compiled"
VKNERF_DISABLE=float16,cooperative_matrix "$source/tools/wine.sh" ./example.exe "$source/assets/demo" 8 picture.png \
    >out 2>&1 || fail "the example: $(tail -n 3 out)"
psnr=$(sed -n 's/.*training PSNR \([-.0-9]*\).*/\1/p' out | tail -n 1)
awk -v value="$psnr" 'BEGIN { exit !(value != "" && value + 0 >= 13) }' || fail "PSNR '$psnr': $(tail -n 3 out)"
[ "$(head -c 4 picture.png | tail -c 3)" = PNG ] || fail "no picture"

# ---- the wheel -------------------------------------------------------------------------------------

# Debian has no Python for Windows, so this machine's compares the structures with those of the compiler for Windows. A
# library of empty functions lets it load the package.
python=/usr/bin/python3
"$python" "$source/python/build_wheel.py" "$build/libvknerf.dll" wheels >out 2>&1 || fail "build_wheel.py: $(cat out)"
wheel=$(tail -n 1 out)
case $wheel in
    */vknerf-*-py3-none-win_amd64.whl) ;;
    *) fail "the wheel's name: $wheel" ;;
esac
"$python" -m zipfile -e "$wheel" installed || fail "$wheel cannot be unpacked"
name=$(sed -n 's/.*"\(.*\.dll\)" if sys.platform == "win32".*/\1/p' installed/vknerf/_base.py)
cmp "$build/libvknerf.dll" "installed/vknerf/lib/$name" || fail "the package loads '$name', which is not the DLL"
version=$("$python" -c "import re; print(re.search(r'vknerf-([0-9.]+)', '$wheel')[1])")
sed "s/.*/const char *&(void) { return \"$version\"; }/" declared | cc -shared -x c -o empty.so - || fail "the empty library"
VKNERF_LIBRARY=$PWD/empty.so PYTHONPATH=$PWD/installed "$python" "$source/tests/python/layouts.py" "$source/include" \
    $host-gcc-posix "$source/tools/wine.sh" >out 2>&1 || fail "layouts.py: $(cat out)"

[ $failures = 0 ]
