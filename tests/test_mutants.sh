#!/bin/sh
# Tests tools/mutants.sh: every mutation in tests/mutants applies to the code and names existing tests. The tool
# itself is tested on a project of two shell scripts, which builds at once.
set -u
source=${VKNERF_SOURCE_DIR:?}
command -v python3 >/dev/null || { echo "skipped: test_mutants: no python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset VKNERF_BUILD_DIR
export SLEEPER="$work/sleeper"
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

contains() { # FILE PATTERN
    grep -qE -- "$2" "$1" || fail "$1: '$2' is not in it: $(head -c 3000 "$1")"
}

run() { # CODE ARGUMENT ...: writes $work/said
    want=$1
    shift
    "$work/toy/tools/mutants.sh" "$@" >"$work/said" 2>&1
    code=$?
    [ $code = "$want" ] || fail "mutants.sh $*: exit status $code instead of $want: $(cat "$work/said")"
}

# ---- the project's own list ----------------------------------------------------------------------

"$source/tools/mutants.sh" --dry-run >"$work/said" 2>&1 || fail "the list: $(cat "$work/said")"
contains "$work/said" '^[1-9][0-9]+ mutations, 0 stale$'
"$source/tools/mutants.sh" --help >"$work/said" 2>&1 || fail "--help: $(cat "$work/said")"
contains "$work/said" '^  --floor 95 '

# ---- a small project -----------------------------------------------------------------------------

# "Compiling" sum.sh into the tests' programs checks its syntax and copies it.
mkdir -p "$work/toy/tools" "$work/toy/src" "$work/toy/tests/mutants"
cp -r "$source/tools/mutants.sh" "$source/tools/mutants" "$source/tools/changed.py" "$source/tools/common.sh" "$work/toy/tools/"
cd "$work/toy" || exit 1
cat >CMakeLists.txt <<'TOY'
cmake_minimum_required(VERSION 3.22)
project(toy LANGUAGES NONE)
enable_testing()
foreach(name vknerf test_sum)
    set(sources ${PROJECT_SOURCE_DIR}/src/sum.sh)
    if(NOT name STREQUAL vknerf)
        list(APPEND sources ${PROJECT_SOURCE_DIR}/tests/${name}.c)
    endif()
    add_custom_command(OUTPUT ${name}.built DEPENDS ${sources}
        COMMAND sh -n ${PROJECT_SOURCE_DIR}/src/sum.sh 2>/dev/null || (echo "error: syntax" && false)
        COMMAND cat ${sources} >${name}.built)
    add_custom_target(${name} DEPENDS ${name}.built)
endforeach()
add_test(NAME test_sum COMMAND sh ${PROJECT_BINARY_DIR}/test_sum.built)
add_test(NAME test_run COMMAND sh ${PROJECT_SOURCE_DIR}/tests/test_run.sh ${PROJECT_BINARY_DIR}/vknerf.built)
TOY
cat >src/sum.sh <<'TOY'
add() { echo $(($1 + $2)); }
twice() { add "$1" "$1"; }
negative() { add 0 "-$1"; }
nap() { :; }
TOY
# Messages of cmocka's assert_int_equal() and fail_msg(). The folder `once` shows whether $TMPDIR is emptied between
# two runs.
cat >tests/test_sum.c <<'TOY'
mkdir "$TMPDIR/once" || exit 3
nap
if [ "$(add 2 3)" != 5 ]; then
    echo '[  ERROR   ] --- 0x6 != 0x5'
    echo '[   LINE   ] --- /somewhere/test_sum.c:12: error: Failure!'
    echo '[  FAILED  ] test_add'
    exit 1
elif [ "$(add 4 0)" != 4 ]; then
    echo 'ERROR: not 4'
    echo '[  ERROR   ] --- [   LINE   ] --- /somewhere/test_sum.c:34: error: Failure!'
    echo '[  FAILED  ] test_none'
    exit 1
fi
TOY
cat >tests/test_run.sh <<'TOY'
. "$1"
[ "$(twice 2)" = 4 ] || { echo "FAILED: twice 2"; exit 1; }
TOY
cat >tests/mutants/toy.json <<'TOY'
[{"id": "A1", "what": "multiplies", "edits": [["src/sum.sh", "$1\n +  $2", "$1 * $2"]], "tests": ["test_sum"]},
 {"id": "A2", "what": "thrice", "edits": [["src/sum.sh", "add \"$1\" \"$1\"", "add \"$1\" \"$1$1\""]],
  "tests": ["test_sum", "test_run"]},
 {"id": "A3", "what": "not negative", "edits": [["src/sum.sh", "\"-$1\"", "\"$1\""]],
  "tests": ["test_sum", "test_run"]},
 {"id": "A4", "what": "one too many of four", "edits": [["src/sum.sh", "$1 + $2", "$1 + $2 + $1 / 4"]],
  "tests": ["test_sum", "test_run"]},
 {"id": "B1", "what": "no such text", "edits": [["src/sum.sh", "subtract", "add"]], "tests": ["test_sum"]},
 {"id": "B2", "what": "more than once", "edits": [["src/sum.sh", "$1", "$2"]], "tests": ["test_sum"]},
 {"id": "B3", "what": "the second edit is stale",
  "edits": [["src/sum.sh", "add 0", "add 1"], ["src/none.sh", "a", "b"]], "tests": ["test_sum"]},
 {"id": "C1", "what": "is no program", "edits": [["src/sum.sh", "nap() {", "nap() {{ ("]], "tests": ["test_sum"]},
 {"id": "D1", "what": "another name", "edits": [["src/sum.sh", "{ :; }", "{ true; }"]],
  "equivalent": "both do nothing"},
 {"id": "E1", "what": "sleeps", "edits": [["src/sum.sh", ":;", "echo $$ >$SLEEPER; exec sleep 99;"]],
  "tests": ["test_sum"]}]
TOY
cp src/sum.sh "$work/sum.sh"

# A process that has ended has an empty command line, even before it is waited for.
is_sleeping() {
    grep -q . "/proc/$(cat "$work/sleeper")/cmdline" 2>/dev/null
}

# The checkout and its copies are unmodified.
unchanged() {
    cmp src/sum.sh "$work/sum.sh" || fail "the checkout has changed"
    for tree in build/mutants/tree*; do
        cmp "$tree/src/sum.sh" "$work/sum.sh" || fail "$tree is still mutated"
    done
}

run 1 --dry-run
contains "$work/said" "^B1: stale: src/sum.sh: 0 times instead of once: 'subtract'"
contains "$work/said" '^B2: stale: src/sum.sh: [2-9] times instead of once'
contains "$work/said" '^B3: stale: src/none.sh'
contains "$work/said" '^10 mutations, 3 stale$'
[ ! -d build ] || fail "--dry-run builds"

# In two copies. Only the sleeping mutant gets a short limit, as the machine may be busy.
run 1 --out results.tsv --only '^[A-D]' --jobs 2
contains "$work/said" '; 8 left, about '
contains "$work/said" '; none left\)$'
contains "$work/said" '^survived: A3$'
[ -d build/mutants/tree-2 ] || fail "--jobs 2: one copy"
run 0 --out results.tsv --only '^E' --limit 0.5
is_sleeping && fail "the test still runs after its time"
cat >"$work/wanted" <<'WANTED'
A1 killed test_sum test_add: 0x6 != 0x5 (test_sum.c:12)
A2 killed test_run twice 2
A3 survived  
A4 killed test_sum test_none: not 4 (test_sum.c:34)
B1 stale  src/sum.sh: 0 times instead of once: 'subtract'
C1 invalid  error: syntax
D1 equivalent  both do nothing
E1 killed test_sum takes more than its time
id verdict test first failed assertion
WANTED
sort results.tsv | grep -v '^B[23]' | cut -f 1-4 | tr '\t' ' ' |
    sed 's/ [0-9.]* s$/ its time/' | diff "$work/wanted" - >"$work/difference" ||
    fail "results.tsv: $(cat "$work/difference")"
unchanged

# Existing results are kept: nothing is built, and --floor decides.
run 0 --out results.tsv --floor 80
contains "$work/said" '^4 killed, 1 survived, 1 equivalent, 3 stale, 0 warned, 1 invalid: 80\.0 % of the valid ones killed$'
[ "$(wc -l <"$work/said")" = 4 ] || fail "resumed: not just the summary: $(cat "$work/said")"
# --only --force repeats one mutation, with the tests' recorded times, and replaces its result.
sed -i 's/^A1\tkilled/A1\tsurvived/; s/^A2\tkilled/A2\tsurvived/' results.tsv
run 0 --out results.tsv --only '^A1$' --force
contains "$work/said" '^A1 killed by test_sum: .*none left'
contains "$work/said" '^1 killed, 0 survived, '
grep -q 'without a mutation' "$work/said" && fail "again: the tests ran once more: $(cat "$work/said")"
[ "$(sort results.tsv | grep -v '^B[23]' | cut -f 1,2 | head -n 2 | tr '\t\n' '  ')" = 'A1 killed A2 survived ' ] ||
    fail "again: $(cat results.tsv)"

# ---- random mutations ----------------------------------------------------------------------------

# A C file, and a record of tools/test.sh --changed: the test calls three functions and not the fourth.
mkdir -p src/base build/changed/record
cat >src/base/count.c <<'TOY'
#define STEP 1 /* 2 + 2 */
int next(int n);
int least(int n);
int idle(int n);
int next(int n)
{
    return n + STEP;
}

int least(int n)
{
    return n < 2 ? n : 2;
}

int idle(int n)
{
    return n + 3;
}

int main(void)
{
    return next(4) != 5 || least(1) != 1;
}
TOY
cat >>CMakeLists.txt <<'TOY'
set(object CMakeFiles/vknerf-core.dir/count.o)
add_custom_command(OUTPUT ${object} DEPENDS ${PROJECT_SOURCE_DIR}/src/base/count.c
    COMMAND ${CMAKE_COMMAND} -E make_directory CMakeFiles/vknerf-core.dir
    COMMAND cc -O2 -Wall -Wextra -Werror -c -o ${object} ${PROJECT_SOURCE_DIR}/src/base/count.c)
add_custom_command(OUTPUT count DEPENDS ${object} COMMAND cc -o count ${object})
add_custom_target(vknerf-core DEPENDS ${object})
add_custom_target(counting DEPENDS count)
add_dependencies(vknerf counting)
add_test(NAME test_count COMMAND sh -c "./count || { echo 'FAILED: counts'; false; }")
TOY
echo 'add_test([=[test_count]=] "sh")' >build/changed/CTestTestfile.cmake
run 2 --random 9
contains "$work/said" 'first run tools/test.sh --changed'
echo '{"seconds": 0.1, "programs": {}, "functions": {"src/base/count.c": ["next", "least", "main"]}}' \
    >build/changed/record/test_count.json

# The same seed makes the same mutations; a longer list begins with the shorter one.
run 0 --random 9 --seed 5 --dry-run
cp "$work/said" "$work/first"
grep -qE 'count.c:(1|2|3|4|5):' "$work/said" && fail "--random: not in code: $(cat "$work/said")"
contains "$work/said" '^R5-00[1-4]-[0-9a-f]{6}: src/base/count.c:12: .*\[-.*: test_count$'
contains "$work/said" 'count.c:17: .*: no test$'
run 0 --random 2 --seed 5 --dry-run
head -n 2 "$work/first" | cmp - "$work/said" || fail "--random 2 is not the begin of 9"
python3 - >"$work/all" <<'PYTHON' || fail "the generator"
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, "tools/mutants")
from generate import mutations_of
for seed in range(12):
    print("\n".join(mutation["what"] for mutation in mutations_of(["src/base/count.c"], ".", 9, seed)))
