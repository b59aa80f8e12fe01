#!/bin/sh
# Tests the message of a training whose device is lost or hangs, with the layer of tests/faults: the command that was
# running, by markers, and the driver's description. Without the extensions the message says neither.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"
layer=${VKNERF_BUILD_DIR:?}/tests/vkfault.so
[ -f "$layer" ] || { echo "skipped: test_device_lost: $layer is not built"; exit 77; }

mkdir layers
cat >layers/vkfault.json <<EOF
{"file_format_version": "1.1.2", "layer": {"name": "VK_LAYER_vknerf_fault", "type": "GLOBAL", "library_path": "$layer",
 "api_version": "1.3.250", "implementation_version": "1", "description": "loses the device", "device_extensions": [
 {"name": "VK_EXT_device_fault", "spec_version": "1", "entrypoints": []},
 {"name": "VK_AMD_buffer_marker", "spec_version": "1", "entrypoints": []}]}}
EOF
export VK_ADD_LAYER_PATH="$PWD/layers" VK_INSTANCE_LAYERS=VK_LAYER_vknerf_fault VKFAULT_CALL=vkWaitForFences

# The device is lost in a wait after the training, when only the first MARKERS of the markers have been executed.
lose() { # MARKERS [PATTERN]
    rm -rf lost
    export VKFAULT_N=12 VKFAULT_RESULT=-4 VKFAULT_MARKERS="$1"
    # shellcheck disable=SC2086 # $small is several words
    refuses 3 "the device was lost (vkWaitForFences): it hung, was reset or was unplugged${2-}; step" \
        train "$demo" --out lost --downscale 8 --steps 4 --quiet $small
}

fault='; the driver reports: the layer lost it, ring 3 stalled (code 0x7, data 0x2a), invalid write at 0xdead000'
pass='; the last command that began is the pass [a-z_0-9]* of "update interval"'
filled='; the last command that began is the fill of [a-z ]* of "zero an arena"'
export VKNERF_DISABLE=self_test
lose 90
export VKFAULT_OFFER=1
lose 90 "$pass$fault"
lose 1 "$filled$fault"
grep -q 'fill of unbound' err || fail "not the first fill: $(cat err)"
lose 3 "$filled$fault"
grep -q 'fill of unbound' err && fail "the first fill is over: $(cat err)"
lose -1 "$fault"
VKNERF_DISABLE=self_test,device_fault lose 90 "$pass"
VKNERF_DISABLE=self_test,buffer_markers lose 90 "$fault"

# A hung device: the wait never ends, and markers are read from host memory.
export VKFAULT_N=12 VKFAULT_RESULT=2 VKFAULT_STICKY=1 VKFAULT_MARKERS=1 VKNERF_FIELD_SECONDS=1
# shellcheck disable=SC2086 # a list of words
refuses 3 "not finished after 1 seconds: .*$filled" \
    train "$demo" --out hung --field "$VKNERF_SOURCE_DIR/examples/hash_field.glsl" --downscale 8 --steps 4 --quiet $small

[ $failures = 0 ] && echo "all passed"
exit $failures
