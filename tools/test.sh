#!/bin/sh
# tools/test.sh [--all | --changed [REV]] [CTEST-OPTION ...]
# Builds, lints and runs all tests. Installs missing packages first. Tests of device code run in the release build,
# tests of host code in a second build with AddressSanitizer and UndefinedBehaviorSanitizer. The last line is
# "N passed, N failed"; the exit status is 0 if none failed. Skipped tests are printed with their reasons; those whose
# reason is not listed below count as failed. With --all, CTEST-OPTIONs, VKNERF_TEST_NATIVE=1 or
# VKNERF_TEST_SANITIZE=0 tests of host code run in the release build, too.
# --all is for use before a release and after changes of kernels. It adds every matrix shape in every variant,
# subgroups of 16, shaders as compiled for users, sanitizers for all tests, ThreadSanitizer for tests of several
# threads, clang's static analyzer, libFuzzer for a minute per target, on Debian the tests for Windows
# (tools/windows.sh) and, if bare systems can be made (needs root, debootstrap and the right to mount),
# tools/package.sh --check and tools/newcomer.sh --suite.
# --changed runs the tests that execute code changed since the commit REV (default HEAD), the most specific first, and
# prints why each is chosen. No lint, no sanitizers. Uses a build of its own, build/changed, in which tests record the
# functions that they call and the pipelines that they create (tools/changed.py). The first time all tests run except
# test_library and test_package, which check the release build.
# VKNERF_TEST_NATIVE=1 runs the tests on the machine's own Vulkan device instead of lavapipe,
# VKNERF_TEST_SANITIZE=0 omits the second build, VKNERF_TEST_LINT=0 the linters.
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

# Reasons for which tests may be skipped, as regular expressions: things that tools/setup.sh does not install. On a
# machine's own device any reason is allowed, because the device may lack features of lavapipe.
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
    # An early exit counts as a failure, whatever was counted so far.
    [ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] || exit 1
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

attribute() { # NAME FILE: prints an attribute (a number) of the first <testsuite> element
    sed -n "/<testsuite/,/>/s/.*[[:space:]]$1=\"\\([0-9]*\\)\".*/\\1/p" "$2" | head -n 1
}

# Prints the tests' lines "skipped: NAME: REASON" and counts those with a reason that is not allowed as failed.
check_skips() { # REPORT
    lines=$(awk '
        /<testcase / { split($0, parts, "\""); name = parts[2]; left_out = /status="(notrun|disabled)"/ }
        /skipped: [^ ]+: / { sub(/^.*skipped: /, "skipped: "); print; left_out = 0 }
        /<\/testcase>/ { if (left_out) print "skipped: " name ": no reason given" }' "$1")
    [ -n "$lines" ] || return 0
    printf '%s\n' "$lines"
    unlisted=$(printf '%s\n' "$lines" | grep -vcE "$may_skip" || :)
    [ "$unlisted" = 0 ] || echo "$unlisted of these must not be skipped (list of reasons: tools/test.sh)"
    failed=$((failed + unlisted))
}

run_tests() { # BUILD-FOLDER [CTEST-OPTION ...]
    folder=$1
    shift
    report=$folder/Testing/report.xml
    mkdir -p "$folder/Testing"
    rm -f "$report"
    # Results are counted from the report, so ctest's failure must not end the script. One job more than
    # processors, because some tests wait for a browser, messages or single-threaded COLMAP.
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
    trace_dir=$build_dir/changed
    if [ ! -f "$trace_dir/build.ninja" ]; then
        "$source_dir/tools/setup.sh" --no-build || return 1
        cmake -S "$source_dir" -B "$trace_dir" -G Ninja -DVKNERF_TESTS=ON -DVKNERF_TRACE=ON \
            -DVKNERF_TOOL_ROOT="$tool_root" >&2 || return 1
    fi
    ninja -C "$trace_dir" build.ninja >/dev/null || return 1
    "$source_dir/tools/changed.py" "$source_dir" "$trace_dir" choose "$1" || return 1
    shift
    [ -s "$trace_dir/selection/CTestTestfile.cmake" ] || return 0
    # shellcheck disable=SC2046  # names of targets
    ninja -C "$trace_dir" $(cat "$trace_dir/selection/targets") || return 1
    # Failed tests count as well: they have recorded their calls until they ended.
    run_tests "$trace_dir/selection" "$@"
    "$source_dir/tools/changed.py" "$source_dir" "$trace_dir" note
}

if [ -n "$since" ]; then
    command -v python3 >/dev/null || die "--changed needs python3"
    run_changed "$since" "$@" || failed=$((failed + 1))
    exit
fi

# By default tests of host code run in the sanitizer build only.
split=no
[ "$all $# ${VKNERF_TEST_SANITIZE:-1} ${VKNERF_TEST_NATIVE:-0}" != 'OFF 0 1 0' ] || split=yes
programs=--tests
[ $split = no ] || programs=--device-tests
"$source_dir/tools/setup.sh" $programs -DVKNERF_TESTS=ON -DVKNERF_ALL_TESTS=$all

if [ "${VKNERF_TEST_LINT:-1}" = 1 ]; then
    echo "Lint:"
    # shellcheck disable=SC2086  # an option or none
    if "$source_dir/tools/lint.sh" $quick; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    echo
fi

if [ $split = yes ]; then
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

    echo
    echo "On Windows, by Wine:"
    if ! is_debian; then
        echo "skipped: windows.sh: needs Debian"
    elif "$source_dir/tools/windows.sh"; then
        listed=$(sed -n 's/^ *{"[a-z_0-9]*", "\([a-z_0-9]*\)",.*/\1/p' "$source_dir/tests/windows_skips.h" | paste -sd '|')
        may_skip="^skipped: ($listed): "
        run_tests "$source_dir/build/windows/build"
    else
        failed=$((failed + 1))
    fi

    # Bare systems need root, debootstrap and the right to mount.
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
    in_bare_systems "All tests and the image in bare systems" "$source_dir/tools/newcomer.sh" --suite
fi