PYTHON
for edit in '\[-+-\]{+-+}' '\[-<-\]{+<=+}' '\[-2-\]{+3+}' '\[-2-\]{+1+}' '\[-+ 3-\]' '\[-!=-\]{+==+}' '\[-|| .*-\]'; do
    grep -q -- "$edit" "$work/all" || fail "--random never makes $edit: $(cat "$work/all")"
done

# A mutation of a function that no test calls survives; the results contain the edits.
run 1 --random 9 --seed 5 --out random.tsv --floor 100
contains "$work/said" '^survived: R5-.*: src/base/count.c:17: .* \(no test is known to execute it\)$'
contains random.tsv 'killed.test_count.counts.*src/base/count.c:[0-9]+: .*\[-'
contains "$work/said" '^[1-9] killed, .* of the valid ones killed$'
printf 'int main(void)\n{\n    return 0 * 3;\n}\n' >src/base/count.c
run 0 --random 1 --seed 2 --out random.tsv --floor 0
contains random.tsv '^R2-001-.*.(equivalent|killed)'

# ---- interrupted ---------------------------------------------------------------------------------

rm "$work/sleeper"
{
    until [ -s "$work/sleeper" ]; do sleep 0.05; done
    kill -TERM "$(cat "$work/process")"
} &
waiter=$!
# exec keeps the process id.
sh -c 'echo $$ >"$0"; exec tools/mutants.sh --only "A2|E1" --out stopped.tsv' "$work/process" >"$work/said" 2>&1
code=$?
kill $waiter 2>/dev/null
[ $code = 130 ] || fail "interrupted: exit status $code: $(cat "$work/said")"
contains "$work/said" '^stopped; stopped.tsv has 1$'
contains stopped.tsv "^A2$(printf '\t')killed"
is_sleeping && fail "interrupted: the test still runs"
unchanged

# ---- errors --------------------------------------------------------------------------------------

# Uncommitted changes are tested too.
sed -i 's/ + / - /' src/sum.sh
run 2 --only A3
contains "$work/said" '^test_sum: failed without a mutation$'
cp "$work/sum.sh" src/sum.sh

run 2 --only none
printf '[{"id": "A", "what": "a", "edits": [["src/sum.sh", "twice", "once"]], "tests": ["test_none"]}]' >list.json
run 2 --list list.json --dry-run
contains "$work/said" 'A: test_none: no such test'
printf '[{"id": "A", "what": "a", "edits": [["../a", "b", "c"]], "tests": ["test_sum"]}]' >list.json
run 2 --list list.json --dry-run
contains "$work/said" 'A: ../a: not a file of the checkout'

[ $failures = 0 ] && echo "all passed"
[ $failures = 0 ]
