# shellcheck shell=sh
# Common parts of the tests of the command line, which source this file. Changes to a temporary folder, which is removed
# at the end.
# shellcheck disable=SC2034 # used by the tests
set -u
bin=${VKNERF_BIN:?}
demo=${VKNERF_SOURCE_DIR:?}/assets/demo
work=$(mktemp -d)
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

run() { # ARGUMENT ...: leaves $code, ./out and ./err
    "$bin" "$@" >out 2>err
    code=$?
}

# Expects that vknerf fails with CODE, and that standard error is one line, "vknerf: " and the pattern.
refuses() { # CODE PATTERN ARGUMENT ...
    want=$1 pattern=$2
    shift 2
    run "$@"
    [ "$code" = "$want" ] || fail "vknerf $*: exit status $code instead of $want: $(cat err)"
    [ "$(wc -l <err)" = 1 ] || fail "vknerf $*: not one line: $(cat err)"
    grep -q "^vknerf: .*$pattern" err || fail "vknerf $*: '$pattern' is not in: $(cat err)"
    [ ! -s out ] || fail "vknerf $*: standard output: $(cat out)"
}

succeeds() { # ARGUMENT ...
    run "$@"
    [ "$code" = 0 ] || fail "vknerf $*: exit status $code: $(cat err)"
}

has() { # FILE ...
    for file; do
        [ -s "$file" ] || fail "$file: absent or empty"
    done
}

contains() { # FILE PATTERN
    grep -q -- "$2" "$1" || fail "$1: '$2' is not in it: $(head -c 500 "$1")"
}

# Expects one JSON object: vknerf, which reads JSON strictly, must complain only about unknown keys.
is_json() { # FILE
    run train not/there --config "$1"
    grep -q 'unknown key' err || fail "$1: not one JSON object: $(cat err)"
}

# Writes a scene of two images.
frame() { # IMAGE [FIRST-NUMBER]
    printf '{"file_path": "%s", "transform_matrix": [[%s,0,0,0],[0,1,0,0],[0,0,1,4],[0,0,0,1]]}' \
        "$1" "${2:-1}"
}
scene() { # NAME FRAMES [MORE]
    mkdir -p "$1"
    cp "$demo/train/r_0.png" "$1/a.png"
    cp "$demo/train/r_1.png" "$1/b.png"
    printf '{"camera_angle_x": 0.69, %s "frames": [%s]}\n' "${3:-}" "$2" >"$1/transforms_train.json"
}

# The model of step_fixture.h, whose pipelines other tests have put into Mesa's cache.
tiny='--set mlp.density_width=16 --set mlp.color_width=16 --set mlp.color_layers=1 --set mlp.sh_degree=3
    --set grid.levels=4 --set grid.log2_entries=12'
small="--set batch.samples=1024 --set batch.max_rays=256 --set march.resolution=16 --set march.steps_per_unit=64 $tiny"

wait_until() { # TENTHS COMMAND ...: repeats it until it succeeds, for so many tenths of a second
    tenths=$1
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$tenths" -gt 0 ] || return
        tenths=$((tenths - 1))
        sleep 0.1
    done
}

wait_for_child() { # leaves $code
    wait "$child" 2>/dev/null
    code=$?
    child=
}

end_child() { # SIGNAL STATUS WHAT [FILE]: expects that the signal ends $child with the status
    signal=$1
    [ "${VKNERF_WINDOWS:-}:$1" != 1:TERM ] || signal=INT # Wine makes Ctrl-C of this signal only
    kill "-$signal" "$child"
    wait_for_child
    [ $code = "$2" ] || fail "$3: exit status $code: $(cat "${4:-err}")"
}

finish() {
    [ $failures = 0 ] && echo "all passed"
    exit $((failures > 0))
}
