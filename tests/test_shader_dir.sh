#!/bin/sh
# Tests --shader-dir: shaders compiled at run time equal those of the build, edits take effect, and errors are one line
# with file and line number. Without shaderc one line says that it is missing.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

train() { # RUN [OPTION ...]: leaves $code, ./out and ./err
    run=$1
    shift
    # shellcheck disable=SC2086 # $small is several words
    "$bin" train "$demo" --out "$run" --downscale 8 --steps 2 --deterministic --quiet $small "$@" >out 2>err
    code=$?
}

# Standard error must be one line, "vknerf: " and the pattern.
refuses() { # PATTERN
    [ $code = 2 ] || fail "$run: exit status $code instead of 2: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "$run: not one line: $(cat err)"
    grep -q "^vknerf: shader .*: .*$1" err || fail "$run: '$1' is not in: $(cat err)"
}

loss() { # RUN
    tail -n 1 "$1/metrics.jsonl" | sed 's/.*"loss": \([^,]*\),.*/\1/'
}

cp -r "$VKNERF_SOURCE_DIR/shaders" shaders
train embedded
[ $code = 0 ] || fail "embedded: exit status $code: $(cat err)"
train same --shader-dir shaders
if grep -q 'shaderc, which' err; then
    refuses 'is not installed: install libshaderc1'
    [ $failures = 0 ] || exit $failures
    echo "skipped: test_shader_dir: shaderc is not installed"
    exit 77
fi
[ $code = 0 ] || fail "same: exit status $code: $(cat err)"
[ -n "$(loss same)" ] || fail "same: no loss in metrics.jsonl"
[ "$(loss same)" = "$(loss embedded)" ] ||
    fail "compiled at run time the loss is $(loss same), else $(loss embedded)"

# Huber's loss for errors above delta, which are most at the beginning.
sed -i 's/(magnitude - 0\.5 \* config\.loss_delta)/(magnitude + config.loss_delta)/' shaders/volume/loss.glsl
cmp -s "$VKNERF_SOURCE_DIR/shaders/volume/loss.glsl" shaders/volume/loss.glsl && fail "nothing to edit in loss.glsl"
train edited --shader-dir shaders
[ $code = 0 ] || fail "edited: exit status $code: $(cat err)"
[ "$(loss edited)" != "$(loss same)" ] || fail "an edit of loss.glsl had no effect"

sed -i '3s/^/nonsense;\n/' shaders/shared/common.glsl
train broken --shader-dir shaders
refuses 'shared/common.glsl:3: error: '
cp "$VKNERF_SOURCE_DIR/shaders/shared/common.glsl" shaders/shared
rm shaders/field/grid.glsl
train incomplete --shader-dir shaders
refuses 'field/grid.glsl'
train nowhere --shader-dir no/such/folder
refuses 'no/such/folder/'

[ $failures = 0 ] && echo "all passed"
exit $failures
