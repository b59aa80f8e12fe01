#!/bin/sh
# Tests vknerf as a process: closed descriptors, signals, limits, names that are not UTF-8.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"
small='--downscale 8 --precision fp32 --set grid.levels=4 --set grid.log2_entries=12 --set
    mlp.density_width=16 --set mlp.color_width=16 --set mlp.geometry=16 --set march.resolution=32 --set
    batch.samples=4096 --set batch.max_rays=512'

start_training() { # SCENE FOLDER: leaves $child, which trains
    # shellcheck disable=SC2086  # $small is several words
    "$bin" train "$1" --out "$2" --steps 1000000 --quiet --json $small >out 2>err &
    child=$!
    wait_until 600 test -s "$2/metrics.jsonl"
}

# ---- signals -------------------------------------------------------------------------------------

# The limit on processor time raises a signal every second; the first one ends the training, which is saved.
odd=$(printf 'caf\351\033[31m')
cp -r "$demo" "$odd"
start_training "$odd" run
kill -XCPU "$child"
sleep 0.1
kill -XCPU "$child" 2>/dev/null
wait_for_child
[ $code = 130 ] || fail "SIGXCPU: exit status $code: $(cat err)"
contains err '^the limit on processor time is reached: stopping and saving'
contains err '^vknerf: interrupted at step [0-9]* and saved'
[ -s run/checkpoint.safetensors ] || fail "SIGXCPU: nothing was saved"

# timeout(1) sends its signal to the program and then to the group, which includes the program.
start_training "$demo" "$odd.run"
kill -TERM "$child"
sleep 0.02
kill -TERM "$child"
wait_for_child
[ $code = 130 ] || fail "one signal that comes twice: exit status $code: $(cat err)"
[ -s "$odd.run/checkpoint.safetensors" ] || fail "one signal that comes twice: nothing was saved"
iconv -f UTF-8 -t UTF-8 out >/dev/null || fail "train --json: not UTF-8"
contains out '"status":.*"interrupted"'
"$bin" report "$odd.run" --json >out || fail "report: exit status $?"
iconv -f UTF-8 -t UTF-8 out >/dev/null || fail "report --json: not UTF-8"
"$bin" render "$odd.run" --json --quiet --orbit 1 --width 8 --out "$odd.frames" >out || fail "render: exit status $?"
iconv -f UTF-8 -t UTF-8 out >/dev/null || fail "render --json: not UTF-8"

# A second signal ends the program at once with a message. Both signals wait until the suspended program runs again, and
# then arrive at once, in two threads.
start_training "$demo" twice
kill -STOP "$child"
wait_until 100 grep -q '^State:.T' "/proc/$child/status"
kill -HUP "$child"
kill -TERM "$child"
kill -CONT "$child"
wait_for_child
[ $code = 129 ] || [ $code = 143 ] || fail "two signals: exit status $code: $(cat err)"
[ "$(grep -c "^stopping and saving; once more to stop at once" err)" = 1 ] ||
    fail "two signals: not exactly one message: $(cat err)"
contains err '^stopped at once: what came after the last checkpoint is not saved'
[ ! -e twice/checkpoint.safetensors ] || fail "stopped at once, but saved"

# ---- descriptors and names -----------------------------------------------------------------------

# No file is opened as standard output or standard error; a scene whose path is not UTF-8 is found again, and no file
# contains invalid UTF-8.
step=$(sed -n 's/^{"step": \([0-9]*\),.*/\1/p' run/metrics.jsonl | tail -n 1)
"$bin" train --resume run --steps $((step + 16)) <&- >&- 2>&-
code=$?
[ $code = 0 ] || fail "with closed descriptors: exit status $code"
grep -v '^{"step": .*}$' run/metrics.jsonl && fail "metrics.jsonl: foreign content"
for file in run/*.json run/*.jsonl; do
    iconv -f UTF-8 -t UTF-8 "$file" >/dev/null || fail "$file: not UTF-8"
done
"$bin" info "$odd/absent" >out 2>err
contains err '^vknerf: caf? \[31m/absent: '
"$bin" "$odd.absent" >out 2>err
contains err '^vknerf: caf? \[31m\.absent: unknown command'

# ---- limits --------------------------------------------------------------------------------------

# Exceeding the limit of file sizes is an error with a message, not the end by SIGXFSZ.
(
    ulimit -f 1
    exec "$bin" report run
) >out 2>err
code=$?
[ $code = 1 ] || fail "SIGXFSZ: exit status $code: $(cat err)"
contains err '^vknerf: .*report.html: .*: File too large'

finish
