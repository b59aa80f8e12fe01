#!/bin/sh
# Tests the reference generated from the public headers: doxygen has no complaints, and every function, structure and
# enumeration is included.
set -u
source=${VKNERF_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source" || exit 1
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

generate() { # FOLDER, the sources
    (cd "$1" && { cat docs/reference/Doxyfile; echo "OUTPUT_DIRECTORY=$work/out"; } | doxygen - >"$work/complaints" 2>&1)
}

generate "$source" || fail "doxygen: $(head -n 5 "$work/complaints")"
[ -s "$work/out/html/index.html" ] || fail "there is no reference"
cat "$work"/out/html/*_8h.html "$work"/out/html/annotated.html >"$work/pages"
{
    tests/public_functions.py include/vknerf
    sed -n 's/^\(struct\|enum\) \(vkn_[a-z_]*\) {$/\2/p' include/vknerf/*.h
    echo vkn_background
} >"$work/names"
[ "$(wc -l <"$work/names")" -gt 100 ] || fail "few names: $(wc -l <"$work/names")"
while read -r name; do
    grep -q "$name" "$work/pages" || fail "$name is not in the reference"
done <"$work/names"

# doxygen complains about missing comments.
mkdir "$work/copy"
cp -r docs include "$work/copy"
echo 'VKN_API void vkn_undocumented(void);' >>"$work/copy/include/vknerf/error.h"
generate "$work/copy" && fail "doxygen does not complain about a function without a comment"
grep -q 'vkn_undocumented' "$work/complaints" || fail "it does not name the function: $(cat "$work/complaints")"

[ "$failures" = 0 ]
