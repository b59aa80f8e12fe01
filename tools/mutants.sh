#!/bin/sh
# tools/mutants.sh [OPTION ...]
# Runs mutation tests: applies the mutations of tests/mutants/*.json one at a time to a copy of the checkout,
# runs the tests that should fail, and reports which mutations were detected (killed) and which not (survived).
# The checkout is only read. For use before a release: all mutations take an hour or more.
#
#   --random N       N random mutations of src/ and shaders/ instead of a list: a constant slightly changed, a
#                    comparison reversed, a sign flipped, an index off by one, a term removed, arguments
#                    swapped, a clamp removed, a condition negated, a statement removed
#   --seed 1         seed of --random; a larger N begins with the mutations of a smaller one
#   --since REV      --random only in lines that are new since the commit
#   --seconds 120    test time for each random mutation; tests that execute its line (recorded by
#                    tools/test.sh --changed) run first
#   --sanitize       builds with AddressSanitizer and UndefinedBehaviorSanitizer and runs the tests of that build
#   --only REGEX     only mutations whose id matches
#   --list FILE      list of mutations instead of tests/mutants/*.json; may be repeated
#   --out FILE.tsv   results: id, verdict, test, first failed assertion, seconds, description. Mutations that FILE
#                    already contains are skipped. Default: build/mutants/results.tsv, and all mutations run
#   --force          runs mutations that --out already contains again and replaces their results
#   --floor 95       percent of the valid mutations that have to be killed
#   --limit 60       least time limit of a test in seconds; otherwise four times its time without a mutation
#   --jobs 1         mutations tested at the same time, each in its own copy
#   --dry-run        only checks that every edit of the list applies and that the tests exist; with
#                    --random prints the mutations and the tests that would run first
#
# A list is an array of mutations:
#   {"id": "H03", "what": "the mistake and its effect on users",
#    "edits": [["src/scene/llff.c", "the old text", "the new text"]],
#    "tests": ["test_llff"]}
# The old text of an edit occurs exactly once in its file. Tests are named after their files in tests/ (with the
# suffix _gpu_shaped for GPU kernels) and run in this order until one fails. A mutation without any effect has
# "equivalent": "the reason" and no tests; only its edits are checked.
# Verdicts: killed (a test fails, crashes or exceeds its time limit), survived, equivalent, stale (an edit does not
# apply because the code has changed), invalid (does not compile). Random mutations can also be warned (the compiler
# warns) and are equivalent if the compiler generates the same code. Valid are those killed or survived.
# The copy, build/mutants/tree, is built once; times of the tests measured there are reused until the sources
# change. Ctrl-C keeps the results so far. Needs Python 3 and the packages that tools/setup.sh installs.
# Exit status: 0 if the floor is reached, 1 if not, 2 for errors (such as a test that fails without a mutation),
# 130 after Ctrl-C.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

command -v python3 >/dev/null || { say "${0##*/}: needs python3"; exit 2; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$source_dir/tools/mutants/main.py" "$source_dir" "$build_dir" "$tool_root" "$@"
