#!/bin/sh
# Tests ranks started by mpirun: they give the same bits as threads and as ranks on one device; a stop signal stops all;
# differences are reported before training. Starts 18 processes. The sweep `ranks` of tests/faults kills and stops
# processes.
# shellcheck source=tests/cli.sh
. "${VKNERF_SOURCE_DIR:?}/tests/cli.sh"

command -v mpirun >/dev/null || { echo "skipped: test_mpi: no mpirun"; exit 77; }
[ -f "${VKNERF_BUILD_DIR:?}/vknerf-mpi.so" ] || { echo "skipped: test_mpi: built without MPI"; exit 77; }
export VKNERF_MPI_MODULE="$VKNERF_BUILD_DIR"/vknerf-mpi.so
# As root in CI, with more ranks than processors, and only shared memory and the loopback device.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl=self,vader OMPI_MCA_oob_tcp_if_include=lo
# Open MPI 4 and 5.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export LP_NUM_THREADS=1

start_ranks() { # RANKS COMMAND ...: sets $code, writes ./out and ./err
    timeout -s KILL 60 mpirun -n "$@" >out 2>err
    code=$?
}
run_ranks() { # RANKS ARGUMENT ...
    ranks=$1
    shift
    start_ranks "$ranks" "$bin" "$@"
}
trains() { # RANKS ARGUMENT ...
    run_ranks "$@"
    [ "$code" = 0 ] || fail "mpirun -n $*: exit status $code: $(cat err)"
}
same_weights() { # FOLDER FOLDER
    cmp "$1/checkpoint.safetensors" "$2/checkpoint.safetensors" || fail "$1 and $2 have different weights"
}

# ---- the same bits -------------------------------------------------------------------------------

# test_same_bits of test_ranks compares threads and ranks on one device.
# shellcheck disable=SC2086
set -- train "$demo" --downscale 8 --deterministic --quiet --precision fp32 --steps 18 $small
trains 2 "$@" --out processes
[ "$(grep -c '^trained' out)" = 1 ] || fail "not one result: $(cat out)"
succeeds "$@" --out turns --set parallel.ranks_per_device=2
same_weights processes turns
contains processes/summary.json '"ranks":.2,$'
contains processes/report.html '<dt>Ranks</dt>'

# Four ranks resume, whatever number of ranks began.
trains 4 train --resume processes --steps 24 --quiet --view=0 --view-exit
[ "$(grep -c '^viewer: ' out)" = 1 ] || fail "not one viewer: $(cat out)"
succeeds train --resume turns --steps 24 --quiet --set parallel.ranks_per_device=4
same_weights processes turns

# Parameter averaging: ranks train on their own between two averages.
set -- "$@" --set parallel.mode=average
trains 2 "$@" --out apart
succeeds "$@" --out apart_threads --devices 0,0
same_weights apart apart_threads
contains apart_threads/metrics.jsonl '"exchange_share": 0'
contains apart/config.json '"mode":.*"average"'

# ---- equal quality -------------------------------------------------------------------------------

# A synchronous step of two ranks is a step of one rank with twice as many rays, exactly so with max_rays drawn.
# Parameter averaging trains differently, but reaches the same quality. The bits above show that processes take the same
# step as threads; test_first_step and test_average of test_ranks check that step.
psnr() { # FILE: its "psnr", in hundredths of a dB
    sed -n 's/^.*"psnr":[[:space:]]*\([0-9]*\)\.\([0-9][0-9]\).*$/\1\2/p' "$1" | head -n 1
}
if [ -n "${VKNERF_TEST_ALL:-}" ]; then
    # shellcheck disable=SC2086
    set -- train "$demo" --downscale 4 --json --quiet --precision fp32 --steps 96 --seed 1 $tiny \
        --set march.resolution=32 --set march.steps_per_unit=64 --set batch.max_rays=256 --set batch.samples=16384
    succeeds "$@" --out twice --set batch.max_rays=512 --set batch.samples=32768
    twice=$(psnr out)
    trains 2 "$@" --out exact
    exact=$(psnr out)
    trains 2 "$@" --out average --set parallel.mode=average
    average=$(psnr out)
    echo "PSNR of one rank with twice the rays, two exact, two that are averaged: $twice $exact $average (dB / 100)"
    [ "$((exact - twice))" -le 10 ] || fail "exact: $exact instead of $twice"
    [ "$((twice - exact))" -le 10 ] || fail "exact: $exact instead of $twice"
    [ "$((twice - average))" -le 30 ] || fail "average: $average instead of $twice"
