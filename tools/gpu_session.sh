#!/bin/sh
# tools/gpu_session.sh pack DIR [--build BUILD] [--tests REGEX] [--scene PATH]
#     Packs what a session on another machine needs into DIR: gpu_session.sh and tree.tar.gz, at most 64 MiB.
#     Builds first, unless --build names a build folder that has the tests. The session trains the scene, in
#     full size; default the bundled one.
# DIR/gpu_session.sh run --out OUT [OPTION ...]
#     There, in this order, so that what comes first is there when time is short:
#       smoke     half a minute of training: does it work at all
#       speed     unprofiled training, three times, with the GPU's clocks
#       train     training in every precision, every pass timed
#       tune      vknerf bench --tune, which what follows uses
#       variants  shapes of matrices, f16 sums, conversions, half atomics, 8 levels of 4 features, batches
#       peer      the PyTorch trainer beside it
#       bench     the suites of vknerf bench
#       tests     all tests, the validation layers among them
#       programs  what the driver's compiler makes of every program
#     into at most eight files of OUT: results.json, results.md, session.log and the charts. Every training
#     has seed 1 and everything else as it is by default, so that sessions can be compared.
# DIR/gpu_session.sh table OUT
#     Makes results.md anew from results.json: for machines that had no Python 3.
#
# Options of run, with their defaults:
#   --budget 540          seconds for everything; a part gets its share and what those before it left
#   --only LIST           of those parts
#   --scene PATH          a scene to train on, more than once for several; default the packed one
#   --repeats 3           of speed
#   --variants REGEX      only variants whose names match
#   --precisions LIST     fp32,fp16,coopmat
#   --seconds 20          of each training
#   --profile yes         no: trains without timing every pass
#   --downscale K         of the scenes' images
#   --suites LIST         quick,step,mlp,gemm,grid: quick is the smallest case of each kind
#   --tests REGEX         only tests whose names match
#   --test-limit 150      seconds for one test
#   --jobs N              tests at the same time; default one for each processor, 12 at the most
#   --loaders DIR         unpacks DIR/*.deb (the Vulkan loader, say) for the session's programs alone
#   --launcher "CMD"      put before every Vulkan program: tools/lavapipe.sh, say
#   --python "CMD"        the Python that has torch; default python3
#   --bench-options, --tune-options, --train-options, --peer-options "..."    further options of those programs
# VK_DRIVER_FILES and MESA_SHADER_CACHE_DIR in the environment reach the programs. Ctrl-C ends a session;
# what was measured so far is written.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

tab=$(printf '\t')

usage() { # [EXIT-STATUS]
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
    exit "${1:-2}"
}

# ---- pack ----------------------------------------------------------------------------------------

# A line for every test of the build folder: name and words of its command, with tabs between. The
# session sets the environment that tests share. Repeats in lavapipe's other vector width are left out.
list_tests() { # BUILD REGEX
    ctest --test-dir "$1" -N -V -R "$2" | awk -v build="$1" -v source="$source_dir" '
        function moved(text, from, to,    at, done) {
            while ((at = index(text, from)) > 0) {
                done = done substr(text, 1, at - 1) to
                text = substr(text, at + length(from))
            }
            return done text
        }
        sub(/^[0-9]+: Test command: /, "") {
            sub(/ "/, "\t"); gsub(/" "/, "\t"); sub(/"$/, "")
            command = moved(moved($0, build "/", "@ROOT@/build/"), source "/", "@ROOT@/")
            other = 0
        }
        /^[0-9]+:  LP_NATIVE_VECTOR_WIDTH=/ { other = 1 }
        /^ *Test +#[0-9]+: / && command != "" {
            if (!other)
                print $3 "\t" command
            command = ""
        }'
}

# The programs that the list names, without debug information, and what they load beside the C library.
copy_programs() { # BUILD TREE
    {
        printf '%s\n' vknerf tests/libfake_cublaslt.so
        tr "$tab" '\n' <"$2/build/session.list" | sed -n 's|^@ROOT@/build/||p'
    } | sort -u | while read -r file; do
        [ -f "$1/$file" ] || die "$1/$file: no such file; build with -DVKNERF_TESTS=ON"
        mkdir -p "$2/build/$(dirname -- "$file")" "$2/build/lib"
        strip -o "$2/build/$file" "$1/$file" 2>/dev/null || cp "$1/$file" "$2/build/$file"
        ldd "$1/$file" | sed -nE 's/^.*(libcjson|libcmocka)[^ ]* => ([^ ]+) .*/\2/p'
    done | sort -u | while read -r library; do
        cp -L "$library" "$2/build/lib/"
    done
    cat >"$2/build/tests/vknerf" <<'WRAPPER'
#!/bin/sh
tests=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
exec "$tests/../../tools/run_test.sh" "$tests/../vknerf" "$@"
WRAPPER
    chmod +x "$2/build/tests/vknerf"
}

