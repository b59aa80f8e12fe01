#!/bin/sh
# Tests tools/test.sh --changed, which selects tests by the code that they executed before, on a small project with
# this project's tools.
set -u
source=${VKNERF_SOURCE_DIR:?}
for needed in python3 git ninja cmake addr2line; do
    command -v $needed >/dev/null || { echo "skipped: test_changed: no $needed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset VKNERF_BUILD_DIR VKNERF_TRACE
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# ---- the project ---------------------------------------------------------------------------------

toy=$work/toy
build=$toy/build/changed
mkdir -p "$toy/tools" "$toy/tests" "$toy/src/base" "$toy/src/scene" "$toy/src/cli" "$toy/shaders/rays" "$toy/docs"
cp "$source/tools/test.sh" "$source/tools/changed.py" "$source/tools/common.sh" "$toy/tools/"
cp "$source/tests/trace.c" "$toy/tests/"
cd "$toy" || exit 1
cat >CMakeLists.txt <<'TOY'
cmake_minimum_required(VERSION 3.22)
project(toy LANGUAGES C)
enable_testing()
add_compile_options(-O2 -g1 -finstrument-functions)
add_compile_definitions(_GNU_SOURCE=)
include_directories(src)
add_library(vknerf-core STATIC src/base/text.c src/base/table.c src/scene/read.c tests/trace.c)
add_executable(vknerf src/cli/main.c)
target_link_libraries(vknerf vknerf-core)
foreach(name test_text test_read)
    add_executable(${name} tests/${name}.c)
    target_link_libraries(${name} vknerf-core)
    add_test(NAME ${name} COMMAND ${name})
endforeach()
add_test(NAME test_cli COMMAND ${PROJECT_SOURCE_DIR}/tests/test_cli.sh ${PROJECT_BINARY_DIR}/vknerf)
TOY
cat >src/base/base.h <<'TOY'
#define BASE_LIMIT 3
int base_length(const char *text);
int base_upper(int letter);
extern const char base_table[];
TOY
cat >src/base/text.c <<'TOY'
#include "base/base.h"

/* How long it is. */
int base_length(const char *text)
{
    int length = 0;
    while (text[length])
        length++;
    return length;
}

int base_upper(int letter)
{
    return letter - 32;
}
TOY
echo 'const char base_table[] = "table";' >src/base/table.c
cat >src/scene/read.c <<'TOY'
#include "base/base.h"

void gpu_trace_shader(const char *name, const char *source);
int scene_read(void);
int scene_read(void)
{
    gpu_trace_shader("march_rays", "rays/march.comp");
    return base_length(base_table);
}
TOY
cat >src/cli/main.c <<'TOY'
#include "base/base.h"
int main(void) { return base_upper('a') != 'A'; }
TOY
cat >tests/test_text.c <<'TOY'
#include "base/base.h"
int main(void) { return base_length("four") != 4 || base_upper('b') != 'B'; }
TOY
cat >tests/test_read.c <<'TOY'
int scene_read(void);
int main(void) { return scene_read() != 5; }
TOY
cat >tests/test_cli.sh <<'TOY'
#!/bin/sh
exec "$1" # as docs/cli.txt says
TOY
chmod +x tests/test_cli.sh
echo '#include "rays/cells.glsl"' >shaders/rays/march.comp
echo shared >shaders/rays/cells.glsl
echo cli >docs/cli.txt
echo build >.gitignore
git init -q . && git config user.email toy@localhost && git config user.name toy && git add . && git commit -qm toy ||
    exit 1
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER_WORKS=1 >"$work/said" 2>&1 || { fail "cmake: $(cat "$work/said")"; exit 1; }

run() { # CODE ARGUMENT ...: writes $work/said
    want=$1
    shift
    tools/test.sh --changed "$@" >"$work/said" 2>&1
    code=$?
    [ $code = "$want" ] || fail "test.sh --changed $*: exit status $code instead of $want: $(cat "$work/said")"
}

contains() { # PATTERN
    grep -qE -- "$1" "$work/said" || fail "'$1' is not in it: $(cat "$work/said")"
}

chosen() { # TEST ...: exactly these tests, in this order, are selected by the changes; reverts the changes
    tools/changed.py . "$build" choose >"$work/said" 2>&1 || fail "choose: $(cat "$work/said")"
    names=$(sed -n 's/^  \(test_[a-z]*\): .*/\1/p' "$work/said" | tr '\n' ' ')
    [ "$names" = "${*:+$* }" ] || fail "chosen '$names' instead of '$*': $(cat "$work/said")"
    git checkout -q .
    git clean -qfd
}

# ---- the first run -------------------------------------------------------------------------------

run 0
contains '^  test_read: has no record yet$'
contains '^3 passed, 0 failed$'
run 0
contains '^0 files have changed since HEAD; 0 of 3 tests:$'
[ "$(tail -n 1 "$work/said")" = "0 passed, 0 failed" ] || fail "nothing has changed: $(cat "$work/said")"

# ---- what selects a test -------------------------------------------------------------------------

# A changed function selects the tests that call it.
sed -i 's/length = 0/length = 1 - 1/' src/base/text.c
chosen test_text test_read
sed -i 's/- 32/- 31/' src/base/text.c
chosen test_text test_cli
contains 'calls src/base/text.c: base_upper'
sed -i 's/return base/return 0 + base/' src/scene/read.c
chosen test_read
# Code outside of functions selects tests of the file and of files that include it; a table selects its users.
sed -i 's/^#include/#define A 1\n#include/' src/scene/read.c
chosen test_read
sed -i 's/LIMIT 3/LIMIT 4/' src/base/base.h
chosen test_text test_cli test_read
contains 'test_cli: calls src/.*, which reads src/base/base.h'
sed -i 's/table"/tables"/' src/base/table.c
chosen test_read
contains 'calls src/scene/read.c, which uses tables of src/base/table.c'
sed -i 's/How long/As long/' src/base/text.c
chosen
contains '^  src/base/text.c: only comments have changed$'
# A shader source selects tests that create pipelines of it.
echo more >>shaders/rays/cells.glsl
chosen test_read
contains 'test_read: creates pipelines from shaders/rays/cells.glsl'
# A test's own files, and files that it names.
echo '/* more */' >>tests/test_text.c
chosen test_text
echo more >>docs/cli.txt
chosen test_cli
echo new >docs/new.txt
chosen test_cli
contains 'test_cli: names docs'
echo new >new.txt
chosen
contains '^  new.txt: no test is known to depend on it$'

# ---- commits, failures ---------------------------------------------------------------------------

sed -i 's/- 32/- 31/' src/base/text.c
git commit -qam 'A mistake'
run 0
contains '^0 passed, 0 failed$'
run 1 HEAD~1
contains '^1 files have changed since HEAD~1; 2 of 3 tests:$'
[ "$(tail -n 1 "$work/said")" = "0 passed, 2 failed" ] || fail "a mistake: $(tail -n 3 "$work/said")"
echo 'no C' >>src/base/text.c
run 1
[ "$(tail -n 1 "$work/said")" = "0 passed, 1 failed" ] || fail "what does not compile: $(tail -n 3 "$work/said")"
git checkout -q .
run 1 nothing
contains 'nothing: no such commit'

# Wrong arguments of changed.py.
refuses() { # TEXT ARGUMENT ...
    text=$1
    shift
    tools/changed.py "$@" >"$work/said" 2>&1 && fail "changed.py $*: exit status 0"
    contains "$text"
}
refuses '^usage: .*choose \[REV\]' .
refuses '^usage: ' . "$build" chose
refuses '^usage: ' . "$build" choose HEAD HEAD
refuses 'docs: a build without tests$' . docs choose
python=$(python3 -c 'import sys; print(sys.executable)')
mkdir "$work/bin"
PATH=$work/bin "$python" tools/changed.py . "$build" choose >"$work/said" 2>&1 && fail "no git: exit status 0"
contains '^changed.py: git, .*, is not installed$'

[ $failures = 0 ] && echo "all passed"
[ $failures = 0 ]
