#!/bin/sh
# tools/test.sh [--all | --changed [REV]] [CTEST-OPTION ...]
# Sets up, builds, lints and runs every test: what concerns devices as released, what is host code with
# AddressSanitizer and UndefinedBehaviorSanitizer. The last line is "N passed, N failed"; the exit status is 0
# when none failed. What was skipped is printed with its reason, and what is not listed below counts as failed.
# With --all, with options for ctest, on a machine's own device, or without the sanitized half, host code is
# tested as released as well.
# --all also runs every matrix shape in every form, subgroups of 16, shaders as compiled for users, all of it
# under sanitizers, tests of several threads under ThreadSanitizer, clang's static analyzer, libFuzzer for a minute
# a target, and, where this is root, with debootstrap, and may mount, the Debian packages in a bare system and the
# suite and the Dockerfile's commands in those of tools/newcomer.sh --suite: before a release, and for changes of
# kernels.
# --changed runs the tests that can notice what has changed since the commit REV (default HEAD), and says why each is
# chosen; the nearest begin first. No lint, no sanitizers. It has a build of its own, build/changed, in which tests note
# which functions they call and which shader programs they create (tools/changed.py): the first time every test runs
# but test_library and test_package, which are about the build as released.
# VKNERF_TEST_NATIVE=1 runs the tests on the machine's own Vulkan device instead of lavapipe;
# VKNERF_TEST_SANITIZE=0 leaves out the second run, VKNERF_TEST_LINT=0 the lint.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

answer_help "$@"
all=OFF
quick=--quick
since=
case ${1:-} in
    --all)
        all=ON
        quick=
        shift
        ;;
    --changed)
        since=HEAD
        shift
        case ${1:--} in -*) ;; *) since=$1; shift ;; esac
        ;;
esac

# What may be skipped without being a failure, as regular expressions: what neither this project nor its
# set-up brings. Real devices may also lack what lavapipe has.
may_skip='^skipped: peer_torch\.py: no python3-torch;
^skipped: test_(commit|changed): no git$
^skipped: test_vendors: the distribution has no mesa-drm-shim$
^skipped: test_viewer_page: no chromium package$
^skipped: test_[a-z_]*: its capture is not beside the project$'
[ "${VKNERF_TEST_NATIVE:-0}" != 1 ] || may_skip='^'