describe_build() { # TREE: what results.json says about the program
    commit=$(git -C "$source_dir" describe --always --dirty 2>/dev/null || echo unknown)
    glibc=$(cat "$1"/build/vknerf "$1"/build/tests/* | grep -ao 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
    printf '{"commit": "%s", "packed": "%s", "needs": "%s", "tests": %d}\n' "$commit" \
        "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$glibc" "$(wc -l <"$1/build/session.list")"
}

pack() {
    target='' build='' regex=. scene=''
    while [ $# -gt 0 ]; do
        case $1 in
            --build) build=${2:?} ; shift ;;
            --tests) regex=${2:?} ; shift ;;
            --scene) scene=${2:?} ; shift ;;
            -*) usage ;;
            *) target=$1 ;;
        esac
        shift
    done
    [ -n "$target" ] || usage
    if [ -z "$build" ]; then
        "$source_dir/tools/setup.sh" -DVKNERF_TESTS=ON
        build=$build_dir
    fi
    build=$(CDPATH='' cd -- "$build" && pwd -P)
    mkdir -p "$target"
    stage=$(mktemp -d)
    trap 'rm -rf "$stage"' EXIT

    mkdir -p "$stage/assets" "$stage/build" "$stage/tests/fuzz" "$stage/tools/peers"
    cp -r "$source_dir/assets/demo" "$stage/assets/"
    if [ -n "$scene" ]; then
        mkdir "$stage/scene"
        cp -rL "$scene" "$stage/scene/"
    fi
    cp "$source_dir"/tests/*.sh "$source_dir"/tests/*.py "$stage/tests/"
    cp -r "$source_dir/tests/fuzz/corpus" "$stage/tests/fuzz/"
    cp "$source_dir"/tools/*.sh "$source_dir"/tools/*.py "$stage/tools/"
    for folder in "" /ngp_torch; do
        mkdir -p "$stage/tools/peers$folder"
        cp "$source_dir/tools/peers$folder"/*.py "$stage/tools/peers$folder/"
    done
    list_tests "$build" "$regex" >"$stage/build/session.list"
    [ -s "$stage/build/session.list" ] || die "$build: ctest lists no test"
    copy_programs "$build" "$stage"
    describe_build "$stage" >"$stage/build/about.json"

    tar czf "$target/tree.tar.gz" -C "$stage" .
    packed=$(du -k "$target/tree.tar.gz" | cut -f 1)
    [ "$packed" -le $((64 * 1024)) ] ||
        die "$target/tree.tar.gz: $packed KiB, more than the 64 MiB that a session may carry; take a smaller scene"
    cat >"$target/gpu_session.sh" <<'START'
#!/bin/sh
# Unpacks tree.tar.gz, which lies beside it, and starts tools/gpu_session.sh there; --help tells more.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
VKNERF_UNPACKED=$(mktemp -d)
export VKNERF_UNPACKED
tar xzf "$here/tree.tar.gz" -C "$VKNERF_UNPACKED"
exec "$VKNERF_UNPACKED/tools/gpu_session.sh" "$@"
START
    chmod +x "$target/gpu_session.sh"
    say "$target: gpu_session.sh, tree.tar.gz ($packed KiB," \
        "$(wc -l <"$stage/build/session.list") tests)"
}

# ---- time and messages ---------------------------------------------------------------------------

# Hundredths of a second since the machine started, in $now.
read_clock() {
    read -r now _ </proc/uptime
    now=${now%.*}${now#*.}
}

in_seconds() { # HUNDREDTHS
    printf '%d.%02d' $(($1 / 100)) $(($1 % 100))
}

log() {
    say "$*"
    printf '== %s\n' "$*" >>"$out/session.log"
}

quoted() { # TEXT: as a JSON string
    printf '"%s"' "$(printf '%s' "$1" | tr '\n\t' '  ' | sed 's/[\\"]/\\&/g')"
}

file_or_null() { # FILE
    if [ -s "$1" ]; then cat "$1"; else echo null; fi
}

joined() { # FILE ...: JSON values with commas between; those that do not exist are left out
    first=yes
    for fragment; do
        [ -s "$fragment" ] || continue
        [ $first = yes ] || echo ,
        first=no
        cat "$fragment"
    done
}

# Runs a command with a time limit, its output into the log ($capture: standard output there); leaves its exit status in $code (124 or
# 137 when its time was up) and how long it took in $took. Ctrl-C and SIGTERM reach it through stop(),
# and nothing starts after that.
supervise() { # SECONDS SIGNAL COMMAND ...
    code=130 took=0
    [ "$interrupted" = false ] || return 0
    limit=$1 signal=$2
    shift 2
    [ "$limit" -ge 1 ] || limit=1
    read_clock
    started=$now code=0
    printf '$ %s\n' "$*" >>"$out/session.log"
    timeout -s "$signal" -k 10 "$limit" "$@" 2>>"$out/session.log" >>"${capture:-$out/session.log}" &
    child=$!
    wait $child || code=$?
    # A signal ends the wait before the program.
    while kill -0 $child 2>/dev/null; do
        code=0
        wait $child || code=$?
    done
    child=
    read_clock
    took=$((now - started))
}

# The session's Vulkan programs: with the packed libraries and the unpacked loaders, behind the launcher.
vknerf_limited() { # SECONDS ARGUMENT ...
    for_vknerf=$1
    shift
    supervise "$for_vknerf" INT env LD_LIBRARY_PATH="$libraries" \
        "$source_dir/tools/run_test.sh" "$build_dir/vknerf" "$@"
}

# ---- parts ---------------------------------------------------------------------------------------

every_part='smoke speed train tune variants peer bench tests programs'

weight_of() { # PART
    case $1 in tests) echo 25 ;; train | bench) echo 15 ;; smoke | programs) echo 5 ;; *) echo 10 ;; esac
}

wanted() { # PART
    case ,$only, in *,$1,*) return 0 ;; esac
    return 1
}

# A part's end, in $part_end: its share of what is left among the parts to come.
begin_part() { # PART
    part=$1 sum=0 coming=no
    for other in $every_part; do
        [ "$other" != "$part" ] || coming=yes
        if [ $coming = yes ] && wanted "$other"; then
            sum=$((sum + $(weight_of "$other")))
        fi
    done
    read_clock
    part_began=$now
    rest=$((session_end > now ? session_end - now : 0))
    part_end=$((now + rest * $(weight_of "$part") / sum))
    status=running note=
    write_part
    log "$part: up to $(in_seconds $((part_end - now))) s"
}

write_part() {
    read_clock
    printf '"%s": {"status": "%s", "seconds": %s, "limit_seconds": %s, "note": %s}\n' "$part" "$status" \
        "$(in_seconds $((now - part_began)))" "$(in_seconds $((part_end - part_began)))" \
        "$(quoted "$note")" >"$work/part.$part"
}

end_part() { # STATUS [NOTE]
    status=$1 note=${2:-}
    [ "$interrupted" = false ] || status=interrupted
    write_part
    log "$part: $status in $(in_seconds $((now - part_began))) s${note:+; $note}"
    part=
    write_results
    write_table
}

# Sets $slice: the seconds that one of COUNT things still to do in this part may take.
share_out() { # COUNT
    read_clock
    slice=$(((part_end - now) / $1 / 100))
    [ "$interrupted" = false ] || slice=0
}

# ---- tests ---------------------------------------------------------------------------------------

# These measure times or the device's free memory: nothing runs beside them.
alone='test_bench|test_find_batch|test_profile'

# One test, in a process of its own that xargs starts.
one_test() { # NAME
    out=$VKNERF_SESSION/tests
    line=$(grep "^$1$tab" "$source_dir/build/session.list")
    read_clock
    started=$now code=0
    printf '%s\n' "${line#*"$tab"}" | sed "s|@ROOT@|$source_dir|g" | tr "$tab" '\n' >"$out/$1.command"
    set -- "$1"
    while IFS= read -r word; do
        set -- "$@" "$word"
    done <"$out/$1.command"
    name=$1
    shift
    cd -- "$source_dir"
    timeout -k 10 "$VKNERF_TEST_LIMIT" env LD_LIBRARY_PATH="$VKNERF_LIBRARIES" "$@" >"$out/$name.log" 2>&1 &
    child=$!
    trap 'kill "$child" 2>/dev/null; exit 143' INT TERM
    wait $child || code=$?
    read_clock
    case $code in
        0) status=passed ;;
        77) status=skipped ;;
        124 | 137) status='out of time' ;;
        *) status=failed ;;
    esac
    printf '{"name": "%s", "status": "%s", "exit": %d, "seconds": %s}\n' "$name" "$status" "$code" \
        "$(in_seconds $((now - started)))" >"$out/$name.new"
    mv "$out/$name.new" "$out/$name.json"
}

count_tests() { # STATUS
    # shellcheck disable=SC2046  # names of tests
    set -- "$1" $(find "$work/tests" -name '*.json')
    [ $# -gt 1 ] || { echo 0; return; }
    pattern="\"status\": \"$1\""
    shift
    cat "$@" | grep -c "$pattern" || :
}

write_tests() {
    chosen=$(wc -l <"$work/tests.all")
    passed=$(count_tests passed) failed=$(count_tests failed) skipped=$(count_tests skipped)
    late=$(count_tests 'out of time')
    {
        printf '{"passed": %d, "failed": %d, "skipped": %d, "out_of_time": %d, "not_run": %d, "list": [\n' \
            "$passed" "$failed" "$skipped" "$late" $((chosen - passed - failed - skipped - late))
        # shellcheck disable=SC2046  # names of tests
        joined $(sed "s|.*|$work/tests/&.json|" "$work/tests.all")
        echo ']}'
    } >"$work/tests.json"
}

run_tests() {
    mkdir -p "$work/tests"
    export VKNERF_SESSION="$work" VKNERF_TEST_LIMIT="$test_limit" VKNERF_LIBRARIES="$libraries"
    cut -f 1 "$source_dir/build/session.list" | grep -E -- "$test_regex" >"$work/tests.all" || :
    grep -Evx "$alone" "$work/tests.all" >"$work/tests.together" || :
    grep -Ex "$alone" "$work/tests.all" >"$work/tests.alone" || :
    [ -s "$work/tests.all" ] || { end_part failed "no test matches $test_regex"; return; }
    share_out 1
    if [ -s "$work/tests.together" ]; then
        [ ! -s "$work/tests.alone" ] || slice=$((slice * 3 / 4))
        supervise "$slice" TERM xargs -P "$jobs" -n 1 -a "$work/tests.together" "$0" one-test
    fi
    share_out 1
    [ ! -s "$work/tests.alone" ] || supervise "$slice" TERM xargs -n 1 -a "$work/tests.alone" "$0" one-test
    finish_tests
}

finish_tests() {
    write_tests
    for result in "$work"/tests/*.json; do
        [ -f "$result" ] || continue
        grep -qE '"status": "(failed|out of time)"' "$result" || continue
        log "$(cat "$result")"
        tail -c 8000 "${result%.json}.log" >>"$out/session.log"
    done
    missing=$((chosen - passed - failed - skipped - late))
    note="$passed passed, $failed failed, $skipped skipped, $late out of time, $missing not run"
    if [ $((failed + late)) -gt 0 ]; then
        end_part failed "$note"
    elif [ "$missing" -gt 0 ]; then
        end_part partial "$note"
    else
        end_part "done" "$note"
    fi
}

# ---- bench ---------------------------------------------------------------------------------------

bench_arguments() { # SUITE
    [ "$1" = quick ] && echo "--quick" || echo "--suite $1"
}

# cuBLASLt is often there only as a part of PyTorch.
find_vendor_library() {
    [ -z "${VKNERF_CUBLASLT:-}" ] || return 0
    # shellcheck disable=SC2086  # a command with its arguments
    library=$($python -c '
import glob, sys
print((sorted(f for p in sys.path for f in glob.glob(p + "/nvidia/*/lib/libcublasLt.so.*")) or [""])[-1])
' 2>/dev/null) || return 0
    if [ -n "$library" ] && ! ldconfig -p 2>/dev/null | grep -q libcublasLt; then
        export VKNERF_CUBLASLT="$library"
    fi
}

run_bench() {
    [ "$on_cpu" = yes ] || find_vendor_library
    # shellcheck disable=SC2046  # a list of words
    set -- $(echo "$suites" | tr , ' ')
    complete=0 asked=$#
    while [ $# -gt 0 ]; do
        share_out $#
        if [ "$slice" -lt 3 ]; then
            shift
            continue
        fi
        # shellcheck disable=SC2046,SC2086  # lists of words
        vknerf_limited "$slice" bench $(bench_arguments "$1") --quiet --out "$work/bench.$1" $bench_options
        [ $code != 0 ] || complete=$((complete + 1))
        [ $code = 0 ] || log "bench $1: exit status $code"
        if [ -f "$work/bench.$1/bench.svg" ]; then
            [ "$1" = quick ] && chart=bench.svg || chart=bench-$1.svg
            cp "$work/bench.$1/bench.svg" "$out/$chart"
        fi
        write_results
        shift
    done
    if [ $complete = "$asked" ]; then
        end_part "done"
    elif ls "$work"/bench.*/bench.json >/dev/null 2>&1; then
        end_part partial "$complete of $asked suites complete"
    else
        end_part failed "no suite was measured"
    fi
}

bench_json() {
    for suite in $(echo "$suites" | tr , ' '); do
        [ -s "$work/bench.$suite/bench.json" ] || continue
        { printf '"%s": ' "$suite"; cat "$work/bench.$suite/bench.json"; } >"$work/bench.$suite.fragment"
    done
    joined "$work"/bench.*.fragment
}

# ---- smoke, speed, variants ----------------------------------------------------------------------

# The GPU's clocks, temperature and power every second or so, a JSON string each with commas between. Until killed.
sample_clocks() {
    separator=''
    while :; do
        line=$(nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader 2>/dev/null |
            head -n 1) || :
        [ -n "$line" ] || line=$(sed -n 's/^.*: \(.*\) \*$/\1/p' /sys/class/drm/card*/device/pp_dpm_sclk 2>/dev/null | head -n 1) || :
        [ -z "$line" ] || printf '%s%s' "$separator" "$(quoted "$line")"
        [ -z "$line" ] || separator=', '
        sleep 1
    done
}

# One training that is not profiled, in $work/NAME; $work/NAME.json has what came of it.
train_plain() { # NAME SECONDS LABEL TRAIN-OPTION ...
    name=$1 slice=$2 label=$3
    shift 3
    run=$work/$name
    seconds_of_training "$slice"
    : >"$run.clocks"
    sample_clocks >"$run.clocks" &
    sampler=$!
    # shellcheck disable=SC2086  # lists of words
    vknerf_limited "$slice" train "$first_scene" --seconds "$training" --seed 1 --quiet --out "$run" \
        ${downscale:+--downscale "$downscale"} "$@" $train_options
    kill $sampler 2>/dev/null || :
    wait $sampler 2>/dev/null || :
    write_run "$run" vknerf "$first_scene" "" "$training"
    {
        printf '{"name": %s, "clocks": [' "$(quoted "$label")"
        cat "$run.clocks"
        printf '], "run": '
        cat "$run.json"
        printf '}\n'
    } >"$run.fragment"
    log "$label: exit status $code after $(in_seconds "$took") s"
    write_results
}

run_smoke() {
    share_out 1
    train_plain smoke "$slice" smoke
    if [ $code = 0 ]; then end_part "done"; else end_part failed "exit status $code"; fi
}

run_speed() {
    good=0 index=0
    while [ $index -lt "$repeats" ]; do
        share_out $((repeats - index))
        index=$((index + 1))
        [ "$slice" -ge 2 ] || continue
        train_plain "speed.$index" "$slice" "speed $index"
        [ $code != 0 ] || good=$((good + 1))
    done
    if [ $good = "$repeats" ]; then end_part "done"; else end_part failed "$good of $repeats runs"; fi
}

# Name and options of a training, with a tab between. What a device does not offer ends with 2.
list_variants() {
    sed 's/^ *//; s/ *| */\t/' <<'VARIANTS' | grep -E -- "^$variants"
        16x16x16          | --precision coopmat --set matrix.shape=16x16x16
        16x8x16           | --precision coopmat --set matrix.shape=16x8x16
        f16 sums          | --precision coopmat --set matrix.accumulate=f16
        conversions       | --precision coopmat --set matrix.conversions=true
        half atomics      | --set gradient_sums=half
        8 levels of 4     | --set grid.levels=8 --set grid.features=4
        64 K samples      | --set batch.samples=65536
        128 K samples     | --set batch.samples=131072
        512 K samples     | --set batch.samples=524288
        1 M samples       | --set batch.samples=1048576
VARIANTS
}

run_variants() {
    list_variants >"$work/variants" || :
    left=$(wc -l <"$work/variants") runs=$left good=0 index=0 absent=0
    while IFS=$tab read -r label options <&3; do
        share_out "$left"
        left=$((left - 1)) index=$((index + 1))
        [ "$slice" -ge 2 ] || continue
        # shellcheck disable=SC2086  # lists of words
        train_plain "variant.$index" "$slice" "$label" $options
        case $code in 0) good=$((good + 1)) ;; 2) absent=$((absent + 1)) ;; esac
    done 3<"$work/variants"
    note="$good of $runs runs, $absent not offered"
    if [ $((good + absent)) = "$runs" ]; then end_part "done" "$note"; else end_part partial "$note"; fi
}

