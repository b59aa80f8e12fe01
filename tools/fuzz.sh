#!/bin/sh
# tools/fuzz.sh [SECONDS | --runs N] [-j JOBS] [TARGET ...]
# Builds and runs the fuzz targets of tests/fuzz with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer.
# Builds in build-fuzz/ (VKNERF_FUZZ_DIR names another folder). Runs each TARGET (such as "scene"; default: all) for
# SECONDS (60) or N inputs, JOBS targets at the same time (1). Prints a line for each target: inputs of this run and
# of all runs in that folder, and the files of crashing inputs. Exits 1 if an input crashed.
#
# Inputs that reach new code are kept in build-fuzz/corpus/TARGET; the next run starts from them and from
# tests/fuzz/corpus. Crashing inputs are kept in build-fuzz/crashes/TARGET and are tried first.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

fuzz_dir=${VKNERF_FUZZ_DIR:-$source_dir/build-fuzz}
case $fuzz_dir in /*) ;; *) fuzz_dir=$PWD/$fuzz_dir ;; esac

number() { # WHAT NUMBER
    case $2 in '' | *[!0-9]*) die "$1: $2 is not a whole number" ;; esac
}

statistic() { # NAME LOG
    sed -n "s/^stat::$1: *//p" "$2" | tail -n 1
}

run_target() { # NAME LIMIT
    name=$1
    log=$fuzz_dir/$name.log
    crashes=$fuzz_dir/crashes/$name
    mkdir -p "$fuzz_dir/corpus/$name" "$crashes"
    crashed=0
    TMPDIR=$scratch UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        ASAN_OPTIONS=allocator_may_return_null=1:intercept_tls_get_addr=0:quarantine_size_mb=32 \
        "$fuzz_dir/tests/fuzz_$name" "$2" -max_len=8192 -timeout=20 -rss_limit_mb=3000 \
        -print_final_stats=1 -artifact_prefix="$crashes/" \
        "$fuzz_dir/corpus/$name" "$crashes" "$source_dir/tests/fuzz/corpus/$name" \
        >"$log" 2>&1 || crashed=1
    inputs=$(statistic number_of_executed_units "$log")
    [ -n "$inputs" ] || { tail -n 20 "$log" >&2; die "fuzz_$name: libFuzzer wrote no statistics into $log"; }
    total=$(($(cat "$fuzz_dir/$name.total" 2>/dev/null || echo 0) + inputs))
    echo "$total" >"$fuzz_dir/$name.total"
    printf 'fuzz_%s: %s inputs, %s a second, %s in all; %s crashes\n' "$name" "$inputs" \
        "$(statistic average_exec_per_sec "$log")" "$total" "$crashed"
    [ $crashed = 0 ] || sed -n '/^fuzz_/p; /ERROR: \|SUMMARY: \|runtime error: /p; s/^.*Test unit written to //p' "$log"
    return $crashed
}

if [ "${1:-}" = --target ]; then
    # Temporary files of the targets, which crashes leave behind; in memory they are several times as fast.
    if [ -w /dev/shm ]; then scratch=$(mktemp -d /dev/shm/fuzz.XXXXXX); else scratch=$(mktemp -d); fi
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT TERM
    run_target "$2" "$3"
    exit
fi

limit=-max_total_time=60
jobs=1
while [ $# -gt 0 ]; do
    case $1 in
        --runs) number "$1" "${2:-}"; limit=-runs=$2; shift ;;
        -j) number "$1" "${2:-}"; jobs=$2; shift ;;
        [0-9]*) number SECONDS "$1"; limit=-max_total_time=$1 ;;
        *) break ;;
    esac
    shift
done

[ $# -gt 0 ] || for source in "$source_dir"/tests/fuzz/fuzz_*.c; do
    name=${source##*/fuzz_}
    set -- "$@" "${name%.c}"
done
for name in "$@"; do
    [ -f "$source_dir/tests/fuzz/fuzz_$name.c" ] || die "$name: no such target in tests/fuzz"
done

VKNERF_TOOL_ROOT=$tool_root VKNERF_BUILD_DIR=$fuzz_dir "$source_dir/tools/setup.sh" --fuzz \
    ${VKNERF_SHADERS:+"-DVKNERF_SHADERS=$VKNERF_SHADERS"}
printf '%s\n' "$@" | xargs -P "$jobs" -I '{}' "$0" --target '{}' "$limit" || exit 1
