#!/bin/sh
# tools/lint.sh [--quick] [FILE.c ...]
# Runs clang-tidy over the given files, or all linters over the whole tree. Without files: clang-tidy for src/,
# tools/ and tests/, shellcheck for scripts, node (if installed) for the viewer's page, tests/test_words.py for names
# and prose, and clang-format 19 for all C files; `clang-format-19 -i FILE` corrects formatting. --quick leaves out
# clang's static analyzer (nine tenths of the time) and three checks of names and literals (a quarter of the rest).
# Exits 0 if there are no findings.
set -eu
# shellcheck source=common.sh
. "$(dirname -- "$0")/common.sh"

checks=
if [ "${1:-}" = --quick ]; then
    checks='-clang-analyzer-*,-cert-dcl16-c,-misc-confusable-identifiers,-misc-misleading-identifier'
    shift
fi
command -v "$clang_tidy" >/dev/null || clang_tidy=clang-tidy
for tool in "$clang_tidy" shellcheck; do
    command -v "$tool" >/dev/null || die "needs $tool: apt-get install $tool"
done
"$source_dir/tools/setup.sh" --no-build
[ -f "$build_dir/build.ninja" ] || cmake -S "$source_dir" -B "$build_dir" -G Ninja >&2

status=0
if [ $# -eq 0 ]; then
    if command -v "$clang_format" >/dev/null; then
        (cd "$source_dir" && find cmake examples include shaders src tests tools -name '*.[ch]' -print0 |
            xargs -0 -P "$(nproc)" -n 50 "$clang_format" --dry-run --Werror) || status=1
    else
        say "lint.sh: formatting is not checked: $clang_format is not installed"
    fi
    set -- "$source_dir"/src/*/*.c "$source_dir"/tools/*/*.c "$source_dir"/tests/*.c \
        "$source_dir"/tests/*/*.c
    (cd "$source_dir" && python3 tests/test_words.py >&2) || status=1
    (cd "$source_dir" && shellcheck .ci/run completions/vknerf.bash tools/*.sh tests/*.sh) || status=1
    if command -v node >/dev/null; then # all scripts of the viewer's page as one module, as in a browser
        cat "$source_dir"/src/viewer/page/*.js >"$build_dir/page.mjs"
        node --check "$build_dir/page.mjs" || status=1
    fi
fi

# Files that are not built have no compile commands. volk.c and stb.c compile third-party code and are skipped.
for file in "$@"; do
    case $file in
        */src/gpu/volk.c | */src/scene/stb.c) continue ;;
    esac
    file=$(realpath -m -- "$file")
    if grep -qF -- "\"file\": \"$file\"" "$build_dir/compile_commands.json"; then
        printf '%s\0' "$file"
    fi
done | xargs -0 -r -P "$(nproc)" -n 12 "$clang_tidy" --quiet --checks="$checks" -p "$build_dir" \
    2>"$build_dir/lint.log" ||
    status=1
# Drops clang-tidy's counts from its messages; errors that kept it from running remain.
grep -vE 'warnings? generated|Processing file ' "$build_dir/lint.log" >&2 || :
exit $status
