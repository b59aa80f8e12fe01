#!/bin/sh
# Stands for the program vknerf in test_certify_trainings: a device without matrices, and trainings whose PSNR is
# $FAKE_PSNR. $FAKE_BITS=1: the checkpoint of the folder "second" is another one. $FAKE_FAULT: of a
# case of bench. $FAKE_STATUS: exit status of bench.
command=$1 out=
[ "$command $2 $3" = "certify --part device" ] &&
    echo '{"device": {"name": "fake", "type": "cpu", "driver": "none", "float16": true, "cooperative_matrix": false}}'
while [ $# -gt 0 ]; do
    [ "$1" = --out ] && out=$2
    shift
done
case $command in
    train)
        mkdir -p "$out"
        [ -n "${FAKE_PSNR:-}" ] || exit 3
        echo "{\"psnr\": $FAKE_PSNR, \"path\": \"fake\", \"passes\": []}" >"$out/summary.json"
        checkpoint=first
        [ "${FAKE_BITS:-}:${out##*/}" = 1:second ] && checkpoint=second
        cp "$FAKE_CHECKPOINTS/$checkpoint.safetensors" "$out/checkpoint.safetensors"
        ;;
    bench)
        mkdir -p "$out"
        echo "{\"results\": [{\"case\": \"c\", \"path\": \"p\", \"fault\": \"${FAKE_FAULT:-}\"}]}" >"$out/bench.json"
        exit "${FAKE_STATUS:-0}"
        ;;
esac
