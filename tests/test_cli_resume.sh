#!/bin/sh
# Tests runs from the command line that resume in another precision, that are stopped and killed; and the demo.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

# ---- precisions ----------------------------------------------------------------------------------

# A resumed run in another precision uses that precision's loss scaling.
# shellcheck disable=SC2086
succeeds train "$demo" --out mixed --downscale 8 --steps 4 --quiet --precision fp32 $small
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 1,'
succeeds train --resume mixed --steps 8 --quiet --precision fp16
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"step": 8,'
contains last.json '"loss_scale": 65536,'
contains mixed/config.json '"precision":.*"fp16"'
contains mixed/summary.json '"gpu_memory_bytes":'
# New limits clamp the current scale, whatever its initial value was.
succeeds train --resume mixed --steps 9 --quiet --set loss_scale.maximum=1024
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"step": 9,.*"loss_scale": 1024,'
succeeds train --resume mixed --steps 10 --quiet --precision fp32 --loss-scale static:8
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 8,'
# A static scale is not kept for another precision, unless it is given again.
cp -r mixed other
succeeds train --resume other --steps 11 --quiet --precision fp16
tail -n 1 other/metrics.jsonl >last.json
contains last.json '"loss_scale": 65536,'
rm -r other
succeeds train --resume mixed --steps 12 --quiet --precision fp16 --loss-scale static:8
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 8,'
# A scale at which all gradients underflow gives a warning, and another at the end, but no failure.
cp -r mixed underflow
succeeds train --resume underflow --steps 60 --quiet --precision fp16 --loss-scale static:0.0001
contains err 'warning: step 57: 100 % of the gradients underflow in f16 at a loss scale of 0.0001: '
contains err 'warning: underflow: in 48 of 48 steps more than 2 % of the gradients underflowed in f16$'
[ "$(grep -c 'warning: .*in f16' err)" = 2 ] || fail "warnings: $(cat err)"
contains underflow/summary.json '"underflowed_steps":.48,$'
contains underflow/report.html '>Gradients: in 48 of 48 steps more than 2 % of the gradients underflowed in f16<'
rm -r underflow
# Skipped steps are in the last line and in the summary; a schedule that begins too high is no failure.
cp -r mixed skipped
printf '0 8\n14 1e30\n' >high.txt
succeeds train --resume skipped --steps 16 --precision fp16 --loss-scale schedule:high.txt
contains out '^trained 16 steps in .* s, 2 skipped (12 %): their loss or gradient was not finite'
contains skipped/summary.json '"skipped_steps":.2,'
succeeds info skipped
contains out '^skipped steps  *2$'
contains out '^status  *finished$'
rm -r skipped
# A run that takes no step fails and saves no checkpoint.
# shellcheck disable=SC2086
run train "$demo" --out none --downscale 8 --steps 4 --quiet --precision fp16 --loss-scale static:8.5e37 $small
[ "$code" = 1 ] || fail "no step was taken: exit status $code"
contains err '^vknerf: step 4: no step was taken: all 4 were skipped, .* at a loss scale of 8.5e+37; not finite first: '
contains err 'use a smaller loss scale than 8.5e+37, such as --loss-scale dynamic'
contains none/summary.json '"status":.*"failed"'
contains none/summary.json '"failure":.*"step 4: no step was taken'
contains none/report.html 'Failed: step 4: no step was taken'
[ ! -e none/checkpoint.safetensors ] || fail 'a checkpoint was saved'
succeeds info none
contains out '^step  *4$'
contains out '^skipped steps  *4$'
contains out '^status  *failed$'
contains out '^failure  *step 4: no step was taken'
refuses 2 'none: a run that saved nothing, not a scene; how it ended: vknerf info ' train none
# A diverging run ends early, names the first non-finite tensor, and keeps the last good checkpoint.
cp -r mixed diverged
cksum <diverged/checkpoint.safetensors >before
run train --resume diverged --steps 200 --save-every 8 --quiet --precision fp32 --set policy.moments=f16 \
    --set optimizer.learning_rate=0.02
[ "$code" = 1 ] || fail "diverged: exit status $code"
contains err '^vknerf: step [78][0-9]: the training has diverged: since step 1[34] no loss was finite; not finite first: the outputs of the MLPs, .*; the largest weight is .*, in l'
contains err 'undo policy.moments=f16'
contains err 'The last good checkpoint is diverged/checkpoint.safetensors, of step 12; .*--resume diverged '
contains diverged/summary.json '"status":.*"failed"'
cksum <diverged/checkpoint.safetensors >after
cmp -s before after || fail 'the last good checkpoint was replaced'
rm -r none diverged
succeeds eval mixed --precision fp32 --json --stride 12 --quiet
contains out '"precision":.*"fp32"'
succeeds render mixed --precision fp16 --orbit 1 --width 24 --out orbit --quiet
# Without 16-bit arithmetic the run's precision falls back, but a precision that is asked for is refused.
export VKNERF_DISABLE=float16,cooperative_matrix
succeeds eval mixed --stride 12 --quiet
contains err 'rendering in fp32: .* has no 16-bit arithmetic'
refuses 2 'has no 16-bit arithmetic' eval mixed --stride 12 --quiet --precision fp16
refuses 2 'has no 16-bit arithmetic' train --resume mixed --steps 14 --quiet --precision fp16
succeeds train --resume mixed --steps 14 --quiet --set loss_scale.maximum=4 # below the scale of 8, which falls back too
contains err "no 16-bit arithmetic and storage; the run's precision becomes fp32"
tail -n 1 mixed/metrics.jsonl >last.json
contains last.json '"loss_scale": 1,'
unset VKNERF_DISABLE