# ---- tune and programs ---------------------------------------------------------------------------

# The object that vknerf bench prints goes into $work/FILE.json.
print_bench() { # FILE BENCH-OPTION ...
    share_out 1
    file=$work/$1.json
    shift
    capture=$file
    vknerf_limited "$slice" bench --json --quiet "$@"
    capture=
    if [ $code = 0 ]; then end_part "done"
    elif [ -s "$file" ]; then end_part partial "cut short"
    else end_part failed "exit status $code"
    fi
}

run_tune() {
    # shellcheck disable=SC2086  # a list of words
    print_bench tune --tune $tune_options
}

run_programs() {
    # shellcheck disable=SC2086  # a list of words
    print_bench programs --suite programs $bench_options
}

# ---- train and peer ------------------------------------------------------------------------------

# What a run's folder holds, as one JSON object.
write_run() { # FOLDER TRAINER SCENE PRECISION SECONDS
    {
        printf '{"trainer": "%s", "scene": %s, "precision": "%s", "asked_seconds": %d, "exit": %d, ' \
            "$2" "$(quoted "$3")" "$4" "$5" "$code"
        printf '"wall_seconds": %s, "summary": ' "$(in_seconds "$took")"
        file_or_null "$1/summary.json"
        printf ', "config": '
        file_or_null "$1/config.json"
        printf ', "metrics": ['
        # A line cut off in the middle is not one.
        [ ! -f "$1/metrics.jsonl" ] || grep '^{.*}$' "$1/metrics.jsonl" | paste -s -d , -
        printf ']}\n'
    } >"$1.json"
}