passed=0
failed=0
finish() {
    status=$?
    # A script that stops early has failed, whatever was counted.
    [ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] || exit 1
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

attribute() { # NAME FILE: a number of the first <testsuite> element
    sed -n "/<testsuite/,/>/s/.*[[:space:]]$1=\"\\([0-9]*\\)\".*/\\1/p" "$2" | head -n 1
}

# Prints what was skipped, as tests say it in lines "skipped: NAME: REASON"; what may not be skipped counts as
# failed.
check_skips() { # REPORT
    lines=$(awk '
        /<testcase / { split($0, parts, "\""); name = parts[2]; left_out = /status="(notrun|disabled)"/ }
        /skipped: [^ ]+: / { sub(/^.*skipped: /, "skipped: "); print; left_out = 0 }
        /<\/testcase>/ { if (left_out) print "skipped: " name ": no reason given" }' "$1")
    [ -n "$lines" ] || return 0
    printf '%s\n' "$lines"
    unlisted=$(printf '%s\n' "$lines" | grep -vcE "$may_skip" || :)
    [ "$unlisted" = 0 ] || echo "$unlisted of these may not be skipped (tools/test.sh)"
    failed=$((failed + unlisted))
}

run_tests() { # BUILD-FOLDER [CTEST-OPTION ...]
    folder=$1
    shift
    report=$folder/Testing/report.xml
    mkdir -p "$folder/Testing"
    rm -f "$report"
    # Outcomes are counted from the report, so a failure must not end the script here. One more than there are
    # processors: some wait for a browser, for messages or for COLMAP's one thread.
    ctest --test-dir "$folder" -j "$(($(nproc) + 1))" --output-on-failure --no-tests=error \
        --output-junit "$report" "$@" || :
    [ -f "$report" ] || die "$folder: ctest wrote no report"
    tests=$(attribute tests "$report")
    bad=$(attribute failures "$report")
    [ "$tests" -gt 0 ] || die "$folder: no tests"
    passed=$((passed + tests - bad - $(attribute skipped "$report") - $(attribute disabled "$report")))
    failed=$((failed + bad))
    check_skips "$report"
}

run_changed() { # REV [CTEST-OPTION ...]
    own=$build_dir/changed
    if [ ! -f "$own/build.ninja" ]; then
        "$source_dir/tools/setup.sh" --no-build || return 1
        cmake -S "$source_dir" -B "$own" -G Ninja -DVKNERF_TESTS=ON -DVKNERF_TRACE=ON \
            -DVKNERF_TOOL_ROOT="$tool_root" >&2 || return 1
    fi
    ninja -C "$own" build.ninja >/dev/null || return 1
    "$source_dir/tools/changed.py" "$source_dir" "$own" choose "$1" || return 1
    shift
    [ -s "$own/selection/CTestTestfile.cmake" ] || return 0
    # shellcheck disable=SC2046  # names of targets
    ninja -C "$own" $(cat "$own/selection/targets") || return 1
    # A test that breaks off has noted what it called until then.
    run_tests "$own/selection" "$@"
    "$source_dir/tools/changed.py" "$source_dir" "$own" note
}

if [ -n "$since" ]; then
    command -v python3 >/dev/null || die "--changed needs python3"
    run_changed "$since" "$@" || failed=$((failed + 1))
    exit
fi

# Without options the sanitized half has the tests of host code to itself.
halves=no
[ "$all $# ${VKNERF_TEST_SANITIZE:-1} ${VKNERF_TEST_NATIVE:-0}" != 'OFF 0 1 0' ] || halves=yes
programs=--tests
[ $halves = no ] || programs=--device-tests
"$source_dir/tools/setup.sh" $programs -DVKNERF_TESTS=ON -DVKNERF_ALL_TESTS=$all

if [ "${VKNERF_TEST_LINT:-1}" = 1 ]; then
    echo "Lint:"
    # shellcheck disable=SC2086  # an option or none
    if "$source_dir/tools/lint.sh" $quick; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    echo
fi

if [ $halves = yes ]; then
    run_tests "$build_dir" --label-exclude '^host$'
else
    run_tests "$build_dir" "$@"
fi

if [ "${VKNERF_TEST_SANITIZE:-1}" = 1 ]; then
    echo
    echo "With AddressSanitizer and UndefinedBehaviorSanitizer:"
    VKNERF_TOOL_ROOT=$tool_root VKNERF_BUILD_DIR=$build_dir/asan "$source_dir/tools/setup.sh" --tests \
        -DVKNERF_TESTS=ON -DVKNERF_ALL_TESTS=$all -DVKNERF_SANITIZE="address;undefined" \
        -DVKNERF_SHADERS="$build_dir/shaders"
    run_tests "$build_dir/asan" "$@"
fi

if [ $all = ON ]; then
    echo
    echo "With ThreadSanitizer:"
    VKNERF_TOOL_ROOT=$tool_root VKNERF_BUILD_DIR=$build_dir/tsan "$source_dir/tools/setup.sh" --tests \
        -DVKNERF_TESTS=ON -DVKNERF_SANITIZE=thread -DVKNERF_SHADERS="$build_dir/shaders"
    run_tests "$build_dir/tsan"

    echo
    echo "Fuzzing:"
    if VKNERF_SHADERS="$build_dir/shaders" "$source_dir/tools/fuzz.sh" -j "$(nproc)" 60; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi

    # Root makes the bare systems, with debootstrap, and mounts into them.
    may_make_systems=no
    [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null || ! unshare --mount true 2>/dev/null || may_make_systems=yes
    in_bare_systems() { # TITLE COMMAND [ARGUMENT ...]
        printf '\n%s:\n' "$1"
        shift
        if [ $may_make_systems = no ]; then
            echo "skipped: ${1##*/}: a bare system needs root, debootstrap and the right to mount"
        elif "$@"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
        fi
    }
    in_bare_systems "Packages" "$source_dir/tools/package.sh" --check
    in_bare_systems "The suite and the image in bare systems" "$source_dir/tools/newcomer.sh" --suite
fi
