#!/bin/sh
# tools/test.sh [CTEST-OPTION ...]
# Sets up, builds and runs every test: first as released, then with AddressSanitizer and
# UndefinedBehaviorSanitizer. The last line is "N passed, N failed"; the exit status is 0 when none failed.
# VKNERF_TEST_NATIVE=1 runs the tests on the machine's own Vulkan device instead of lavapipe;
# VKNERF_TEST_SANITIZE=0 leaves out the second run.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

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

run_tests() { # BUILD-FOLDER [CTEST-OPTION ...]
    folder=$1
    shift
    report=$folder/Testing/report.xml
    mkdir -p "$folder/Testing"
    rm -f "$report"
    # Outcomes are counted from the report, so a failure must not end the script here.
    ctest --test-dir "$folder" -j "$(nproc)" --output-on-failure --no-tests=error \
        --output-junit "$report" "$@" || :
    [ -f "$report" ] || die "$folder: ctest wrote no report"
    tests=$(attribute tests "$report")
    bad=$(attribute failures "$report")
    skipped=$(($(attribute skipped "$report") + $(attribute disabled "$report")))
    [ "$tests" -gt 0 ] || die "$folder: no tests"
    [ "$skipped" = 0 ] || echo "$skipped skipped"
    passed=$((passed + tests - bad - skipped))
    failed=$((failed + bad))
}

"$source_dir/tools/setup.sh" -DVKNERF_TESTS=ON
run_tests "$build_dir" "$@"

if [ "${VKNERF_TEST_SANITIZE:-1}" = 1 ]; then
    echo
    echo "With AddressSanitizer and UndefinedBehaviorSanitizer:"
    VKNERF_TOOL_ROOT=$tool_root VKNERF_BUILD_DIR=$build_dir/asan "$source_dir/tools/setup.sh" \
        -DVKNERF_TESTS=ON -DVKNERF_SANITIZE="address;undefined"
    # The scene's program is not built with sanitizers; wider subgroups, longer training and the field's passes
    # in every precision run no host code that other tests do not, and take a fifth of the time.
    run_tests "$build_dir/asan" \
        -E '^bundled_scene_regenerates$|_subgroup_16$|^test_mesh_trained$|^test_pass_field$' "$@"
fi
