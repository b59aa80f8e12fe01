#!/bin/sh
# The reference that is generated from the public headers: doxygen has nothing to complain of, and every function,
# structure and enumeration is in it.
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

# What has no comment is complained of.
mkdir "$work/copy"
cp -r docs include "$work/copy"
echo 'VKN_API void vkn_undocumented(void);' >>"$work/copy/include/vknerf/error.h"
generate "$work/copy" && fail "a function without a comment is nothing to complain of"
grep -q 'vkn_undocumented' "$work/complaints" || fail "the complaint names it not: $(cat "$work/complaints")"

[ "$failures" = 0 ]
