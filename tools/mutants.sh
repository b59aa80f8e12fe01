#!/bin/sh
# tools/mutants.sh [OPTION ...]
# Makes the mistakes of tests/mutants/*.json one at a time in a copy of the checkout, runs the tests that
# should notice each, and says which were noticed (killed) and which were not (survived). The checkout is
# only read. For before a release and by hand: with every mutation it takes an hour or more.
#
#   --random N       instead of a list N mutations by chance in src/ and shaders/: a constant a little larger
#                    or smaller, a comparison turned, a sign, an index off by one, a term left out, arguments
#                    exchanged, a clamp removed, a condition negated, a statement removed
#   --seed 1         which ones; more begin with those of fewer
#   --since REV      only in lines that are new since the commit
#   --seconds 120    of tests for each; the nearest run first, by what tools/test.sh --changed has recorded
#   --sanitize       in a build with AddressSanitizer and UndefinedBehaviorSanitizer, by the tests that it has
#   --only REGEX     only mutations whose id matches
#   --list FILE      instead of tests/mutants/*.json; more than once for several
#   --out FILE.tsv   id, verdict, test, first failed assertion, seconds and what it is of each. What FILE
#                    already holds is not done again. Without it all are done, into build/mutants/results.tsv
#   --force          does again, and replaces, what --out holds
#   --floor 95       percent of the valid mutations that have to be killed
#   --limit 60       seconds a test may always take; else four times what it takes without a mutation
#   --jobs 1         copies to work in at the same time
#   --dry-run        only checks that every edit of the list applies and that the tests exist; with
#                    --random prints the mutations and their nearest tests
#
# A list is an array of mutations:
#   {"id": "H03", "what": "what it is, and what a user would suffer",
#    "edits": [["src/scene/llff.c", "the old text", "the new text"]],
#    "tests": ["test_llff"]}
# An edit's old text is there exactly once. Tests are named after their files in tests/ (with
# _gpu_shaped those that have the shapes of GPUs) and run in this order until one fails. A mutation that cannot be noticed has "equivalent": "the reason" and needs no tests;
# it is only looked up.
#
# Verdicts: killed (also by a test that runs out of time, or crashes), survived, equivalent, stale (an edit
# does not apply: the code has changed), invalid (it does not compile) and, of those by chance, warned (the compiler
# warns of it) and equivalent where the compiler makes the same code. Valid are those killed or survived.
# The copy, build/mutants/tree, is built once; what was measured there of the tests is used again as long as
# nothing changes. Ctrl-C keeps what --out has. Needs what tools/setup.sh installs, and Python 3.
# The exit status is 0 when the floor is reached, 1 when not, 2 when something else is wrong, a test that
# fails without a mutation for instance, and 130 after Ctrl-C.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

command -v python3 >/dev/null || { say "${0##*/}: needs python3"; exit 2; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$source_dir/tools/mutants/main.py" "$source_dir" "$build_dir" "$tool_root" "$@"