# ---- runs that are stopped and killed ------------------------------------------------------------

# shellcheck disable=SC2317 # wait_until calls it
is_new() { # FOLDER NAME: the file is newer than ./started
    [ -n "$(find "$1" -name "$2" -newer started)" ]
}

start() { # FOLDER ARGUMENT ...: starts training and waits for a new checkpoint; sets $child, writes ./bout and ./berr
    folder=$1
    shift
    touch started
    "$bin" "$@" --quiet >bout 2>berr &
    child=$!
    wait_until 600 is_new "$folder" checkpoint.safetensors || fail "vknerf $*: no checkpoint: $(cat berr)"
}

stop() { # SIGNAL STATUS
    end_child "$1" "$2" "stopped by $1" berr
}

# A long run on a CPU device reports its duration; an interrupted run also prints JSON.
# shellcheck disable=SC2086
"$bin" train "$demo" --out slow --downscale 8 --steps 4G --json $small >out 2>err &
child=$!
expected='demo: 4000000000 steps take about [0-9]* hours more on this CPU device; --seconds 5m'
[ "${VKNERF_TEST_NATIVE:-0}" != 1 ] || expected='^step '
wait_until 600 grep "$expected" err
end_child TERM 130 interrupted
contains err '^vknerf: interrupted at step [0-9]* and saved; go on with: vknerf train --resume slow'
contains err "$expected"
cp out slow.json
is_json slow.json
contains slow.json '"status":.*"interrupted"'

# Only one process trains into a run, others may read it; kill -9 leaves the last checkpoint.
# shellcheck disable=SC2086
start stopped train "$demo" --out stopped --downscale 8 --steps 100000 \
    --set save_seconds=0.1 $small
owner="process $(cut -d ' ' -f 1 stopped/.lock) on $(uname -n)"
refuses 2 "stopped: $owner is training into this folder" train --resume stopped
refuses 2 "stopped: $owner is training into this folder" train "$demo" --out stopped
succeeds report stopped
stop KILL 137
[ -e stopped/.lock ] || fail "kill -9: the lock was not there"
# A temporary file of a dead process, and lines of steps that will be trained again.
touch stopped/checkpoint.safetensors.$$.7.tmp
printf '{"step": 99999}\n{"step": 16}\n{"step": 16' >>stopped/metrics.jsonl
# A shell without job control starts children with SIGINT ignored; SIGTERM stops like Ctrl-C.
start stopped train --resume stopped
stop TERM 130
contains berr '^vknerf: interrupted at step [0-9]* and saved; go on with: vknerf train --resume stopped'
has stopped/checkpoint.safetensors stopped/report.html
contains stopped/summary.json '"status":.*"interrupted"'
[ -z "$(find stopped -name '*.tmp' -o -name .lock)" ] || fail "left behind: $(find stopped)"
step=$(sed -n 's/^{"step": \([0-9]*\),.*/\1/p' stopped/metrics.jsonl | tail -n 1)
[ "$(sed -n 's/^{"step": \([0-9]*\)[,}].*/\1/p' stopped/metrics.jsonl | sort -nu)" = \
    "$(sed -n 's/^{"step": \([0-9]*\)[,}].*/\1/p' stopped/metrics.jsonl)" ] ||
    fail "metrics.jsonl: steps that do not rise: $(cut -c -16 stopped/metrics.jsonl)"
refuses 2 "stopped/checkpoint.safetensors: step $step is past --steps 10: nothing would be trained" \
    train --resume stopped --steps 10
succeeds train --resume stopped --steps "$step" --quiet
contains err "already finished at step $step: nothing is trained"
contains stopped/summary.json '"status":.*"finished"'
[ "${VKNERF_TEST_NATIVE:-0}" = 1 ] ||
    contains stopped/summary.json '"path_why":.*"chosen when the run began: CPU devices multiply f32'

# ---- demo ----------------------------------------------------------------------------------------

VKNERF_ASSETS=$VKNERF_SOURCE_DIR/assets
export VKNERF_ASSETS
# shellcheck disable=SC2086
succeeds demo --out demo --seconds 0.1 --downscale 8 $small
contains err 'demo: [0-9]* steps in 0.1 s are few: this model usually needs 1000 '
contains out '^report: demo/report.html'
contains out '^orbit: demo/orbit'
has demo/report.html demo/orbit/frame_0023.png
succeeds demo --out demo --view
contains out '^view it again: vknerf view demo$'
contains out 'demo: already trained'
# A demo that is trained anew and killed before it saves leaves no old checkpoint with new metrics.
touch started
# shellcheck disable=SC2086
"$bin" demo --out demo --force --steps 100000 --set save_seconds=-1 --downscale 8 --quiet $small \
    >bout 2>berr &
child=$!
wait_until 600 is_new demo metrics.jsonl
stop KILL 137
# shellcheck disable=SC2086
succeeds demo --out demo --steps 2 --downscale 8 --quiet $small
contains out '^trained 2 steps'
contains demo/summary.json '"step":.*2,'
[ -n "$(find demo/orbit -name frame_0023.png -newer demo/checkpoint.safetensors)" ] ||
    fail "demo: the orbit is of the old model"

finish
