#!/bin/sh
# Tests user-defined fields from the command line. In GLSL: a run is evaluated, rendered, exported and resumed without
# the file; messages name file, line and parameter. By configuration: tiny-cuda-nn's format. Under sanitizers
# test_field_glsl, test_layered and test_tcnn run the same host code.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

# ---- in GLSL -----------------------------------------------------------------------------------------

small="--quiet --deterministic --downscale 8 --set batch.samples=1024 --set batch.max_rays=256
    --set march.resolution=16 --set march.steps_per_unit=64 --set mlp.density_width=16 --set mlp.color_width=16
    --set precision=fp32"
sed 's/128/16/' "$VKNERF_SOURCE_DIR/examples/triplane_field.glsl" | sed 's/128 \*/16 */' >field.glsl

# shellcheck disable=SC2086 # a list of words
run train "$demo" --out first --steps 4 --field field.glsl $small
if grep -q 'shaderc, which' err; then
    echo "skipped: test_fields: shaderc is not installed"
    exit 77
fi
[ "$code" = 0 ] || fail "train --field: exit status $code: $(cat err)"
contains first/config.json '"model":.*"glsl"'
grep -aq '#pragma field parameters' first/checkpoint.safetensors || fail "the checkpoint has no GLSL"

# Another comment makes another field.
hash=$(sha256sum field.glsl | cut -d ' ' -f 1)
sed 's/^void encode(/\/\/ changed\n&/' field.glsl >other.glsl
refuses 2 'first/checkpoint.safetensors: trained with another field in GLSL' \
    train --resume first --steps 6 --quiet --field other.glsl --trust="$hash"
mv field.glsl moved.glsl

# GLSL from a checkpoint runs only with --trust; vknerf info shows it without running it.
succeeds info first
contains out "^field  *[0-9]* bytes of GLSL, SHA-256 $hash\$"
succeeds info first/checkpoint.safetensors --field
cmp -s out moved.glsl || fail "info --field: not the file: $(head -c 300 out)"
untrusted="first/checkpoint.safetensors: holds a program, .* SHA-256 $hash: it runs with --trust"
refuses 2 "$untrusted" train --resume first --steps 8 --quiet
refuses 2 "$untrusted" train "$demo" --out none --init first --quiet
refuses 2 "$untrusted" eval first --quiet
echo y | "$bin" train --resume first --steps 8 --quiet >out 2>err
contains err "$untrusted"
refuses 2 "$untrusted" train --resume first --steps 8 --quiet --trust="$(echo "$hash" | tr 0-9 1-90)"
refuses 2 '--trust: abc: not a SHA-256' train --resume first --steps 8 --quiet --trust=abc
# On a terminal the user is asked.
answers='no yes'
[ -z "${VKNERF_WINDOWS:-}" ] || { answers= && echo 'skipped: the question: no terminal of Unix is a console of Windows'; }
for answer in $answers; do
    python3 - "$answer" "$bin" train --resume first --steps 8 --quiet >out 2>&1 <<'END' || fail "asked, $answer: $(cat out)"
import os, pty, sys
answer, command = sys.argv[1], sys.argv[2:]
process, terminal = pty.fork()
if process == 0:
    os.execv(command[0], command)
text = b""
try:
    while part := os.read(terminal, 4096):
        text += part
        if part.endswith(b"[y/N] "):
            os.write(terminal, answer.encode() + b"\n")
except OSError:
    pass
code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
print(code, text)
sys.exit(code != (0 if answer == "yes" else 2) or b"SHA-256" not in text)
END
done
succeeds eval first --quiet --stride 8 --trust
contains err "^first: runs its field, [0-9]* bytes of GLSL, SHA-256 $hash\$"
succeeds render first --quiet --orbit 1 --width 16 --out orbit --trust="$hash"
succeeds export first --quiet --mesh a.ply --resolution 32 --unseen keep --trust
# shellcheck disable=SC2086 # a list of words
succeeds train "$demo" --out begun --steps 2 --init first --trust $small

refuses 2 'config: glsl.source: no field of number [0-9]* is registered: pass --field FILE.glsl' \
    train "$demo" --out none --config first/config.json --quiet
refuses 2 'config: glsl.source: no field of number 0 is registered' train "$demo" --out none --model glsl --quiet
refuses 2 'no.glsl: ' train "$demo" --out none --field no.glsl --quiet
# GLSL that stores to an address: on a CPU device, to the process's memory.
{
    printf '#extension GL_EXT_%s : require\n' buffer_reference buffer_reference_uvec2
    echo 'layout(buffer_reference, std430, buffer_reference_align = 4) buffer Host { uint v; };'
    sed 's/^void encode(.*/&\n{\n    Host h = Host(uvec2(0u, 4096u));\n    h.v = 1u;/; /^void encode(/,/^{/{/^{/d}' moved.glsl
} >address.glsl
refuses 2 'address.glsl:1: a field has no #extension GL_EXT_buffer_reference' \
    train "$demo" --out none --field address.glsl --quiet
