#!/bin/sh
# examples/voxel_field.c, a field of one's own in plain C, which the build compiles against the public headers
# alone: it learns the bundled scene, says how well, and writes a picture; what is wrong is a line. Takes as long as
# its training, some eight seconds.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

program=${VKNERF_BUILD_DIR:?}/examples/voxel_field
[ -x "$program" ] || { echo "skipped: built without VKNERF_EXAMPLES"; exit 77; }

example() { # ARGUMENT ...: leaves $code, ./out and ./err
    "$VKNERF_SOURCE_DIR/tools/run_test.sh" "$program" "$@" >out 2>err
    code=$?
}

example "$demo" picture.ppm
[ $code = 0 ] || fail "exit status $code: $(cat err)"
psnr=$(sed -n 's/^PSNR \([0-9.]*\) dB, mean of 10 test views$/\1/p' out)
echo "${psnr:-no} dB"
awk "BEGIN { exit !(${psnr:-0} >= 24) }" || fail "less than 24 dB: $(cat out)"
[ "$(head -n 1 picture.ppm)" = "P6 128 128 255" ] || fail "no picture of 128 x 128 pixels"
[ "$(wc -c <picture.ppm)" = $((15 + 3 * 128 * 128)) ] || fail "the picture has $(wc -c <picture.ppm) bytes"

example nowhere
[ $code = 2 ] || fail "exit status $code for a scene that is not there"
grep -q '^voxel_field: nowhere: ' err || fail "the scene is not named: $(cat err)"

finish
