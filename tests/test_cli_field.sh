#!/bin/sh
# --field: a run with a field in GLSL is evaluated, rendered, exported and resumed without the file; messages name
# the file, the line and the parameter.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

small="--quiet --deterministic --downscale 8 --set batch.samples=1024 --set batch.max_rays=256
    --set march.resolution=16 --set mlp.density_width=16 --set mlp.color_width=16 --set precision=fp32"
sed 's/128/16/' "$VKNERF_SOURCE_DIR/examples/triplane_field.glsl" | sed 's/128 \*/16 */' >field.glsl

# shellcheck disable=SC2086 # a list of words
run train "$demo" --out first --steps 4 --field field.glsl $small
if grep -q 'shaderc, which' err; then
    echo "skipped: test_cli_field: shaderc is not installed"
    exit 77
fi
[ "$code" = 0 ] || fail "train --field: exit status $code: $(cat err)"
contains first/config.json '"model":.*"glsl"'
grep -aq '#pragma field parameters' first/checkpoint.safetensors || fail "the checkpoint has no GLSL"

# Another comment is another field.
sed 's/^void encode(/\/\/ changed\n&/' field.glsl >other.glsl
refuses 2 'first/checkpoint.safetensors: its field in GLSL is another' \
    train --resume first --steps 6 --quiet --field other.glsl
mv field.glsl moved.glsl
succeeds train --resume first --steps 8 --quiet
succeeds eval first --quiet --stride 8
succeeds render first --quiet --orbit 1 --width 16 --out orbit
succeeds export first --quiet --mesh a.ply --resolution 32
succeeds train --resume first --steps 10 --quiet --field moved.glsl
# shellcheck disable=SC2086 # a list of words
succeeds train "$demo" --out begun --steps 2 --init first $small

refuses 2 'config: glsl.source: no field of number [0-9]* is known: --field FILE.glsl' \
    train "$demo" --out none --config first/config.json --quiet
refuses 2 'config: glsl.source: no field of number 0 is known' train "$demo" --out none --model glsl --quiet
refuses 2 'no.glsl: ' train "$demo" --out none --field no.glsl --quiet
sed '30s/^/nonsense;/' moved.glsl >broken.glsl
refuses 2 "broken.glsl:30: error: 'nonsense'" train "$demo" --out none --field broken.glsl --quiet
sed 's/, weight \* feature/, -weight * feature/' moved.glsl >wrong.glsl
refuses 2 'wrong.glsl: encode_backward: parameter [0-9]* off by 2: adds ' \
    train "$demo" --out none --field wrong.glsl --quiet
[ ! -e none ] || fail "a refused field left a run"

[ $failures = 0 ] && echo "all passed"
exit $failures