fi

# ---- errors ------------------------------------------------------------------------------------

refuses 2 'is not a list such as 0,1' train "$demo" --devices 0,,1
refuses 2 'give only one of them' train "$demo" --devices 0,0 --device 0
refuses 2 '64 ranks have only 60 training images' train "$demo" --devices 0,0,0,0 --set parallel.ranks_per_device=16 \
    --set parallel.images=share --out none --quiet
refuses 3 'rank 1: no device matches "9"' train "$demo" --devices 0,9 --out none --quiet
unset VKNERF_MPI_MODULE # also found beside the program
run_ranks 2 train not/there --quiet
[ "$code" = 2 ] || fail "no scene: exit status $code: $(cat err)"
contains err '^vknerf: not/there: '
[ "$(grep -c '^vknerf: ' err)" = 1 ] || fail "no scene: not reported once: $(cat err)"

# Rank 1 gets other arguments from a shell: mpirun of Open MPI 5.0.7 crashes with two commands. With
# parallel.images=share only rank 1 reads the image that differs.
cp -r "$demo" copy
cp copy/train/r_1.png copy/train/r_3.png
differs() { # PATTERN SCENE STEPS: arguments of rank 1, and the message
    export scene_1="$2" steps_1="$3"
    # shellcheck disable=SC2016,SC2086
    start_ranks 2 sh -c '
        if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then scene=$1 steps=18; else scene=$scene_1 steps=$steps_1; fi
        shift
        exec "$0" train "$scene" --steps "$steps" "$@"' "$bin" "$demo" --downscale 8 --quiet --precision fp32 $small \
        --set parallel.images=share --out other
    [ "$code" = 2 ] || fail "differs: exit status $code: $(cat err)"
    [ "$(grep -c '^vknerf: ' err)" = 1 ] || fail "differs: not reported once: $(cat err)"
    contains err "^vknerf: rank 1: $1"
    [ ! -e other ] || fail "differs: something was trained"
}
differs "the requested training differs from rank 0's: steps: 19 instead of 18" "$demo" 19
differs "the scene differs from rank 0's: content of train view 3 (r_3.png)" copy 18
(
    export OMPI_COMM_WORLD_RANK=0 VKNERF_MPI_MODULE=not/there
    refuses 2 'started by mpirun, but this program has no MPI .* install libopenmpi-dev' train "$demo"
    exit $failures
) || failures=$((failures + 1))
if grep -qa 'libmpi' "$VKNERF_BUILD_DIR/vknerf"; then fail "the program depends on MPI"; fi

begin() { # FOLDER: starts two processes and waits for a checkpoint; writes their process ids to ./pid_RANK
    # shellcheck disable=SC2016,SC2086
    timeout -s KILL 60 mpirun -n 2 sh -c 'echo $$ >"pid_$OMPI_COMM_WORLD_RANK"; exec "$@"' sh "$bin" train "$demo" \
        --downscale 8 --quiet --precision fp32 --steps 100000 --save-seconds 0.5 --out "$1" $small >bout 2>berr &
    child=$!
    wait_until 300 test -s "$1/checkpoint.safetensors" || fail "$1: no checkpoint: $(cat berr)"
}

# A signal to one process stops all at one step, which is saved.
begin stopped
kill -INT "$(cat pid_1)"
wait_for_child
[ $code = 130 ] || fail "stopped: exit status $code: $(cat berr)"
contains stopped/summary.json '"status":."interrupted"'
contains berr '^vknerf: interrupted at step [0-9]* and saved'
[ "$(grep -c '^vknerf: ' berr)" = 1 ] || fail "stopped: not reported once: $(cat berr)"
succeeds eval stopped --stride 12 --quiet

finish