sed 's/, weight \* feature/, -weight * feature/' moved.glsl >wrong.glsl
refuses 2 'wrong.glsl: encode_backward: parameter [0-9]* off by 2: adds ' \
    train "$demo" --out none --field wrong.glsl --quiet
[ ! -e none ] || fail "a refused field left the folder of a run"

# A loop that becomes endless during training ends the command, and the last checkpoint stays. test_field_glsl tests
# endless loops in the check of a field.
awk '/^void encode\(/ { inside = 1 }
    inside && /put_feature/ { sub(/sum\)/, "sum + 1e-30 * mean)"); inside = 0 }
    { print }
    inside && /^{/ {
        print "    float mean = 0.0;"
        for (i = 0; i < 16; i++)
            print "    mean += abs(parameter(first_parameter + " 97 * i "u)) / 16.0;"
        print "    while (mean > 0.04 && mean < 0.2)\n        mean = min(mean, 0.15);"
    }' moved.glsl >late.glsl
# shellcheck disable=SC2086 # a list of words
succeeds train "$demo" --out late --steps 16 --field late.glsl $small --set optimizer.learning_rate=0.004 \
    --set optimizer.warmup_steps=1
export VKNERF_FIELD_SECONDS=1
refuses 3 "update interval: not finished after 1 seconds: a loop in the field's GLSL may never end.* the last saved step is 16" \
    train --resume late --steps 400 --field late.glsl --quiet
unset VKNERF_FIELD_SECONDS
succeeds train --resume late --steps 17 --quiet --field late.glsl
rm -r late
# Two signals while a field compiles, which would take twenty seconds, end the program and its compiler process.
test_signals() {
    {
        echo '#define A0 1.0 + 1.0'
        seq 40 | awk '{ print "#define A" $1 " A" $1 - 1 " + A" $1 - 1 }'
        sed 's/^void encode(/const float a = A40;\n&/' moved.glsl
    } >bomb.glsl
    "$bin" train "$demo" --out none --field bomb.glsl --quiet >out 2>err &
    child=$!
    compiler() { cat "/proc/$child/task/"*/children 2>/dev/null | grep -o '[0-9]\+'; }
    wait_until 600 grep -q libshaderc "/proc/$child/maps"
    wait_until 600 compiler
    pid=$(compiler)
    kill -HUP "$child"
    kill -TERM "$child"
    wait_for_child
    [ $code = 129 ] || [ $code = 143 ] || fail "two signals while compiling: exit status $code: $(cat err)"
    contains err '^stopped at once: '
    wait_until 50 test ! -e "/proc/$pid" || fail "the compiler of a field outlives the program"
}
if [ -n "${VKNERF_WINDOWS:-}" ]; then
    echo 'skipped: signals while a field compiles: Windows has no compiler process'
else
    test_signals
fi
rm -rf none

# ---- by configuration --------------------------------------------------------------------------------

# A configuration in tiny-cuda-nn's format; a run that is stopped and resumed equals an uninterrupted run.
layers="--downscale 8 --quiet --deterministic --precision fp32 --set batch.samples=1024 --set batch.max_rays=256
    --set march.resolution=16 --set march.steps_per_unit=64 --set mlp.density_width=32 --set mlp.color_width=32
    --set grid.log2_entries=10"
for run in whole parts; do
    [ $run = whole ] && steps=32 || steps=16
    # shellcheck disable=SC2086
    succeeds train "$demo" --out $run --steps $steps $layers --set optimizer.warmup_steps=2 \
        --set optimizer.milestones=2,2,2 \
        --config "$VKNERF_SOURCE_DIR/examples/wide_hash.json"
done
succeeds train --resume parts --steps 32 --quiet
contains parts/config.json '"model":.*"layered"'
contains parts/config.json '"position":.*"hash"'
PYTHONPATH=$VKNERF_SOURCE_DIR/tests python3 -B -c 'import sys, viewer_client
sys.exit(viewer_client.tensors(sys.argv[1]) != viewer_client.tensors(sys.argv[2]))' whole/checkpoint.safetensors \
    parts/checkpoint.safetensors || fail "a resumed run differs from an uninterrupted run"
succeeds export whole --mesh whole.ply --resolution 8 --unseen keep --quiet
# A run initialised from its weights inherits its layers, unless other layers are asked for.
# shellcheck disable=SC2086
succeeds train "$demo" --out heir --steps 1 $layers --init whole/checkpoint.safetensors
contains heir/config.json '"density_layers":.*3'
# shellcheck disable=SC2086
refuses 2 'tensor params has [0-9]* elements' train "$demo" --out heir2 --steps 1 $layers \
    --init whole/checkpoint.safetensors --set field.position=frequencies
rm -r whole parts heir

[ $failures = 0 ] && echo "all passed"
exit $failures
