#!/bin/sh
# tools/lint.sh [--quick] [FILE.c ...]
# Runs clang-tidy with .clang-tidy over the given files, or over all of src/, tools/ and tests/, which then
# also takes the scripts through shellcheck, the viewer's page through node where there is one, and all C files
# through clang-format 19, whose findings `clang-format-19 -i FILE` mends. --quick
# leaves out clang's static analyzer, nine tenths of the time, and three checks of how names and literals are
# spelt, a quarter of what is left. Exits 0 when there is nothing to report.
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
        say "lint.sh: formats are not checked: no $clang_format"
    fi
    set -- "$source_dir"/src/*/*.c "$source_dir"/tools/*/*.c "$source_dir"/tests/*.c \
        "$source_dir"/tests/*/*.c
    (cd "$source_dir" && shellcheck .ci/run completions/vknerf.bash tools/*.sh tests/*.sh) || status=1
    if command -v node >/dev/null; then # all of the viewer's page at once, as a browser reads it
        cat "$source_dir"/src/viewer/page/*.js >"$build_dir/page.mjs"
        node --check "$build_dir/page.mjs" || status=1
    fi
fi

# Only what is built has compile commands. Two files compile other people's code: they are left out.
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
# What clang-tidy says beside its findings is only counts, unless it could not run.
grep -vE 'warnings? generated|Processing file ' "$build_dir/lint.log" >&2 || :
exit $status