# Part of the time goes into loading, compiling and evaluating.
seconds_of_training() { # SLICE
    training=$(($1 * 6 / 10))
    [ "$training" -le "$train_seconds" ] || training=$train_seconds
    [ "$training" -ge 1 ] || training=1
}

run_train() {
    list=$(echo "$precisions" | tr , ' ')
    # shellcheck disable=SC2086  # a list of words
    set -- $list
    runs=$(($# * $(wc -l <"$work/scenes"))) good=0 left=$runs index=0
    while IFS= read -r scene <&3; do
        for precision in $list; do
            index=$((index + 1))
            run=$work/train.$index
            share_out "$left"
            left=$((left - 1))
            [ "$slice" -ge 2 ] || continue
            seconds_of_training "$slice"
            # shellcheck disable=SC2086  # lists of words
            vknerf_limited "$slice" train "$scene" --precision "$precision" --seconds "$training" --seed 1 $profile \
                --quiet --out "$run" ${downscale:+--downscale "$downscale"} $train_options
            write_run "$run" vknerf "$scene" "$precision" "$training"
            [ $code != 0 ] || good=$((good + 1))
            log "train $scene $precision: exit status $code after $(in_seconds "$took") s"
            write_results
        done
    done 3<"$work/scenes"
    if [ $good = $runs ]; then
        end_part "done"
    elif [ $good -gt 0 ]; then
        end_part partial "$good of $runs runs"
    else
        end_part failed "no run finished"
    fi
}

# Sets $peer_device, or says in $reason why there is no peer.
check_peer() {
    : >"$work/peer.device"
    # shellcheck disable=SC2086  # a command with its arguments
    supervise 60 TERM $python -c '
import sys, torch, numpy, PIL
open(sys.argv[1], "w").write("cuda" if torch.cuda.is_available() else "cpu")' "$work/peer.device"
    peer_device=$(cat "$work/peer.device")
    reason=
    if [ -z "$peer_device" ]; then
        reason="no PyTorch: $python cannot import torch, numpy and PIL"
    elif [ "$peer_device" = cpu ] && [ "$on_cpu" = no ]; then
        reason="no comparison: $python has torch, but it sees no GPU"
    fi
}

# The sizes come from a run of vknerf on that scene, if there was one.
config_of() { # INDEX-OF-SCENE
    count=$(echo "$precisions" | tr , '\n' | wc -l)
    last=$(($1 * count))
    while [ "$last" -gt $((($1 - 1) * count)) ]; do
        if [ -s "$work/train.$last/config.json" ]; then
            echo "$work/train.$last/config.json"
            return
        fi
        last=$((last - 1))
    done
}

train_peer() { # SECONDS-LIMIT OPTION ...
    for_peer=$1
    shift
    # shellcheck disable=SC2086  # lists of words
    supervise "$for_peer" INT env TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_CACHE_DIR="$work/triton" \
        $python "$source_dir/tools/peers/ngp_torch/train.py" --scene "$scene" --seconds "$training" \
        --out "$run" ${config:+--config "$config"} ${downscale:+--downscale "$downscale"} "$@" $peer_options
}

run_peer() {
    check_peer
    [ -z "$reason" ] || { end_part skipped "$reason"; return; }
    runs=$(wc -l <"$work/scenes") good=0 left=$runs index=0
    while IFS= read -r scene <&3; do
        index=$((index + 1))
        run=$work/peer.$index config=$(config_of $index)
        share_out "$left"
        left=$((left - 1))
        [ "$slice" -ge 2 ] || continue
        seconds_of_training "$slice"
        share_end=$((now + slice * 100))
        # Compiling can fail or outlast its time; the rest is for a run without.
        train_peer $((slice * 7 / 10 > training ? slice * 7 / 10 : slice))
        read_clock
        rest=$(((share_end - now) / 100))
        if [ ! -s "$run/summary.json" ] && [ "$rest" -ge 2 ] && [ "$interrupted" = false ]; then
            log "peer $scene: exit status $code; again without compiling"
            seconds_of_training $rest
            train_peer $rest --no-compile
        fi
        write_run "$run" peer "$scene" amp "$training"
        [ $code != 0 ] || good=$((good + 1))
        write_results
    done 3<"$work/scenes"
    if [ $good = "$runs" ]; then
        end_part "done"
    else
        end_part failed "$good of $runs runs; session.log has what they said"
    fi
}

# ---- results -------------------------------------------------------------------------------------

write_results() {
    read_clock
    [ ! -f "$work/tests.all" ] || write_tests
    {
        printf '{"format": 1, "began": "%s", "seconds": %s, "budget_seconds": %d, "interrupted": %s,\n' \
            "$began" "$(in_seconds $((now - session_began)))" "$budget" "$interrupted"
        printf '"machine": {"system": %s, "processors": %d},\n"build": ' "$(quoted "$(uname -srm)")" \
            "$(nproc)"
        file_or_null "$source_dir/build/about.json"
        printf ',\n"info": '
        file_or_null "$work/info.json"
        printf ',\n"parts": {'
        joined "$work"/part.*
        printf '},\n"smoke": '
        file_or_null "$work/smoke.fragment"
        printf ',\n"speed": ['
        joined "$work"/speed.*.fragment
        printf '],\n"variants": ['
        joined "$work"/variant.*.fragment
        printf '],\n"tune": '
        file_or_null "$work/tune.json"
        printf ',\n"programs": '
        file_or_null "$work/programs.json"
        printf ',\n"tests": '
        file_or_null "$work/tests.json"
        printf ',\n"bench": {'
        bench_json
        printf '},\n"train": ['
        joined "$work"/train.*.json
        printf '],\n"peer": ['
        joined "$work"/peer.*.json
        printf ']}\n'
    } >"$work/results.json"
    mv "$work/results.json" "$out/results.json"
}

# Without Python results.md has only how the parts ended.
write_table() {
    for interpreter in python3 "$python"; do
        # shellcheck disable=SC2086  # a command with its arguments
        if $interpreter -c '' 2>/dev/null; then
            $interpreter "$source_dir/tools/gpu_session.py" "$out" >>"$out/session.log" 2>&1 && return
        fi
    done
    {
        printf 'No Python 3 here; on another machine, "gpu_session.sh table %s" makes the tables.\n\n' \
            "${out##*/}"
        sed -n 's/^"\([a-z]*\)": {"status": "\([^"]*\)", "seconds": \([0-9.]*\).*"note": "\(.*\)"}$/- \1: \2 in \3 s. \4/p' \
            "$work"/part.*
    } >"$out/results.md"
}

# ---- run -----------------------------------------------------------------------------------------

parse_options() {
    out='' budget=540 only=$(echo "$every_part" | tr ' ' ,) repeats=3 variants='' precisions=fp32,fp16,coopmat train_seconds=20
    downscale='' profile=--profile suites=quick,step,mlp,gemm,grid test_regex=. test_limit=150 jobs='' loaders=''
    launcher=${VKNERF_TEST_LAUNCHER:-} python=python3 bench_options='' tune_options='' train_options='' peer_options=''
    : >"$work/scenes"
    while [ $# -gt 0 ]; do
        [ $# -gt 1 ] || usage
        case $1 in
            --out) out=$2 ;;
            --budget) budget=$2 ;;
            --only) only=$2 ;;
            --scene) realpath -- "$2" >>"$work/scenes" ;;
            --precisions) precisions=$2 ;;
            --repeats) repeats=$2 ;;
            --variants) variants=$2 ;;
            --seconds) train_seconds=$2 ;;
            --profile) [ "$2" = yes ] || profile= ;;
            --downscale) downscale=$2 ;;
            --suites) suites=$2 ;;
            --tests) test_regex=$2 ;;
            --test-limit) test_limit=$2 ;;
            --jobs) jobs=$2 ;;
            --loaders) loaders=$2 ;;
            --launcher) launcher=$2 ;;
            --python) python=$2 ;;
            --bench-options) bench_options=$2 ;;
            --tune-options) tune_options=$2 ;;
            --train-options) train_options=$2 ;;
            --peer-options) peer_options=$2 ;;
            *) usage ;;
        esac
        shift 2
    done
    [ -n "$out" ] || usage
    check_numbers "$budget" "$train_seconds" "$test_limit" "${jobs:-1}" "$repeats"
    for scene in "$source_dir"/scene/* "$source_dir/assets/demo"; do
        [ -s "$work/scenes" ] || [ ! -e "$scene" ] || printf '%s\n' "$scene" >"$work/scenes"
    done
    first_scene=$(head -n 1 "$work/scenes")
    [ -n "$jobs" ] || { jobs=$(nproc); [ "$jobs" -le 12 ] || jobs=12; }
}

check_numbers() {
    for number; do
        case $number in '' | *[!0-9]* | 0*) die "$number: not a whole number above 0" ;; esac
    done
}

# Libraries that are unpacked here are found by the session's own programs only.
unpack_loaders() {
    [ -n "$loaders" ] || return 0
    command -v dpkg >/dev/null || { log "--loaders: no dpkg here to unpack them with"; return 0; }
    mkdir "$work/loaders"
    for package in "$loaders"/*.deb; do
        dpkg -x "$package" "$work/loaders" >>"$out/session.log" 2>&1 || log "$package: cannot be unpacked"
    done
    for folder in "$work"/loaders/lib/*-linux-gnu "$work"/loaders/usr/lib/*-linux-gnu; do
        [ ! -d "$folder" ] || libraries=$libraries:$folder
    done
}

# Where containers mount NVIDIA's driver, its file is not where the Vulkan loader looks.
find_driver_file() {
    mounted=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
    [ -z "$launcher${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] && [ -f $mounted ] || return 0
    for file in /etc/vulkan/icd.d/nvidia*.json /usr/share/vulkan/icd.d/nvidia*.json; do
        [ ! -f "$file" ] || return 0
    done
    export VK_DRIVER_FILES=$mounted
}

prepare() {
    mkdir -p "$out"
    out=$(CDPATH='' cd -- "$out" && pwd -P)
    : >"$out/session.log"
    began=$(date -u +%Y-%m-%dT%H:%M:%SZ) interrupted=false part='' child='' capture=''
    read_clock
    session_began=$now session_end=$((now + budget * 100))
    libraries=$build_dir/lib
    unpack_loaders
    find_driver_file
    libraries=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export VKNERF_TEST_LAUNCHER="$launcher" PYTHONDONTWRITEBYTECODE=1
    export VKNERF_BIN="$build_dir/tests/vknerf" VKNERF_SOURCE_DIR="$source_dir" VKNERF_BUILD_DIR="$build_dir"
    export XDG_CACHE_HOME="$work/cache"
    [ -n "$launcher" ] || export VKNERF_TEST_NATIVE=1
}

# What the device is; a session goes on without one, to say what fails.
ask_device() {
    ! command -v nvidia-smi >/dev/null || supervise 20 TERM nvidia-smi
    capture=$work/info.json
    vknerf_limited 60 info --json
    capture=
    [ $code = 0 ] || { rm -f "$work/info.json"; log "vknerf info: exit status $code; see above"; }
    on_cpu=yes
    if [ $code = 0 ] && grep -qE '"type":[[:space:]]*"(discrete|integrated|virtual|other)"' "$work/info.json"
    then
        on_cpu=no
    fi
}

# INT or TERM: ends the program that runs, which writes what it has; the parts note that and end.
stop() {
    signal=INT
    # xargs and its tests know only SIGTERM.
    [ "$part" != tests ] && [ "$interrupted" = false ] || signal=TERM
    interrupted=true
    [ -z "$child" ] || kill -$signal "$child" 2>/dev/null || :
}

finish() {
    outcome=$?
    trap '' INT TERM
    if [ -n "${session_began:-}" ]; then
        if [ -n "$part" ]; then
            status=broken
            write_part
        fi
        write_results
        write_table
        log "$out: results.json, results.md"
    fi
    rm -rf "$work" ${VKNERF_UNPACKED:+"$VKNERF_UNPACKED"}
    exit $outcome
}

run() {
    [ -f "$source_dir/build/session.list" ] || die "run what pack makes: DIR/gpu_session.sh run --out OUT"
    work=$(mktemp -d)
    trap finish EXIT
    trap stop INT TERM
    build_dir=$source_dir/build
    parse_options "$@"
    prepare
    ask_device
    write_results
    for next in $every_part; do
        [ "$interrupted" = false ] || break
        wanted "$next" || continue
        begin_part "$next"
        if [ "$rest" -lt 200 ]; then
            end_part 'out of time'
        else
            "run_$next"
        fi
    done
    [ "$interrupted" = false ] || exit 130
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
    pack) pack "$@" ;;
    run) run "$@" ;;
    table)
        trap 'rm -rf ${VKNERF_UNPACKED:+"$VKNERF_UNPACKED"}' EXIT
        python3 "$source_dir/tools/gpu_session.py" "${1:?}"
        ;;
    one-test) one_test "$1" ;;
    --help | -h) usage 0 2>&1 ;;
    *) usage ;;
esac
